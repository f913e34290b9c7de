/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers random operators to cl/math/random.cl: RandomUniform and RandomNormal, RandomUniformLike
 * and RandomNormalLike (whose shape is that of an input), Bernoulli and Multinomial.
 */
#include "ops/grad/grad_rule.h"
#include "ops/math/random.h"

#include "base/hash.h"
#include "ops/lowering/work.h"

#include <string.h>

/* ---- steps ----------------------------------------------------------------------------------- */

void random_arg_key(lower_context *c, step *s)
{
    const graph_attribute *seed = node_attribute(c->node, "seed");
    int64_t key = 0;
    if (!seed) {
        step_arg_key(&c->build, s, hash_string(c->node->label));
        return;
    }
    if (seed->type == ATTRIBUTE_INT)
        key = seed->as.i;
    else
        memcpy(&key, &seed->as.f, sizeof seed->as.f);
    step_arg_long(&c->build, s, key);
}

static void number_arg(lower_context *c, step *s, clg_dtype dtype, double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (dtype == CLG_FLOAT64)
        step_arg_long(&c->build, s, bits);
    else
        step_arg_float(&c->build, s, number);
}

clg_status random_append(lower_context *c, candidate *impl, const random_job *j)
{
    static const char *const labels[] = {"random_uniform", "random_normal", "bernoulli", "dropout"};
    step_builder *b = &c->build;
    const bool simd = lower_is_simd(c);
    const int lanes = simd ? work_lanes(c, j->n) : 1;
    const int64_t tile = j->dtype == CLG_FLOAT64 ? 32 : 64;
    CLG_TRY(work_check_dtype(c, j->dtype));
    CLG_TRY(work_check_dtype(c, j->out));
    step *k = step_kernel(b, impl, "random", "random",
                          prelude_text(b, "P_OP=%d P_T=%d P_VEC=%d P_OUT=%d P_MASK=%d", (int)j->op,
                                       (int)j->dtype, lanes, (int)j->out, (int)j->has_mask));
    k->label = labels[j->op];
    step_arg_buffer(b, k, j->op < RANDOM_BERNOULLI ? j->y : j->x, j->dtype);
    step_arg_buffer(b, k, j->y, j->op == RANDOM_BERNOULLI ? j->out : j->dtype);
    step_arg_buffer(b, k, j->has_mask ? j->mask : j->y, j->has_mask ? j->out : j->dtype);
    step_arg_long(b, k, j->n);
    random_arg_key(c, k);
    number_arg(c, k, j->dtype, j->a);
    number_arg(c, k, j->dtype, j->b);
    k->bytes = 2.0 * (double)j->n * (double)dtype_size(j->dtype);
    const int64_t units = (j->n + tile - 1) / tile * (16 / lanes), max = 1 << 22;
    work_range_1d(c, k, units < max ? units : max, simd ? 1 : 64);
    return CLG_OK;
}

/* ---- RandomUniform, RandomNormal ------------------------------------------------------------- */

typedef struct random_kind {
    random_op op;
    const char *a, *b; /* attributes with the values of random_job.a and .b */
} random_kind;

static clg_status uniform_infer(op_context *c)
{
    size_t rank;
    const int64_t *dims = node_ints(c->node, "shape", &rank);
    shape out = {.rank = (int)rank};
    if (rank > CLG_MAX_RANK)
        return op_error(c, CLG_ERROR_SHAPE, "the shape has %zu dimensions, more than %d", rank,
                        CLG_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        out.dims[i] = dims[i];
    }
    fact_set(&c->outputs[0], (clg_dtype)node_int(c->node, "dtype", CLG_FLOAT32), &out);
    return CLG_OK;
}

/* Infers RandomUniformLike, RandomNormalLike or Bernoulli: the input's shape; the dtype of
 * attribute dtype, by default the input's, which must be a float then. */
static clg_status like_infer(op_context *c)
{
    const clg_dtype of_input = c->inputs[0].dtype;
    const bool has_dtype = node_attribute(c->node, "dtype") != NULL;
    const int64_t dtype = node_int(c->node, "dtype", of_input);
    if (dtype == CLG_DTYPE_NONE) return CLG_OK;
    if (!has_dtype && !(DTYPE_BIT(dtype) & DTYPES_FLOAT))
        return op_error(c, CLG_ERROR_UNSUPPORTED_DTYPE,
                        "the output has the input's dtype, %s, and is not a float",
                        dtype_name(of_input));
    fact_set(&c->outputs[0], (clg_dtype)dtype, &c->inputs[0].dims);
    return CLG_OK;
}

static clg_status uniform_lower(lower_context *c)
{
    const random_kind *kind = c->row->param;
    const clg_dtype dtype = c->outputs[0].dtype;
    random_job j = {.op = kind->op, .dtype = dtype, .out = dtype, .y = operand_output(0)};
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &j.n));
    j.a = node_float(c->node, kind->a, 0.0f);
    j.b = node_float(c->node, kind->b, 1.0f);
    return random_append(c, step_candidate(&c->build, "random"), &j);
}

static clg_status bernoulli_lower(lower_context *c)
{
    random_job j = {.op = RANDOM_BERNOULLI,
                    .dtype = c->inputs[0].dtype,
                    .out = c->outputs[0].dtype,
                    .x = operand_input(0),
                    .y = operand_output(0)};
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &j.n));
    return random_append(c, step_candidate(&c->build, "random"), &j);
}

/* ---- Multinomial ----------------------------------------------------------------------------- */

static clg_status multinomial_infer(op_context *c)
{
    const shape *x = &c->inputs[0].dims;
    if (x->rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "the input has rank %d and must be [batch, classes]",
                        x->rank);
    if (x->dims[1] == 0) return op_error(c, CLG_ERROR_SHAPE, "there are no classes to draw from");
    const shape out = {.rank = 2, .dims = {x->dims[0], node_int(c->node, "sample_size", 1)}};
    fact_set(&c->outputs[0], (clg_dtype)node_int(c->node, "dtype", CLG_INT32), &out);
    return CLG_OK;
}

static clg_status multinomial_lower(lower_context *c)
{
    const lower_operand *x = &c->inputs[0];
    const clg_dtype sums = x->dtype == CLG_FLOAT64 ? CLG_FLOAT64 : CLG_FLOAT32;
    const int64_t batch = x->dims.dims[0], classes = x->dims.dims[1],
                  samples = c->outputs[0].dims.dims[1];
    const uint64_t local = lower_is_simd(c) ? 1 : work_group_local(c, classes);
    step_builder *b = &c->build;
    size_t size_bytes;
    CLG_TRY(work_check_dtype(c, x->dtype));
    if (!dtype_bytes(sums, batch * classes, &size_bytes)) return error_no_memory(SIZE_MAX);
    candidate *impl = step_candidate(b, "multinomial");
    const operand table = step_scratch(b, impl, size_bytes);
    const char *prelude = prelude_text(b, "P_T=%d P_VEC=1 P_INT=%d P_LOCAL=%d", (int)x->dtype,
                                       c->outputs[0].dtype == CLG_INT32 ? 32 : 64, (int)local);
    step *k = step_kernel(b, impl, "multinomial", "multinomial_sums", prelude);
    STEP_BUFFERS(b, k, {operand_input(0), x->dtype}, {table, sums});
    STEP_INTS(b, k, batch, classes);
    work_range_groups(c, k, batch, local);
    k = step_kernel(b, impl, "multinomial", "multinomial_draw", prelude);
    STEP_BUFFERS(b, k, {table, sums}, {operand_output(0), c->outputs[0].dtype});
    STEP_INTS(b, k, batch * samples, classes, samples);
    random_arg_key(c, k);
    work_range_1d(c, k, batch * samples, lower_is_simd(c) ? 16 : 64);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const random_kind uniform = {RANDOM_UNIFORM, "low", "high"},
                         normal = {RANDOM_NORMAL, "mean", "scale"};

#define SHARED(set)                                                                                \
    {"dtype", ATTRIBUTE_INT, false, OP_DTYPES(set)}, { "seed", ATTRIBUTE_FLOAT, false, OP_ANY }
static const op_attribute uniform_attributes[] = {SHARED(DTYPES_FLOAT),
                                                  {"low", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                  {"high", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                  {"shape", ATTRIBUTE_INTS, true, OP_AT_LEAST(0)},
                                                  {0}};
static const op_attribute normal_attributes[] = {SHARED(DTYPES_FLOAT),
                                                 {"mean", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                 {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                 {"shape", ATTRIBUTE_INTS, true, OP_AT_LEAST(0)},
                                                 {0}};
static const op_attribute uniform_like_attributes[] = {SHARED(DTYPES_FLOAT),
                                                       {"low", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                       {"high", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                       {0}};
static const op_attribute normal_like_attributes[] = {SHARED(DTYPES_FLOAT),
                                                      {"mean", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                      {"scale", ATTRIBUTE_FLOAT, false, OP_ANY},
                                                      {0}};
static const op_attribute bernoulli_attributes[] = {SHARED(DTYPES_ALL_FIXED), {0}};
static const op_attribute multinomial_attributes[] = {
    SHARED(DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)),
    {"sample_size", ATTRIBUTE_INT, false, OP_AT_LEAST(0)},
    {0}};
static const op_types any[] = {{'T', DTYPES_ALL_FIXED}, {0}};
static const op_types floats[] = {{'T', DTYPES_FLOAT}, {0}};

#define ROW(row_name, first, n_in, list, set, ...)                                                 \
    {                                                                                              \
        .name = row_name, .grad = GRAD_ZERO, .since = first, OP_INPUTS(n_in, n_in, "T"),           \
        OP_OUTPUTS(1, 1, "?"), .attributes = list, .types = set, .flags = OP_RANDOM, __VA_ARGS__   \
    }

const op_row op_rows_random[] = {
    ROW("RandomUniform", 1, 0, uniform_attributes, floats, .infer = uniform_infer,
        .lower = uniform_lower, .param = &uniform),
    ROW("RandomNormal", 1, 0, normal_attributes, floats, .infer = uniform_infer,
        .lower = uniform_lower, .param = &normal),
    ROW("RandomUniformLike", 1, 1, uniform_like_attributes, any, .infer = like_infer,
        .lower = uniform_lower, .param = &uniform),
    ROW("RandomNormalLike", 1, 1, normal_like_attributes, any, .infer = like_infer,
        .lower = uniform_lower, .param = &normal),
    ROW("Bernoulli", 15, 1, bernoulli_attributes, floats, .infer = like_infer,
        .lower = bernoulli_lower),
    ROW("Multinomial", 7, 1, multinomial_attributes, floats, .infer = multinomial_infer,
        .lower = multinomial_lower),
};
const size_t n_op_rows_random = sizeof op_rows_random / sizeof *op_rows_random;
