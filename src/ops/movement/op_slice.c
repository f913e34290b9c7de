/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Slice and Split to views of their input; a Slice with a negative step becomes a copy.
 */
#include "base/checked.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/movement/strided.h"

#include <inttypes.h>
#include <string.h>

/* ---- Slice ----------------------------------------------------------------------------------- */

/* One axis of a slice: `n` elements from `start`, `step` apart. */
typedef struct slice_range {
    int64_t start, step, n;
} slice_range;

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static slice_range slice_axis(int64_t start, int64_t end, int64_t by, int64_t dim)
{
    slice_range r = {.step = by < -INT64_MAX ? -INT64_MAX : by};
    if (start < 0) start += dim;
    if (end < 0) end += dim;
    if (by > 0) {
        r.start = clamp(start, 0, dim);
        const int64_t span = clamp(end, 0, dim) - r.start;
        r.n = span > 0 ? (span - 1) / by + 1 : 0;
    } else {
        r.start = clamp(start, -1, dim - 1);
        const int64_t span = r.start - clamp(end, -1, dim - 1);
        r.n = span > 0 ? (span - 1) / -r.step + 1 : 0;
    }
    if (r.n < 2) r.step = 1; /* any step would do */
    if (r.n == 0) r.start = 0;
    return r;
}

/* Starts, ends, axes and steps of a node, from attributes or inputs. */
typedef struct slice_numbers {
    int64_t starts[OP_MAX_INTS], ends[OP_MAX_INTS], axes[OP_MAX_INTS], steps[OP_MAX_INTS];
    size_t n_starts, n_ends, n_axes, n_steps;
    bool has_axes, has_steps;
} slice_numbers;

static size_t copy_ints(const node *n, const char *name, int64_t out[OP_MAX_INTS], bool *out_has)
{
    size_t count;
    const int64_t *values = node_ints(n, name, &count);
    *out_has = values != NULL;
    if (!values) return 0;
    if (count > OP_MAX_INTS) count = OP_MAX_INTS;
    for (size_t i = 0; i < count; i++) out[i] = values[i];
    return count;
}

/* Reads the attributes that Slice has before opset 10. */
static void attributes_of(const node *n, slice_numbers *s)
{
    bool has;
    s->n_starts = copy_ints(n, "starts", s->starts, &has);
    s->n_ends = copy_ints(n, "ends", s->ends, &has);
    s->n_axes = copy_ints(n, "axes", s->axes, &s->has_axes);
}

/* Reads the inputs that Slice has from opset 10 on; axes and steps may be NULL. */
static void inputs_of(const tensor *const known[4], slice_numbers *s)
{
    int64_t *const lists[4] = {s->starts, s->ends, s->axes, s->steps};
    size_t *const counts[4] = {&s->n_starts, &s->n_ends, &s->n_axes, &s->n_steps};
    for (size_t i = 0; i < 4; i++)
        for (int64_t k = 0; known[i] && k < known[i]->n_elements && k < OP_MAX_INTS; k++)
            lists[i][(*counts[i])++] = tensor_get_int(known[i], k);
    s->has_axes = known[2] != NULL;
    s->has_steps = known[3] != NULL;
}

/* Sets out to the range of each axis of `in`; its n is DIM_UNKNOWN if the dimension is unknown. */
static clg_status slice_ranges(const slice_numbers *s, const shape *in,
                               slice_range out[CLG_MAX_RANK])
{
    bool seen[CLG_MAX_RANK] = {false};
    if (s->n_starts != s->n_ends || (s->has_axes && s->n_axes != s->n_starts) ||
        (s->has_steps && s->n_steps != s->n_starts))
        return error_set(CLG_ERROR_SHAPE,
                         "starts, ends, axes and steps do not have as many numbers each");
    for (int i = 0; i < in->rank; i++) out[i] = (slice_range){0, 1, in->dims[i]};
    for (size_t i = 0; i < s->n_starts; i++) {
        int axis;
        const int64_t by = s->has_steps ? s->steps[i] : 1;
        CLG_TRY(shape_axis(s->has_axes ? s->axes[i] : (int64_t)i, in->rank, "an axis", &axis));
        if (seen[axis]) return error_set(CLG_ERROR_SHAPE, "axis %d is sliced twice", axis);
        if (by == 0) return error_set(CLG_ERROR_SHAPE, "a step is 0");
        seen[axis] = true;
        if (in->dims[axis] != DIM_UNKNOWN)
            out[axis] = slice_axis(s->starts[i], s->ends[i], by, in->dims[axis]);
    }
    for (int i = 0; i < in->rank; i++)
        if (in->dims[i] == DIM_UNKNOWN && seen[i]) out[i].n = DIM_UNKNOWN;
    return CLG_OK;
}

static clg_status slice_infer(op_context *c)
{
    slice_numbers s = {0};
    slice_range ranges[CLG_MAX_RANK] = {{0, 0, 0}};
    const shape *in = &c->inputs[0].dims;
    shape out = {.rank = in->rank};
    clg_status status = CLG_OK;
    if (c->row->max_inputs == 1) {
        attributes_of(c->node, &s);
    } else {
        s.has_axes = op_has_input(c, 3);
        s.has_steps = op_has_input(c, 4);
        bool known = op_need_ints(c, 1, s.starts, &s.n_starts, &status);
        known = status == CLG_OK && op_need_ints(c, 2, s.ends, &s.n_ends, &status) && known;
        if (s.has_axes && status == CLG_OK)
            known = op_need_ints(c, 3, s.axes, &s.n_axes, &status) && known;
        if (s.has_steps && status == CLG_OK)
            known = op_need_ints(c, 4, s.steps, &s.n_steps, &status) && known;
        CLG_TRY(status);
        if (!known) { /* the rank at least */
            for (int i = 0; i < in->rank; i++) out.dims[i] = DIM_UNKNOWN;
            fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
            return CLG_OK;
        }
    }
    status = slice_ranges(&s, in, ranges);
    if (status != CLG_OK) return op_error(c, status, "%s", error_text());
    for (int i = 0; i < in->rank; i++) out.dims[i] = ranges[i].n;
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

static clg_status slice_walk(strided_walk *w)
{
    slice_numbers s = {0};
    slice_range ranges[CLG_MAX_RANK] = {{0, 0, 0}};
    int64_t to[CLG_MAX_RANK];
    if (((const op_row *)w->node->op)->max_inputs == 1) {
        attributes_of(w->node, &s);
    } else {
        inputs_of(w->known + 1, &s);
    }
    CLG_TRY(slice_ranges(&s, w->in, ranges));
    shape_strides(w->out, to);
    for (int i = 0; i < w->out->rank; i++) {
        w->offset_elems += ranges[i].start * w->in_strides[i];
        strided_add_dim(w, ranges[i].n, ranges[i].step * w->in_strides[i], to[i]);
    }
    return CLG_OK;
}

/* ---- clgraph.SliceGrad: zeros of a given shape, with input 0 where a slice is ---------------- */

static clg_status slice_grad_infer(op_context *c)
{
    bool known;
    shape dims;
    CLG_TRY(op_need_dims(c, 1, &known, &dims));
    if (known && !shape_is_known(&dims))
        return op_error(c, CLG_ERROR_SHAPE, "a dimension is negative");
    for (size_t i = 2; i < c->n_inputs; i++)
        if (op_has_input(c, i)) (void)op_need(c, i);
    fact_set(&c->outputs[0], c->inputs[0].dtype, &dims);
    return CLG_OK;
}

static clg_status slice_grad_lower(lower_context *c)
{
    slice_numbers s = {0};
    slice_range ranges[CLG_MAX_RANK] = {{0, 0, 0}};
    const tensor *known[4];
    const lower_operand *in = &c->inputs[0], *out = &c->outputs[0];
    operand to = operand_output(0);
    int64_t n, strides[CLG_MAX_RANK];
    size_t size_bytes;
    const uint8_t zero = 0;
    for (size_t i = 0; i < 4; i++)
        known[i] = lower_has_input(c, 2 + i) ? c->inputs[2 + i].known : NULL;
    inputs_of(known, &s);
    const clg_status status = slice_ranges(&s, &out->dims, ranges);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    CLG_TRY(shape_n_elements(&out->dims, &n));
    if (!dtype_bytes(out->dtype, n, &size_bytes)) return error_no_memory(SIZE_MAX);
    grid_dims *g = strided_grid(c->memory, in->dims.rank, in->dims.dims);
    if (!g) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int i = 0; i < out->dims.rank; i++) {
        if (ranges[i].n != in->dims.dims[i])
            return lower_error(c, CLG_ERROR_SHAPE, "the slice has another shape than its gradient");
        to.offset_elems += ranges[i].start * out->strides[i];
        strides[i] = ranges[i].step * out->strides[i];
    }
    grid_set_strides(g, STRIDED_FROM, in->strides);
    grid_set_strides(g, STRIDED_TO, strides);
    candidate *made = step_candidate(&c->build, "slice_grad");
    if (size_bytes > 0)
        step_fill(&c->build, made, operand_output(0), size_bytes, &zero, sizeof zero);
    strided_copy(c, made, g, operand_input(0), to, in->dtype);
    return c->build.status;
}

/* ---- Split ----------------------------------------------------------------------------------- */

/* Sets *out_sizes to equal sizes of the parts of a dimension of length `dim`, which may be
 * DIM_UNKNOWN; from opset 18 on the last part may be smaller. */
static clg_status split_equally(const node *n, int64_t dim, int64_t *out_sizes)
{
    const int64_t count = (int64_t)n->n_outputs, wanted = node_int(n, "num_outputs", count);
    const int64_t part = dim == DIM_UNKNOWN ? DIM_UNKNOWN : dim / count + (dim % count != 0);
    if (wanted != count)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "num_outputs is %" PRId64 ", but there are %" PRId64, wanted, count);
    if (dim != DIM_UNKNOWN && dim % count != 0 && n->opset < 18)
        return error_set(CLG_ERROR_SHAPE, "%" PRId64 " does not split into %" PRId64 " equal parts",
                         dim, count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t rest = dim == DIM_UNKNOWN ? 0 : dim - i * part;
        out_sizes[i] = dim == DIM_UNKNOWN ? DIM_UNKNOWN : rest <= 0 ? 0 : rest < part ? rest : part;
    }
    return CLG_OK;
}

static clg_status check_sizes(int64_t dim, const int64_t *sizes, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (sizes[i] < 0 || !checked_add_i64(sum, sizes[i], &sum))
            return error_set(CLG_ERROR_SHAPE, "split[%zu] is %" PRId64, i, sizes[i]);
    if (dim != DIM_UNKNOWN && sum != dim)
        return error_set(CLG_ERROR_SHAPE,
                         "the parts sum up to %" PRId64 ", the dimension is %" PRId64, sum, dim);
    return CLG_OK;
}

/* Sets *out_sizes to the sizes of all parts: from the attribute, from the values of input 1, or
 * equal ones. The caller frees it with memory_free. */
static clg_status split_sizes(const node *n, const tensor *input, int64_t dim, int64_t **out_sizes)
{
    size_t n_given;
    const int64_t *given = node_ints(n, "split", &n_given);
    clg_status status = CLG_OK;
    int64_t *sizes = *out_sizes = memory_zalloc(n->n_outputs, sizeof *sizes);
    if (!sizes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (!given && !input) {
        status = split_equally(n, dim, sizes);
    } else {
        if (input) n_given = (size_t)input->n_elements;
        if (n_given != n->n_outputs)
            status = error_set(CLG_ERROR_SHAPE, "split has %zu numbers for %zu outputs", n_given,
                               n->n_outputs);
        for (size_t i = 0; i < n_given && status == CLG_OK; i++)
            sizes[i] = input ? tensor_get_int(input, (int64_t)i) : given[i];
        if (status == CLG_OK) status = check_sizes(dim, sizes, n_given);
    }
    if (status == CLG_OK) return CLG_OK;
    memory_free(sizes);
    *out_sizes = NULL;
    return status;
}

static clg_status split_infer(op_context *c)
{
    int axis;
    int64_t *sizes;
    shape dims = c->inputs[0].dims;
    const tensor *input = op_has_input(c, 1) ? op_need(c, 1) : NULL;
    clg_status status = shape_axis(node_int(c->node, "axis", 0), dims.rank, "axis", &axis);
    if (status == CLG_OK && op_has_input(c, 1) && !input) return CLG_OK;
    if (status == CLG_OK) status = split_sizes(c->node, input, dims.dims[axis], &sizes);
    if (status != CLG_OK) return op_error(c, status, "%s", error_text());
    for (size_t i = 0; i < c->n_outputs; i++) {
        dims.dims[axis] = sizes[i];
        fact_set(&c->outputs[i], c->inputs[0].dtype, &dims);
    }
    memory_free(sizes);
    return CLG_OK;
}

static clg_status split_eval(op_context *c, tensor **out_tensors)
{
    int axis;
    int64_t in_strides[CLG_MAX_RANK], to[CLG_MAX_RANK], strides[2][GRID_MAX_RANK], at = 0;
    const tensor *in = c->inputs[0].known;
    const size_t size = dtype_size(in->dtype);
    grid_dims g = {.n_operands = 2, .strides = strides};
    if (size == 0) return CLG_OK;
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), in->dims.rank, "axis", &axis));
    shape_strides(&in->dims, in_strides);
    for (size_t i = 0; i < c->n_outputs; i++) {
        const shape *dims = &c->outputs[i].dims;
        CLG_TRY(tensor_create(in->dtype, dims, &out_tensors[i]));
        shape_strides(dims, to);
        g.rank = dims->rank;
        memcpy(g.dims, dims->dims, sizeof dims->dims);
        grid_set_strides(&g, STRIDED_FROM, in_strides);
        grid_set_strides(&g, STRIDED_TO, to);
        strided_copy_host(&g, size, (const char *)in->data + (size_t)(at * in_strides[axis]) * size,
                          out_tensors[i]->data);
        at += dims->dims[axis];
    }
    return CLG_OK;
}

static clg_status split_lower(lower_context *c)
{
    int axis;
    int64_t at = 0, *sizes;
    const lower_operand *in = &c->inputs[0];
    CLG_TRY(shape_axis(node_int(c->node, "axis", 0), in->dims.rank, "axis", &axis));
    const clg_status status = split_sizes(
        c->node, lower_has_input(c, 1) ? c->inputs[1].known : NULL, in->dims.dims[axis], &sizes);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    c->is_view = true;
    for (size_t i = 0; i < c->n_outputs; i++) {
        c->views[i].offset_elems = at * in->strides[axis];
        memcpy(c->views[i].strides, in->strides, sizeof in->strides);
        at += sizes[i];
    }
    memory_free(sizes);
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute slice_attributes[] = {{"starts", ATTRIBUTE_INTS, true, OP_ANY},
                                                {"ends", ATTRIBUTE_INTS, true, OP_ANY},
                                                {"axes", ATTRIBUTE_INTS, false, OP_ANY},
                                                {0}};
static const op_attribute split_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, {"split", ATTRIBUTE_INTS, false, OP_ANY}, {0}};
static const op_attribute split13_attributes[] = {{"axis", ATTRIBUTE_INT, false, OP_ANY}, {0}};
static const op_attribute split18_attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, {"num_outputs", ATTRIBUTE_INT, false, OP_COUNT}, {0}};
static const op_types indices[] = {
    {'T', DTYPES_BYTES}, {'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)}, {0, 0}};
static const op_types slice_grad_types[] = {{'T', DTYPES_FLOAT},
                                            {'L', DTYPE_BIT(CLG_INT64)},
                                            {'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
                                            {0, 0}};
static const op_types lengths[] = {{'T', DTYPES_BYTES}, {'I', DTYPE_BIT(CLG_INT64)}, {0, 0}};

#define SLICE                                                                                      \
    OP_OUTPUTS(1, 1, "T"), .flags = OP_STRIDED_INPUTS | OP_MOVES, .infer = slice_infer,            \
                           .batch = BATCH_SHAPES(batch_pass_slice, 1),                             \
                           .grad = GRAD_BY(grad_pass_slice), .eval = strided_eval,                 \
                           .lower = strided_lower, .param = &(const strided_op)                    \
    {                                                                                              \
        "slice", slice_walk                                                                        \
    }
#define SPLIT                                                                                      \
    .name = "Split", OP_OUTPUTS(1, OP_ANY_NUMBER, "T"), .flags = OP_STRIDED_INPUTS | OP_MOVES,     \
    .infer = split_infer, .grad = GRAD_BY(grad_pass_split),                                        \
    .batch = OP_BATCH(.pass = batch_pass_split, .rows = 1, .counts = 1, .always = true),           \
    .eval = split_eval, .lower = split_lower

const op_row op_rows_slice[] = {
    {.name = "SliceGrad",
     .domain = "clgraph",
     .since = 1,
     OP_INPUTS(4, 6, "TLIIII"),
     OP_OUTPUTS(1, 1, "T"),
     .types = slice_grad_types,
     .flags = OP_STRIDED_INPUTS,
     .grad = GRAD_BY(grad_pass_slice_grad),
     .infer = slice_grad_infer,
     .lower = slice_grad_lower},
    {.name = "Slice",
     .since = 1,
     .until = 9,
     OP_INPUTS(1, 1, "T"),
     .types = indices,
     .attributes = slice_attributes,
     SLICE},
    {.name = "Slice", .since = 10, OP_INPUTS(3, 5, "TIIII"), .types = indices, SLICE},
    {.since = 2,
     .until = 12,
     OP_INPUTS(1, 1, "T"),
     .types = lengths,
     .attributes = split_attributes,
     SPLIT},
    {.since = 13,
     .until = 17,
     OP_INPUTS(1, 2, "TI"),
     .types = lengths,
     .attributes = split13_attributes,
     SPLIT},
    {.since = 18, OP_INPUTS(1, 2, "TI"), .types = lengths, .attributes = split18_attributes, SPLIT},
};
const size_t n_op_rows_slice = sizeof op_rows_slice / sizeof op_rows_slice[0];
