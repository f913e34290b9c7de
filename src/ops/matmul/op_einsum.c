/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers Einsum (ONNX 12): contracts its operands ("terms") in pairs, the pair with the fewest
 * multiplications first.
 *
 * Labels that only one term has are summed first. A pair with labels to sum over, and with rows and
 * columns, becomes a GEMM (gemm.h), after copies of operands whose strides a GEMM does not support;
 * any other pair becomes a broadcast multiplication. A diagonal (a repeated label) is read with the
 * sum of both strides. Labels of size 1 are dropped: a dimension of 1 broadcasts.
 */
#include "base/checked.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"
#include "ops/matmul/einsum.h"
#include "ops/matmul/gemm.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce.h"

typedef uint64_t label_set;
#define LABEL(l) ((label_set)1 << (l))

typedef struct label_list {
    int n;
    uint8_t labels[EINSUM_LABELS];
} label_list;

/* A term: its memory, its labels, and the strides by label, in elements. */
typedef struct term {
    operand at;
    clg_dtype dtype;
    bool constant;
    label_set has;
    int64_t strides[EINSUM_LABELS];
} term;

typedef struct einsum {
    lower_context *context;
    candidate *impl;
    bool blas;
    clg_dtype dtype; /* dtype of arithmetic: small integers and bfloat16 are computed in 32 bits */
    einsum_equation equation;
    term terms[EINSUM_MAX_TERMS];
    size_t n_terms;
    label_list out; /* without labels of size 1 */
    operand scratch;
    size_t scratch_bytes;
} einsum;

static clg_status einsum_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    if (n->n_inputs <= EINSUM_MAX_TERMS) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "%s has more than %d inputs",
                     node_text(n, shown), EINSUM_MAX_TERMS);
}

static clg_status einsum_infer(op_context *c)
{
    einsum_equation e;
    const shape *shapes[EINSUM_MAX_TERMS];
    CLG_TRY(einsum_check(c->node)); /* limits the number of inputs to the size of `shapes` */
    for (size_t i = 0; i < c->n_inputs; i++) shapes[i] = &c->inputs[i].dims;
    const clg_status status = einsum_read(c->node, shapes, &e);
    if (status != CLG_OK) return op_prefix(c, status);
    shape out = {.rank = e.out.rank};
    for (int i = 0; i < out.rank; i++) out.dims[i] = e.sizes[e.out.labels[i]];
    fact_set(&c->outputs[0], c->inputs[0].dtype, &out);
    return CLG_OK;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Sets *out_n to the product of the labels' sizes, none of which is 0. Returns false on overflow.
 */
static bool span(const einsum *e, const label_list *list, int64_t *out_n)
{
    *out_n = 1;
    for (int i = 0; i < list->n; i++)
        if (!checked_mul_i64(*out_n, e->equation.sizes[list->labels[i]], out_n)) return false;
    return true;
}

/* Returns the labels of a set, sorted by descending stride. */
static label_list by_stride(label_set set, const int64_t *strides)
{
    label_list list = {0};
    for (int l = 0; l < EINSUM_LABELS; l++) {
        if (!(set & LABEL(l))) continue;
        int at = list.n++;
        for (; at > 0 && strides[list.labels[at - 1]] < strides[l]; at--)
            list.labels[at] = list.labels[at - 1];
        list.labels[at] = (uint8_t)l;
    }
    return list;
}

static label_list by_output(const einsum *e, label_set set)
{
    label_list list = {0};
    for (int i = 0; i < e->out.n; i++)
        if (set & LABEL(e->out.labels[i])) list.labels[list.n++] = e->out.labels[i];
    return list;
}

static void list_append(label_list *to, const label_list *more)
{
    for (int i = 0; i < more->n; i++) to->labels[to->n++] = more->labels[i];
}

static label_list list_join(const label_list *a, const label_list *b, const label_list *c)
{
    label_list all = *a;
    list_append(&all, b);
    list_append(&all, c);
    return all;
}

/* ---- terms ----------------------------------------------------------------------------------- */

/* Returns a term that is dense with labels in this order. */
static term term_dense(const einsum *e, operand at, clg_dtype dtype, const label_list *list)
{
    term t = {.at = at, .dtype = dtype};
    int64_t stride = 1;
    for (int i = list->n - 1; i >= 0; i--) {
        t.has |= LABEL(list->labels[i]);
        t.strides[list->labels[i]] = stride;
        stride *= e->equation.sizes[list->labels[i]];
    }
    return t;
}

static clg_status term_scratch(einsum *e, const label_list *list, term *out)
{
    int64_t n;
    size_t bytes;
    if (!span(e, list, &n) || !dtype_bytes(e->dtype, n, &bytes) || bytes > SIZE_MAX / 4 ||
        e->scratch_bytes > SIZE_MAX / 4)
        return error_no_memory(SIZE_MAX);
    *out = term_dense(e, e->scratch, e->dtype, list);
    out->at.offset_elems = (int64_t)(e->scratch_bytes / dtype_size(e->dtype));
    e->scratch_bytes += (bytes + 63) / 64 * 64;
    if (e->context->build.status == CLG_OK)
        e->impl->scratch_bytes[e->scratch.index] = e->scratch_bytes;
    return CLG_OK;
}

/* Sets *out to a dense term for a result with these labels: the node's output if `last`, and labels
 * and dtype are the output's; else new scratch memory. */
static clg_status term_result(einsum *e, const label_list *list, bool last, term *out)
{
    bool same = last && e->dtype == e->context->outputs[0].dtype && list->n == e->out.n;
    for (int i = 0; same && i < list->n; i++) same = list->labels[i] == e->out.labels[i];
    if (!same) return term_scratch(e, list, out);
    *out = term_dense(e, operand_output(0), e->dtype, list);
    return CLG_OK;
}

static bool is_output(const term *t) { return t->at.space == OPERAND_OUTPUT; }

/* Converts a term to the operand that pointwise and reduction lowering need; labels that it lacks
 * broadcast. */
static clg_status term_operand(const einsum *e, const term *t, const label_list *list,
                               lower_operand *out)
{
    *out = (lower_operand){.dtype = t->dtype, .dims = {.rank = list->n}};
    if (list->n > CLG_MAX_RANK)
        return lower_error(e->context, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                           "needs a matmul of more than %d dimensions", CLG_MAX_RANK);
    for (int i = 0; i < list->n; i++) {
        const int l = list->labels[i];
        const bool has = (t->has & LABEL(l)) != 0;
        out->dims.dims[i] = has ? e->equation.sizes[l] : 1;
        out->strides[i] = has ? t->strides[l] : 0;
    }
    return CLG_OK;
}

/* Appends the computation of to = a * b, or to = a where b is NULL, over these labels, in to's
 * dtype; to is dense. */
static clg_status combine(einsum *e, const term *a, const term *b, const label_list *list,
                          const term *to)
{
    const term *from[] = {a, b};
    lower_operand what[3];
    pointwise_group g = {0};
    pointwise_register r[2];
    pointwise_binding in[2];
    const size_t n = b ? 2 : 1;
    for (size_t i = 0; i < n; i++) {
        CLG_TRY(term_operand(e, from[i], list, &what[i]));
        CLG_TRY(pointwise_add_input(&g, from[i]->dtype, &r[i]));
        in[i] = (pointwise_binding){from[i]->at, &what[i]};
    }
    CLG_TRY(term_operand(e, to, list, &what[2]));
    what[2].dense = true;
    if (b)
        CLG_TRY(pointwise_add(&g, "Mul", r, NULL, &r[0]));
    else if (a->dtype == to->dtype)
        CLG_TRY(pointwise_add(&g, "Copy", r, NULL, &r[0]));
    CLG_TRY(pointwise_add_cast(&g, r[0], to->dtype, &r[0]));
    CLG_TRY(pointwise_add_output(&g, r[0]));
    const pointwise_binding out = {to->at, &what[2]};
    return pointwise_lower(e->context, e->impl, &g, in, &out);
}

/* Replaces *t by a copy in scratch, dense with labels in this order. */
static clg_status rearrange(einsum *e, term *t, const label_list *list)
{
    term to;
    CLG_TRY(term_scratch(e, list, &to));
    CLG_TRY(combine(e, t, NULL, list, &to));
    *t = to;
    return CLG_OK;
}

/* Replaces *t by its sum over these labels, in the node's output if `last` and it fits, else in
 * scratch. */
static clg_status sum_over(einsum *e, term *t, label_set labels, bool last)
{
    bool reduced[CLG_MAX_RANK];
    lower_operand what;
    term to;
    const label_list list = by_stride(t->has, t->strides),
                     kept = by_stride(t->has & ~labels, t->strides);
    if (labels == 0) return CLG_OK;
    CLG_TRY(term_operand(e, t, &list, &what));
    for (int i = 0; i < list.n; i++) reduced[i] = (labels & LABEL(list.labels[i])) != 0;
    CLG_TRY(term_result(e, &kept, last, &to));
    CLG_TRY(reduce_append_sum_to(e->context, e->impl, &what, t->at, reduced, to.at));
    *t = to;
    return CLG_OK;
}

/* ---- matrix products ------------------------------------------------------------------------- */

/* Returns whether the labels are contiguous in the term, so that they are one dimension of a GEMM,
 * and sets *out_stride to its stride. */
static bool is_one(const einsum *e, const term *t, const label_list *list, int64_t *out_stride)
{
    *out_stride = list->n > 0 ? t->strides[list->labels[list->n - 1]] : 1;
    for (int i = 0; i + 1 < list->n; i++)
        if (t->strides[list->labels[i]] !=
            t->strides[list->labels[i + 1]] * e->equation.sizes[list->labels[i + 1]])
            return false;
    return true;
}

static bool are_one(const einsum *e, const term *t, const label_list *a, const label_list *b)
{
    int64_t stride;
    return is_one(e, t, a, &stride) && is_one(e, t, b, &stride);
}

typedef struct product {
    term a, b, c;
    label_list batch, rows, cols, sum;
} product;

/* Merges batch labels that are contiguous in a, b and c into one dimension each. Returns the number
 * of dimensions; ends[i] is the position in p->batch of the last label of dimension i. */
static int batch_blocks(const einsum *e, const product *p, int ends[EINSUM_LABELS])
{
    int n = 0;
    for (int i = 0; i < p->batch.n; i++) {
        const int l = p->batch.labels[i], next = i + 1 < p->batch.n ? p->batch.labels[i + 1] : -1;
        const int64_t size = next >= 0 ? e->equation.sizes[next] : 0;
        if (next < 0 || p->a.strides[l] != p->a.strides[next] * size ||
            p->b.strides[l] != p->b.strides[next] * size ||
            p->c.strides[l] != p->c.strides[next] * size)
            ends[n++] = i;
    }
    return n;
}

/* Copies operands whose strides a GEMM does not support to scratch, and lets such a result be
 * computed in scratch. *out_blocks: the number of batch dimensions, as returned by batch_blocks. */
static clg_status make_matrices(einsum *e, product *p, int ends[EINSUM_LABELS], int *out_blocks)
{
    const label_list a = list_join(&p->batch, &p->rows, &p->sum),
                     b = list_join(&p->batch, &p->sum, &p->cols),
                     c = list_join(&p->batch, &p->rows, &p->cols);
    if (!are_one(e, &p->c, &p->rows, &p->cols)) CLG_TRY(term_scratch(e, &c, &p->c));
    if (!are_one(e, &p->a, &p->rows, &p->sum)) CLG_TRY(rearrange(e, &p->a, &a));
    if (!are_one(e, &p->b, &p->sum, &p->cols)) CLG_TRY(rearrange(e, &p->b, &b));
    *out_blocks = batch_blocks(e, p, ends);
    if (*out_blocks <= 2) return CLG_OK;
    CLG_TRY(term_scratch(e, &c, &p->c));
    CLG_TRY(rearrange(e, &p->a, &a));
    CLG_TRY(rearrange(e, &p->b, &b));
    *out_blocks = batch_blocks(e, p, ends);
    return CLG_OK;
}

static gemm_matrix matrix_of(const einsum *e, const term *t, const product *p,
                             const label_list *rows, const label_list *cols, const int *ends,
                             int n_blocks)
{
    const bool may_pack = e->impl->n_packings + 2 <= CANDIDATE_MAX_PACKINGS; /* a and b */
    gemm_matrix m = {.at = t->at,
                     .constant = t->constant && t->at.space == OPERAND_INPUT && may_pack};
    (void)is_one(e, t, rows, &m.rs);
    (void)is_one(e, t, cols, &m.cs);
    if (n_blocks > 0) m.b1 = t->strides[p->batch.labels[ends[n_blocks - 1]]];
    if (n_blocks > 1) m.b0 = t->strides[p->batch.labels[ends[0]]];
    return m;
}

static void exchange(int64_t *a, int64_t *b)
{
    const int64_t t = *a;
    *a = *b;
    *b = t;
}

/* Transposes the product: c^T = b^T x a^T, so that rows and columns of c are swapped. */
static void transpose(gemm_job *j)
{
    const gemm_matrix a = j->a;
    j->a = j->b;
    j->b = a;
    exchange(&j->a.rs, &j->a.cs);
    exchange(&j->b.rs, &j->b.cs);
    exchange(&j->c.rs, &j->c.cs);
    exchange(&j->m, &j->n);
}

static clg_status multiply(einsum *e, product *p)
{
    int ends[EINSUM_LABELS], n_blocks;
    CLG_TRY(make_matrices(e, p, ends, &n_blocks));
    gemm_job j = {
        .dtype = e->dtype, .batch = 1, .batch_in = 1, .epilogue = {.alpha = 1, .beta = 1}};
    j.m = j.n = j.k = 1;
    for (int i = 0; i < p->rows.n; i++) j.m *= e->equation.sizes[p->rows.labels[i]];
    for (int i = 0; i < p->cols.n; i++) j.n *= e->equation.sizes[p->cols.labels[i]];
    for (int i = 0; i < p->sum.n; i++) j.k *= e->equation.sizes[p->sum.labels[i]];
    for (int i = 0; i < p->batch.n; i++) {
        j.batch *= e->equation.sizes[p->batch.labels[i]];
        if (n_blocks < 2 || i > ends[0]) j.batch_in *= e->equation.sizes[p->batch.labels[i]];
    }
    j.a = matrix_of(e, &p->a, p, &p->rows, &p->sum, ends, n_blocks);
    j.b = matrix_of(e, &p->b, p, &p->sum, &p->cols, ends, n_blocks);
    j.c = matrix_of(e, &p->c, p, &p->rows, &p->cols, ends, n_blocks);
    if (j.n == 1 || (j.c.cs != 1 && j.c.rs == 1 && j.m > 1)) transpose(&j);
    return gemm_append(e->context, e->impl, &j, e->blas && gemm_fits_blas(&j));
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Returns the labels of the result and of all terms other than i and j: those that must be kept. */
static label_set wanted_beside(const einsum *e, size_t i, size_t j)
{
    label_set set = 0;
    for (int k = 0; k < e->out.n; k++) set |= LABEL(e->out.labels[k]);
    for (size_t t = 0; t < e->n_terms; t++)
        if (t != i && t != j) set |= e->terms[t].has;
    return set;
}

/* Replaces term i by the product of terms i and j. Labels that only one of the two has, and that
 * are not needed later, have been summed before. */
static clg_status contract(einsum *e, size_t i, size_t j)
{
    const bool last = e->n_terms == 2;
    const label_set wanted = wanted_beside(e, i, j);
    product p = {.a = e->terms[i], .b = e->terms[j]};
    const label_set both = p.a.has & p.b.has, batch = both & wanted, sum = both & ~wanted,
                    rows = p.a.has & ~both, cols = p.b.has & ~both;
    p.sum = by_stride(sum, p.a.strides);
    p.batch = last ? by_output(e, batch) : by_stride(batch, p.a.strides);
    p.rows = last ? by_output(e, rows) : by_stride(rows, p.a.strides);
    p.cols = last ? by_output(e, cols) : by_stride(cols, p.b.strides);
    label_list all = list_join(&p.batch, &p.rows, &p.cols);
    if (sum != 0 && (rows | cols) != 0) {
        const bool to_output = last && e->dtype == e->context->outputs[0].dtype;
        if (to_output)
            p.c = term_dense(e, operand_output(0), e->dtype, &e->out);
        else
            CLG_TRY(term_scratch(e, &all, &p.c));
        CLG_TRY(multiply(e, &p));
    } else if (sum != 0) {
        list_append(&all, &p.sum);
        CLG_TRY(term_scratch(e, &all, &p.c));
        CLG_TRY(combine(e, &p.a, &p.b, &all, &p.c));
        CLG_TRY(sum_over(e, &p.c, sum, last));
    } else {
        if (last) all = e->out;
        CLG_TRY(term_result(e, &all, last, &p.c));
        CLG_TRY(combine(e, &p.a, &p.b, &all, &p.c));
    }
    e->terms[i] = p.c;
    e->terms[j] = e->terms[--e->n_terms];
    return CLG_OK;
}

/* Sets *out_i and *out_j to the pair with the fewest multiplications, the first of equal ones. */
static void cheapest(const einsum *e, size_t *out_i, size_t *out_j)
{
    double min = 0;
    *out_i = 0;
    *out_j = 1;
    for (size_t i = 0; i < e->n_terms; i++)
        for (size_t j = i + 1; j < e->n_terms; j++) {
            double cost = 1;
            for (int l = 0; l < EINSUM_LABELS; l++)
                if ((e->terms[i].has | e->terms[j].has) & LABEL(l))
                    cost *= (double)e->equation.sizes[l];
            if ((i == 0 && j == 1) || cost < min) {
                min = cost;
                *out_i = i;
                *out_j = j;
            }
        }
}

/* ---- lowering -------------------------------------------------------------------------------- */

static clg_dtype arithmetic_of(clg_dtype dtype)
{
    switch (dtype) {
    case CLG_INT8:
    case CLG_INT16: return CLG_INT32;
    case CLG_UINT8:
    case CLG_UINT16: return CLG_UINT32;
    case CLG_BFLOAT16: return CLG_FLOAT32;
    default: return dtype;
    }
}

static term input_term(const einsum *e, size_t i)
{
    const lower_operand *in = &e->context->inputs[i];
    term t = {.at = operand_input((uint32_t)i), .dtype = in->dtype, .constant = in->constant};
    for (int d = 0; d < in->dims.rank; d++) {
        const int l = e->equation.terms[i].labels[d];
        if (in->dims.dims[d] == 1) continue;
        t.has |= LABEL(l);
        t.strides[l] += in->strides[d]; /* a repeated letter: the diagonal */
    }
    return t;
}

static clg_status add_impl(lower_context *c, const einsum_equation *equation, bool blas)
{
    einsum *e = arena_alloc(c->memory, 1, sizeof *e);
    if (!e) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *e = (einsum){.context = c, .blas = blas, .equation = *equation, .n_terms = c->n_inputs};
    e->dtype = arithmetic_of(c->outputs[0].dtype);
    e->impl = step_candidate(&c->build, blas ? "einsum_blas" : "einsum");
    e->scratch = step_scratch(&c->build, e->impl, 64);
    for (int i = 0; i < equation->out.rank; i++)
        if (equation->sizes[equation->out.labels[i]] != 1)
            e->out.labels[e->out.n++] = equation->out.labels[i];
    for (size_t i = 0; i < e->n_terms; i++) {
        e->terms[i] = input_term(e, i);
        const label_list own = by_stride(e->terms[i].has, e->terms[i].strides);
        if (e->dtype != e->terms[i].dtype) CLG_TRY(rearrange(e, &e->terms[i], &own));
    }
    for (size_t i = 0; i < e->n_terms; i++)
        CLG_TRY(
            sum_over(e, &e->terms[i], e->terms[i].has & ~wanted_beside(e, i, i), e->n_terms == 1));
    while (e->n_terms > 1) {
        size_t i, j;
        cheapest(e, &i, &j);
        CLG_TRY(contract(e, i, j));
    }
    if (is_output(&e->terms[0])) return CLG_OK;
    const term to = term_dense(e, operand_output(0), c->outputs[0].dtype, &e->out);
    return combine(e, &e->terms[0], NULL, &e->out, &to);
}

/* Writes zeros: the result of an empty sum. */
static clg_status add_zeros(lower_context *c)
{
    static const uint8_t zero[1] = {0};
    int64_t n;
    size_t bytes;
    candidate *impl = step_candidate(&c->build, "nothing");
    CLG_TRY(shape_n_elements(&c->outputs[0].dims, &n));
    if (!dtype_bytes(c->outputs[0].dtype, n, &bytes)) return error_no_memory(SIZE_MAX);
    if (bytes > 0) step_fill(&c->build, impl, operand_output(0), bytes, zero, 1);
    return CLG_OK;
}

static clg_status einsum_lower(lower_context *c)
{
    einsum_equation equation;
    const shape *shapes[EINSUM_MAX_TERMS];
    const clg_dtype dtype = c->outputs[0].dtype;
    for (size_t i = 0; i < c->n_inputs; i++) shapes[i] = &c->inputs[i].dims;
    CLG_TRY(work_check_dtype(c, dtype));
    const clg_status status = einsum_read(c->node, shapes, &equation);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    for (int l = 0; l < EINSUM_LABELS; l++)
        if (equation.sizes[l] == 0) return add_zeros(c);
    if (!lower_is_simd(c) && arithmetic_of(dtype) == CLG_FLOAT32) {
        CLG_TRY(add_impl(c, &equation, true));
        if (c->build.status == CLG_OK && !c->build.last_candidate->uses_blas) return CLG_OK;
    }
    return add_impl(c, &equation, false);
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {{'T', DTYPES_NUMERIC}, {0}};
static const op_attribute attributes[] = {{"equation", ATTRIBUTE_STRING, true, OP_ANY}, {0}};

const op_row op_rows_einsum[] = {
    {.name = "Einsum",
     .grad = GRAD_BY(grad_pass_einsum),
     .batch = BATCH_BY(batch_pass_einsum, BATCH_ALL),
     .since = 12,
     OP_INPUTS(1, OP_ANY_NUMBER, "T"),
     OP_OUTPUTS(1, 1, "T"),
     .types = types,
     .attributes = attributes,
     .flags = OP_STRIDED_INPUTS,
     .check = einsum_check,
     .infer = einsum_infer,
     .lower = einsum_lower},
};
const size_t n_op_rows_einsum = sizeof op_rows_einsum / sizeof *op_rows_einsum;
