/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Unique (ONNX 11): the distinct elements, or distinct slices along an axis, with the index
 * of their first occurrence, the inverse mapping, and counts. Slices ("rows") are sorted stably on
 * the device, so that equal ones are adjacent. Their number is known only then: the operator is
 * planned in two stages (op_row.stages). Kernels: cl/movement/unique.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/compact.h"
#include "ops/lowering/work.h"
#include "ops/movement/gather.h"
#include "tensor/tensor.h"

#define SORT_WIDTH 16 /* elements that a work-item sorts by insertion; estimated, not measured */

/* The input as [outer, n, inner] around the axis, or as [1, n, 1] without an axis; row i is x[:, i,
 * :]. */
typedef struct rows {
    int64_t outer, n, inner;
    int axis; /* -1: none */
} rows;

static clg_status find_rows(const node *n, const shape *in, rows *out)
{
    *out = (rows){1, DIM_UNKNOWN, 1, -1};
    if (!node_attribute(n, "axis")) return shape_n_elements(in, &out->n);
    CLG_TRY(shape_axis(node_int(n, "axis", 0), in->rank, "axis", &out->axis));
    out->n = in->dims[out->axis];
    for (int i = 0; i < out->axis; i++) out->outer *= in->dims[i];
    for (int i = out->axis + 1; i < in->rank; i++) out->inner *= in->dims[i];
    return CLG_OK;
}

static bool is_sorted(const node *n) { return node_int(n, "sorted", 1) != 0; }

static void set_list(value_fact *f, clg_dtype dtype, int64_t n)
{
    fact_set(f, dtype, &(shape){.rank = 1, .dims = {n}});
}

static clg_status unique_infer(op_context *c)
{
    rows r;
    int64_t n = DIM_UNKNOWN;
    if (find_rows(c->node, &c->inputs[0].dims, &r) != CLG_OK) return op_prefix(c, CLG_ERROR_SHAPE);
    const tensor *count = c->n_inputs > 1 ? op_need(c, 1) : NULL;
    if (count) n = tensor_get_int(count, 0);
    shape out = r.axis < 0 ? (shape){.rank = 1} : c->inputs[0].dims;
    out.dims[r.axis < 0 ? 0 : r.axis] = n;
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    for (size_t i = 1; i < c->n_outputs; i++) set_list(&c->outputs[i], CLG_INT64, i == 2 ? r.n : n);
    return CLG_OK;
}

/* ---- sorting --------------------------------------------------------------------------------- */

/* Infers the four outputs of stage 0: the number of distinct rows; for each position in the sorted
 * order its row, and the index of its group of equal rows; if the result is not to be sorted, for
 * each row its rank among first occurrences. */
static clg_status sort_infer(op_context *c)
{
    rows r;
    if (find_rows(c->node, &c->inputs[0].dims, &r) != CLG_OK) return op_prefix(c, CLG_ERROR_SHAPE);
    set_list(&c->outputs[0], CLG_INT64, 1);
    set_list(&c->outputs[1], CLG_INT32, r.n);
    set_list(&c->outputs[2], CLG_INT32, r.n);
    set_list(&c->outputs[3], CLG_INT32, is_sorted(c->node) ? 0 : r.n);
    return CLG_OK;
}

static step *start(lower_context *c, candidate *impl, const char *entry, int form, const rows *r)
{
    step_builder *b = &c->build;
    step *s = step_kernel(b, impl, "unique", entry,
                          prelude_text(b, "P_T=%d P_VEC=1 P_FORM=%d P_SORTED=1 P_OUTPUTS=0",
                                       (int)c->inputs[0].dtype, form));
    step_arg_buffer(b, s, operand_input(0), c->inputs[0].dtype);
    step_arg_long(b, s, r->outer);
    step_arg_int(b, s, r->n);
    step_arg_long(b, s, r->inner);
    s->bytes =
        (double)r->outer * (double)r->n * (double)r->inner * (double)dtype_size(c->inputs[0].dtype);
    return s;
}

static uint64_t local_of(const lower_context *c, int64_t n)
{
    return lower_is_simd(c) ? 1 : work_group_local(c, n);
}

/* Appends a merge sort: sorts blocks of SORT_WIDTH rows, then merges them pairwise. The last merge
 * writes output 1. */
static void append_sort(lower_context *c, candidate *impl, const rows *r)
{
    step_builder *b = &c->build;
    const uint64_t local = local_of(c, r->n);
    int n_merges = 0;
    for (int64_t width = SORT_WIDTH; width < r->n; width *= 2) n_merges++;
    operand other = operand_output(1), from = other;
    if (n_merges) other = step_scratch(b, impl, (size_t)r->n * sizeof(int32_t));
    if (n_merges % 2) from = other;
    step *s = start(c, impl, "unique_sort", 0, r);
    step_arg_int(b, s, SORT_WIDTH);
    step_arg_buffer(b, s, from, CLG_INT32);
    work_range_1d(c, s, (r->n + SORT_WIDTH - 1) / SORT_WIDTH, local);
    int64_t width = SORT_WIDTH;
    for (int k = 0; k < n_merges; k++, width *= 2) {
        const bool to_output = (n_merges - k) % 2 != 0;
        const operand to = to_output ? operand_output(1) : other;
        s = start(c, impl, "unique_merge", 1, r);
        step_arg_long(b, s, width);
        STEP_BUFFERS(b, s, {from, CLG_INT32}, {to, CLG_INT32});
        work_range_1d(c, s, r->n, local);
        from = to;
    }
}

static clg_status sort_lower(lower_context *c)
{
    step_builder *b = &c->build;
    rows r;
    CLG_TRY(work_check_dtype(c, c->inputs[0].dtype));
    CLG_TRY(find_rows(c->node, &c->inputs[0].dims, &r));
    candidate *impl = step_candidate(b, "sort");
    const size_t blocks = (size_t)compact_blocks(r.n) * sizeof(int32_t);
    const size_t n_bytes = r.n > 0 ? (size_t)r.n : 1;
    const operand flags = step_scratch(b, impl, n_bytes), first = step_scratch(b, impl, n_bytes);
    const compaction groups = {flags, CLG_UINT8, r.n, step_scratch(b, impl, blocks)},
                     firsts = {first, CLG_UINT8, r.n, step_scratch(b, impl, blocks)};
    if (r.n > 0) append_sort(c, impl, &r);
    step *s = start(c, impl, "unique_flags", 2, &r);
    STEP_BUFFERS(b, s, {operand_output(1), CLG_INT32}, {flags, CLG_UINT8}, {first, CLG_UINT8});
    work_range_1d(c, s, r.n, local_of(c, r.n));
    compact_append_count(c, impl, &groups, operand_output(0));
    if (r.n == 0) return CLG_OK;
    compact_append_write(c, impl, &groups, COMPACT_RANKS, NULL, 0, operand_output(2));
    if (is_sorted(c->node)) return CLG_OK;
    compact_append_count(c, impl, &firsts, operand_output(0));
    compact_append_write(c, impl, &firsts, COMPACT_RANKS, NULL, 0, operand_output(3));
    return CLG_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static clg_status write_lower(lower_context *c)
{
    step_builder *b = &c->build;
    rows r;
    CLG_TRY(find_rows(c->node, &c->inputs[0].dims, &r));
    candidate *impl = step_candidate(b, "write");
    const int64_t n = c->inputs[1].known ? tensor_get_int(c->inputs[1].known, 0) : 0;
    const bool sorted = is_sorted(c->node);
    const operand list = step_scratch(b, impl, (size_t)(n + 1) * sizeof(int32_t));
    int wanted = 0;
    for (uint32_t i = 1; i < 4; i++) wanted |= work_has_output(c, i) ? 1 << (i - 1) : 0;
    step *s = step_kernel(
        b, impl, "unique", "unique_write",
        prelude_text(b, "P_T=2 P_VEC=1 P_FORM=3 P_SORTED=%d P_OUTPUTS=%d", sorted, wanted));
    step_arg_int(b, s, r.n);
    STEP_BUFFERS(b, s, {operand_input(2), CLG_INT32}, {operand_input(3), CLG_INT32},
                 {operand_input(sorted ? 3 : 4), CLG_INT32}, {list, CLG_INT32});
    for (uint32_t i = 1; i < 4; i++)
        step_arg_buffer(b, s, work_output_or_scratch(c, impl, i, sizeof(int64_t)), CLG_INT64);
    work_range_1d(c, s, r.n, local_of(c, r.n));
    if (!work_has_output(c, 0)) return CLG_OK;
    gather_append(c, impl,
                  &(gather_rows){.x = operand_input(0),
                                 .index = list,
                                 .y = operand_output(0),
                                 .dtype = c->inputs[0].dtype,
                                 .index_dtype = CLG_INT32,
                                 .outer = r.outer,
                                 .axis = r.n,
                                 .picks = n,
                                 .inner = r.inner});
    return CLG_OK;
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_attribute attributes[] = {
    {"axis", ATTRIBUTE_INT, false, OP_ANY}, {"sorted", ATTRIBUTE_INT, false, OP_BOOLEAN}, {0}};
static const op_types types[] = {{'T', DTYPES_ALL_FIXED & ~DTYPE_BIT(CLG_BFLOAT16)},
                                 {'N', DTYPE_BIT(CLG_INT64)},
                                 {'I', DTYPE_BIT(CLG_INT32)},
                                 {0}};

static const op_row stages[] = {
    {.name = "Unique",
     .grad = GRAD_LATER,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(4, 4, "NIII"),
     .types = types,
     .attributes = attributes,
     .infer = sort_infer,
     .lower = sort_lower},
    {.name = "Unique",
     .grad = GRAD_LATER,
     OP_INPUTS(5, 5, "TNIII"),
     OP_OUTPUTS(1, 4, "TNNN"),
     .types = types,
     .attributes = attributes,
     .infer = unique_infer,
     .lower = write_lower},
};

const op_row op_rows_unique[] = {
    {.name = "Unique",
     .grad = GRAD_LATER,
     .batch = BATCH_NEVER("it compares all rows with each other"),
     .since = 11,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 4, "TNNN"),
     .types = types,
     .attributes = attributes,
     .infer = unique_infer,
     .stages = stages},
};
const size_t n_op_rows_unique = sizeof op_rows_unique / sizeof *op_rows_unique;
