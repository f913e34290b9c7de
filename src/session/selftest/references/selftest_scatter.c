/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references, in double, of operators that gather or scatter elements by indices, and
 * valid indices for their tests. Positions are computed coordinate by coordinate, where kernels add
 * products with strides.
 */
#include "session/selftest/references/selftest_axis.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* Returns an index, which may count from the end, as a position in 0..n-1. */
static int64_t position_of(double index, int64_t n) { return ((int64_t)index + n) % n; }

/* Returns the product of dimensions from..to-1. */
static int64_t size_of(const shape *s, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= s->dims[d];
    return n;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Returns the offset in `data` of element i of `indices`, whose value replaces the coordinate along
 * the axis. */
static int64_t element_place(const shape *data, const shape *indices, int axis, int64_t i,
                             double index)
{
    int64_t at = 0, rest = size_of(indices, 0, indices->rank);
    for (int d = 0; d < indices->rank; d++) {
        rest /= indices->dims[d];
        const int64_t coordinate = i / rest % indices->dims[d];
        at = at * data->dims[d] + (d == axis ? position_of(index, data->dims[d]) : coordinate);
    }
    return at;
}

/* Returns the number of the row that a tuple of k indices selects among dimensions first to
 * first + k - 1 of the data, in batch `batch`. */
static int64_t row_of(const shape *data, int first, int64_t k, const double *tuple, int64_t batch)
{
    int64_t row = batch;
    for (int c = 0; c < (int)k; c++)
        row = row * data->dims[first + c] + position_of(tuple[c], data->dims[first + c]);
    return row;
}

/* ---- gathering ------------------------------------------------------------------------------- */

clg_status selftest_gather_nd(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    const shape *data = &lc->inputs[0].dims, *indices = &lc->inputs[1].dims;
    const int batch_dims = (int)node_int(lc->node, "batch_dims", 0), last = indices->rank - 1;
    const int64_t k = indices->dims[last], tuples = size_of(indices, 0, last),
                  per_batch = size_of(indices, batch_dims, last),
                  inner = size_of(data, batch_dims + (int)k, data->rank);
    for (int64_t t = 0; t < tuples; t++) {
        const int64_t row = row_of(data, batch_dims, k, in[1] + t * k, t / per_batch);
        for (int64_t i = 0; i < inner; i++) out[0].y[t * inner + i] = in[0][row * inner + i];
    }
    return CLG_OK;
}

clg_status selftest_gather_elements(const lower_context *lc, const double *const *in,
                                    const selftest_expected *out)
{
    const shape *data = &lc->inputs[0].dims, *indices = &lc->inputs[1].dims;
    const int axis = selftest_axis(lc->node, data, 0);
    for (int64_t i = 0; i < selftest_count(indices); i++)
        out[0].y[i] = in[0][element_place(data, indices, axis, i, in[1][i])];
    return CLG_OK;
}

/* ---- scattering ------------------------------------------------------------------------------ */

typedef enum update_kind { UPDATE_SET, UPDATE_ADD, UPDATE_MUL, UPDATE_MIN, UPDATE_MAX } update_kind;

/* The output of a scatter under construction. */
typedef struct scattering {
    update_kind kind;
    double *y, *scale;
    bool *is_set;   /* UPDATE_SET: which elements have got an update */
    uint64_t *bits; /* UPDATE_ADD and UPDATE_MUL of integers: results modulo 2^64; else NULL */
    bool is_determined;
    clg_dtype dtype;
    int64_t n;
} scattering;

static update_kind update_of(const node *n)
{
    static const char *const words[] = {"none", "add", "mul", "min", "max"};
    const char *word = node_string(n, "reduction", "none");
    int kind = UPDATE_SET;
    while (kind < UPDATE_MAX && strcmp(words[kind], word) != 0) kind++;
    return (update_kind)kind;
}

/* Starts with a copy of the data. */
static clg_status start_scatter(const lower_context *lc, const double *data,
                                const selftest_expected *out, scattering *s)
{
    const clg_dtype dtype = lc->outputs[0].dtype;
    *s = (scattering){.kind = update_of(lc->node),
                      .y = out[0].y,
                      .scale = out[0].scale,
                      .is_determined = true,
                      .dtype = dtype,
                      .n = selftest_count(&lc->outputs[0].dims)};
    const size_t n = (size_t)s->n;
    memcpy(s->y, data, n * sizeof *data);
    s->is_set = arena_alloc(lc->memory, n + 1, sizeof *s->is_set);
    if (!s->is_set) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if ((s->kind != UPDATE_ADD && s->kind != UPDATE_MUL) || !dtype_is_integer(dtype)) return CLG_OK;
    s->bits = arena_alloc(lc->memory, n + 1, sizeof *s->bits);
    if (!s->bits) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) s->bits[i] = selftest_bits(data[i]);
    return CLG_OK;
}

/* Applies an update v to element `at`. Kernels round each intermediate result to the dtype: its
 * magnitude is added to the scale. */
static void update(scattering *s, int64_t at, double v)
{
    double *y = &s->y[at], *scale = &s->scale[at];
    switch (s->kind) {
    case UPDATE_SET:
        s->is_determined = s->is_determined && !s->is_set[at];
        s->is_set[at] = true;
        *y = v;
        return;
    case UPDATE_MIN: *y = fmin(*y, v); return;
    case UPDATE_MAX: *y = fmax(*y, v); return;
    case UPDATE_ADD:
        *y += v;
        *scale += fabs(*y);
        if (s->bits) s->bits[at] += selftest_bits(v);
        return;
    case UPDATE_MUL:
        *y *= v;
        *scale = *scale * fabs(v) + fabs(*y) + selftest_least_scale(s->dtype);
        if (s->bits) s->bits[at] *= selftest_bits(v);
        return;
    }
}

static clg_status finish_scatter(const scattering *s)
{
    for (int64_t i = 0; s->bits && i < s->n; i++) {
        s->y[i] = selftest_wrap(s->dtype, s->bits[i]);
        s->scale[i] = 0;
    }
    if (s->is_determined) return CLG_OK;
    return error_set(CLG_ERROR_NOT_FOUND, "a scatter without reduction has an index twice");
}

/* Computes ScatterElements, Scatter and ScatterND. */
clg_status selftest_scatter_elements(const lower_context *lc, const double *const *in,
                                     const selftest_expected *out)
{
    scattering s;
    const shape *data = &lc->inputs[0].dims, *indices = &lc->inputs[1].dims;
    CLG_TRY(start_scatter(lc, in[0], out, &s));
    if (strcmp(lc->node->op_type, "ScatterND") != 0) {
        const int axis = selftest_axis(lc->node, data, 0);
        for (int64_t i = 0; i < selftest_count(indices); i++)
            update(&s, element_place(data, indices, axis, i, in[1][i]), in[2][i]);
        return finish_scatter(&s);
    }
    const int64_t k = indices->dims[indices->rank - 1],
                  tuples = size_of(indices, 0, indices->rank - 1),
                  inner = size_of(data, (int)k, data->rank);
    for (int64_t t = 0; t < tuples; t++) {
        const int64_t row = row_of(data, 0, k, in[1] + t * k, 0);
        for (int64_t i = 0; i < inner; i++) update(&s, row * inner + i, in[2][t * inner + i]);
    }
    return finish_scatter(&s);
}

/* Computes TensorScatter: the update of each batch is written along the axis, from the batch's
 * write index on. */
clg_status selftest_tensor_scatter(const lower_context *lc, const double *const *in,
                                   const selftest_expected *out)
{
    const shape *cache = &lc->inputs[0].dims, *given = &lc->inputs[1].dims;
    const int axis = selftest_axis(lc->node, cache, -2);
    const selftest_lines to = selftest_lines_of(cache, axis), from = selftest_lines_of(given, axis);
    const int64_t per_batch = size_of(cache, 1, axis);
    memcpy(out[0].y, in[0], (size_t)selftest_count(cache) * sizeof **in);
    for (int64_t i = 0; i < selftest_count(given); i++) {
        const int64_t outer = i / (from.dim * from.inner), along = i / from.inner % from.dim;
        const int64_t start = lower_has_input(lc, 2) ? (int64_t)in[2][outer / per_batch] : 0;
        const int64_t at = (start + along) % to.dim; /* mode linear stays below to.dim */
        out[0].y[(outer * to.dim + at) * to.inner + i % from.inner] = in[1][i];
    }
    return CLG_OK;
}

/* ---- indices --------------------------------------------------------------------------------- */

/* Returns a random index into a dimension of length n, or -1 for none. */
static int64_t random_index(uint64_t random, int64_t n)
{
    return n > 0 ? (int64_t)(random % (uint64_t)n) : -1;
}

/* Returns a write index of TensorScatter at which the update fits. */
static int64_t write_index(const selftest_problem *p, uint64_t random)
{
    const shape *cache = &p->inputs[0].dims, *given = &p->inputs[1].dims;
    const int axis = selftest_axis(&p->node, cache, -2);
    const bool circular = strcmp(node_string(&p->node, "mode", "linear"), "circular") == 0;
    return random_index(random, cache->dims[axis] - (circular ? 0 : given->dims[axis] - 1));
}

/* Returns element `at` of the indices of ScatterND as a position, and the length of its dimension:
 * without a reduction, a coordinate of a row that no other index has, while there are such. */
static int64_t scatter_nd_index(const selftest_problem *p, int64_t at, uint64_t random,
                                int64_t *out_n)
{
    const shape *data = &p->inputs[0].dims, *indices = &p->inputs[1].dims;
    const int64_t k = indices->dims[indices->rank - 1];
    const int d = (int)(at % k);
    *out_n = data->dims[d];
    if (update_of(&p->node) != UPDATE_SET) return random_index(random, *out_n);
    const int64_t rows = size_of(data, 0, (int)k);
    return rows > 0 ? selftest_permuted(at / k, rows) / size_of(data, d + 1, (int)k) % *out_n : -1;
}

/* The same for ScatterElements: no two indices of a line are equal. */
static int64_t scatter_index(const selftest_problem *p, int64_t at, uint64_t random, int64_t *out_n)
{
    const shape *data = &p->inputs[0].dims;
    const int axis = selftest_axis(&p->node, data, 0);
    const selftest_lines a = selftest_lines_of(&p->inputs[1].dims, axis);
    *out_n = data->dims[axis];
    if (update_of(&p->node) != UPDATE_SET) return random_index(random, *out_n);
    const int64_t along = at / a.inner % a.dim, line = at / a.inner / a.dim + at % a.inner;
    return *out_n > 0 ? selftest_permuted(along + line, *out_n) : -1;
}

/* Gives indices in range for Gather, GatherElements, GatherND, Scatter, ScatterElements, ScatterND
 * and TensorScatter, negative ones too where the operator has them, and lengths from 1 on for
 * ReverseSequence. */
bool selftest_index_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                             double *out)
{
    const char *op = p->node.op_type;
    const shape *data = &p->inputs[0].dims, *indices = &p->inputs[1].dims;
    const bool is_write = strcmp(op, "TensorScatter") == 0,
               is_length = strcmp(op, "ReverseSequence") == 0;
    const bool negative_too =
        !is_write && !is_length && strcmp(op, "Scatter") != 0 && p->node.opset >= 11;
    int64_t n = 0, index;
    if (input != (is_write ? 2 : 1) || p->inputs[input].known) return false;
    if (is_write) {
        index = write_index(p, random);
    } else if (is_length) {
        index = random_index(random, data->dims[node_int(&p->node, "time_axis", 0)]) + 1;
    } else if (strcmp(op, "ScatterND") == 0) {
        index = scatter_nd_index(p, at, random, &n);
    } else if (strncmp(op, "Scatter", 7) == 0) {
        index = scatter_index(p, at, random, &n);
    } else {
        int d = selftest_axis(&p->node, data, 0);
        if (strcmp(op, "GatherND") == 0)
            d = (int)(node_int(&p->node, "batch_dims", 0) + at % indices->dims[indices->rank - 1]);
        n = data->dims[d];
        index = random_index(random, n);
    }
    *out = (double)(negative_too && random >> 63 ? index - n : index);
    return true;
}
