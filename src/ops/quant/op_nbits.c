/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers com.microsoft.MatMulNBits: GEMMs with block-quantised weights of 4 or 8 bits, which stay
 * packed in memory. See cl/quant/nbits_simd.cl and nbits_simt.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/dot.h"

#include <inttypes.h>
#include <string.h>

enum nbits_input { NBITS_A, NBITS_B, NBITS_SCALES, NBITS_ZEROS, NBITS_GROUPS, NBITS_BIAS };

typedef struct nbits_sizes {
    int64_t n, k, bits, block, blocks;
} nbits_sizes;

static nbits_sizes read_sizes(const node *n)
{
    nbits_sizes s = {node_int(n, "N", 0), node_int(n, "K", 0), node_int(n, "bits", 4),
                     node_int(n, "block_size", 0), 0};
    s.blocks = s.block > 0 ? s.k / s.block + (s.k % s.block != 0) : 0;
    return s;
}

static clg_status nbits_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const nbits_sizes s = read_sizes(n);
    if (s.bits != 4 && s.bits != 8)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "%s has bits %" PRId64 "; 4 and 8 are supported", node_text(n, shown),
                         s.bits);
    if (s.n < 1 || s.k < 1 || s.n > INT32_MAX / 2 || s.k > INT32_MAX / 2 || s.block < 16 ||
        s.block > INT32_MAX / 2 || s.block % 16 != 0 ||
        (strcmp(n->domain, DOMAIN_INTERNAL) != 0 && (s.block & (s.block - 1)) != 0))
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s has N %" PRId64 ", K %" PRId64 ", block_size %" PRId64,
                         node_text(n, shown), s.n, s.k, s.block);
    if (node_int(n, "weight_prepacked", 0) != 0)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "%s: weight_prepacked is only supported as 0", node_text(n, shown));
    return CLG_OK;
}

static clg_status check_count(const op_context *c, size_t i, int64_t wanted)
{
    int64_t n;
    CLG_TRY(shape_n_elements(&op_input(c, i)->dims, &n));
    if (!op_has_input(c, i) || n == DIM_UNKNOWN || n == wanted) return CLG_OK;
    return op_error(c, CLG_ERROR_SHAPE,
                    "input %zu has %" PRId64 " elements where N, K and block_size require %" PRId64,
                    i, n, wanted);
}

static clg_status nbits_infer(op_context *c)
{
    const nbits_sizes s = read_sizes(c->node);
    shape y = op_input(c, NBITS_A)->dims;
    if (y.rank < 1 || (y.dims[y.rank - 1] != DIM_UNKNOWN && y.dims[y.rank - 1] != s.k))
        return op_error(c, CLG_ERROR_SHAPE, "the rows of A must have K = %" PRId64 " elements",
                        s.k);
    if (op_has_input(c, NBITS_GROUPS))
        return op_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "g_idx is not supported");
    CLG_TRY(check_count(c, NBITS_B, s.n * s.blocks * (s.block * s.bits / 8)));
    CLG_TRY(check_count(c, NBITS_SCALES, s.n * s.blocks));
    const bool packed = op_input(c, NBITS_ZEROS)->dtype == CLG_UINT8;
    CLG_TRY(check_count(c, NBITS_ZEROS, s.n * (packed ? (s.blocks * s.bits + 7) / 8 : s.blocks)));
    CLG_TRY(check_count(c, NBITS_BIAS, s.n));
    y.dims[y.rank - 1] = s.n;
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

/* What the kernels of both classes are made of. */
typedef struct nbits_problem {
    nbits_sizes sizes;
    clg_dtype dtype, zero_dtype; /* zero_dtype: uint8 without zero points, whose place B takes */
    int64_t m, block_bytes;
    int zero_form; /* P_ZERO */
    bool has_bias;
} nbits_problem;

static nbits_problem read_problem(const lower_context *c)
{
    const lower_operand *a = lower_input(c, NBITS_A);
    const bool has_zeros = lower_has_input(c, NBITS_ZEROS);
    nbits_problem p = {.sizes = read_sizes(c->node),
                       .dtype = a->dtype,
                       .zero_dtype = has_zeros ? lower_input(c, NBITS_ZEROS)->dtype : CLG_UINT8,
                       .m = shape_product(&a->dims, 0, a->dims.rank - 1),
                       .has_bias = lower_has_input(c, NBITS_BIAS)};
    p.block_bytes = p.sizes.block * p.sizes.bits / 8;
    p.zero_form = !has_zeros ? 0 : p.zero_dtype == CLG_UINT8 ? 1 : 2;
    return p;
}

/* Returns the parameters that the kernels of both classes have, as prelude_text takes them. */
static const char *common_prelude(lower_context *c, const nbits_problem *p)
{
    const char *text =
        arena_printf(c->memory, "P_BITS=%d P_ZERO=%d P_Z=%d P_BIAS=%d P_T=%d P_FMA=%d",
                     (int)p->sizes.bits, p->zero_form, p->zero_form == 2 ? (int)p->zero_dtype : 1,
                     p->has_bias, (int)p->dtype, work_fma(c));
    if (!text && c->build.status == CLG_OK) c->build.status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    return text ? text : "";
}

/* Returns the bytes of A, as the node has it. */
static double a_bytes(const nbits_problem *p)
{
    return (double)p->m * (double)p->sizes.k * (double)dtype_size(p->dtype);
}

/* Returns the bytes of the weights with their scales and zero points, the bias and the results. */
static double operand_bytes(const lower_context *c, const nbits_problem *p)
{
    const double elem = (double)dtype_size(p->dtype),
                 blocks = (double)(p->sizes.n * p->sizes.blocks);
    double bytes = blocks * ((double)p->block_bytes + elem) + (double)(p->m * p->sizes.n) * elem;
    if (p->has_bias) bytes += (double)p->sizes.n * elem;
    if (p->zero_form) {
        const shape *zeros = &lower_input(c, NBITS_ZEROS)->dims;
        bytes += (double)shape_product(zeros, 0, zeros->rank) * (double)dtype_size(p->zero_dtype);
    }
    return bytes;
}

/* Appends the operands from the weights on, and says how much work it is; input_bytes: of A in the
 * form in which the step reads it. */
static void append_operands(lower_context *c, step *k, const nbits_problem *p, double input_bytes)
{
    STEP_BUFFERS(&c->build, k, {operand_input(NBITS_B), CLG_UINT8},
                 {operand_input(NBITS_SCALES), p->dtype},
                 {operand_input(p->zero_form ? NBITS_ZEROS : NBITS_B), p->zero_dtype},
                 {operand_input(p->has_bias ? NBITS_BIAS : NBITS_A), p->dtype},
                 {operand_output(0), p->dtype});
    k->flops = 2.0 * (double)p->m * (double)p->sizes.n * (double)p->sizes.k;
    k->bytes = operand_bytes(c, p) + input_bytes;
}

/* Sizes of the SIMD class. */
enum {
    COLS = 4,               /* columns of a register tile, as in cl/quant/nbits_simd.cl */
    SHARES_PER_UNIT = 8,    /* work-items per core, to balance the load. Estimated, not measured. */
    ROWS_BYTES = 512 << 10, /* of A, arranged, that a core takes at a time: half of its L2 cache */
    ROUNDED = 256 /* most elements of A with one scale, as in ONNX Runtime's CPU provider */
};

/* Returns P_SCALES: how scales belong to the lanes of a vector of `lanes` words. */
static int64_t scales_form(int64_t per_block, int64_t lanes)
{
    if (per_block % lanes == 0) return 1;
    for (int64_t n = 2; n <= 8; n *= 2)
        if (n * per_block == lanes) return n;
    return 0;
}

/* Returns the rows of a register tile for m rows of A: few are left over, and all are in registers.
 */
static int tile_rows(const lower_context *c, int64_t m)
{
    const int most = work_simd_lanes(c) == 16 ? 6 : 3;
    if (m <= 2) return 2;
    if (most == 6 && work_ceil_div(m, 6) * 60 > work_ceil_div(m, 4) * 44) return 4;
    return most;
}

/* How the SIMD class divides the work. */
typedef struct nbits_simd {
    int64_t per_block, words, lanes, vectors; /* see cl/quant/nbits_simd.cl */
    int64_t share, groups;
} nbits_simd;

static nbits_simd divide_simd(const lower_context *c, const nbits_problem *p)
{
    nbits_simd d = {.per_block = p->block_bytes / 4, .lanes = work_simd_lanes(c)};
    const int64_t tiles = work_ceil_div(p->sizes.n, COLS);
    d.words = p->sizes.blocks * d.per_block;
    d.vectors = work_ceil_div(d.words, d.lanes);
    d.share = work_ceil_div(tiles, SHARES_PER_UNIT * work_units(c)) * COLS;
    d.groups = work_ceil_div(p->sizes.n, d.share);
    return d;
}

static const char *simd_prelude(lower_context *c, const nbits_problem *p, const nbits_simd *d,
                                int rows, const char *more)
{
    return prelude_text(&c->build, "%s P_MR=%d P_SCALES=%d P_VEC=%d%s", common_prelude(c, p), rows,
                        (int)scales_form(d->per_block, d->lanes), (int)d->lanes, more);
}

/* Adds the implementation with dot products of bytes. */
static void lower_dot(lower_context *c, const nbits_problem *p)
{
    step_builder *b = &c->build;
    const nbits_simd d = divide_simd(c, p);
    const int rows = p->m > 2 ? 4 : (int)p->m, x_vectors = p->sizes.bits == 4 ? 4 : 3;
    const char *prelude = simd_prelude(c, p, &d, rows > 0 ? rows : 1, " P_UNIT=4 P_DOT=1");
    candidate *impl = step_candidate(b, "nbits_dot");
    const size_t x_bytes = (size_t)(p->m * d.vectors * x_vectors * d.lanes) * sizeof(int32_t);
    const operand x = step_scratch(b, impl, x_bytes);
    const int64_t per_scale = work_min(d.per_block, ROUNDED * p->sizes.bits / 32),
                  scales = d.words / per_scale;
    step *first = step_kernel(b, impl, "nbits_dot", "nbits_quantize", prelude);
    STEP_BUFFERS(b, first, {operand_input(NBITS_A), p->dtype}, {x, CLG_INT32});
    STEP_INTS(b, first, p->m, p->sizes.k, scales, per_scale, d.vectors);
    first->bytes = a_bytes(p) + (double)x_bytes;
    work_range_2d(c, first, scales, 1, p->m, 1);
    step *k = step_kernel(b, impl, "nbits_dot", "nbits_dot", prelude);
    step_arg_buffer(b, k, x, CLG_INT32);
    append_operands(c, k, p, (double)x_bytes);
    STEP_INTS(b, k, p->m, p->sizes.n, p->sizes.blocks, d.words, d.per_block, d.vectors, d.share);
    k->fixed_groups = true;
    work_range_2d(c, k, d.groups, 1, work_ceil_div(p->m, rows > 0 ? rows : 1), 1);
}

static void lower_simd(lower_context *c, const nbits_problem *p)
{
    step_builder *b = &c->build;
    const nbits_simd d = divide_simd(c, p);
    const int64_t row = d.vectors * d.lanes * 32 / p->sizes.bits; /* elements, arranged */
    const bool tile = p->m > 1;
    const char *prelude = simd_prelude(c, p, &d, tile ? tile_rows(c, p->m) : 1, "");
    candidate *impl = step_candidate(b, "nbits_simd");
    const size_t x_bytes = (size_t)(p->m * row) * sizeof(float);
    const operand x = step_scratch(b, impl, x_bytes);
    step *first = step_kernel(b, impl, "nbits_simd", "nbits_arrange", prelude);
    STEP_BUFFERS(b, first, {operand_input(NBITS_A), p->dtype}, {x, CLG_FLOAT32});
    STEP_INTS(b, first, p->m, p->sizes.k, d.vectors);
    first->bytes = a_bytes(p) + (double)x_bytes;
    work_range_2d(c, first, d.vectors, 1, p->m, 1);
    step *k = step_kernel(b, impl, "nbits_simd", tile ? "nbits_tile" : "nbits_row", prelude);
    step_arg_buffer(b, k, x, CLG_FLOAT32);
    if (tile) {
        const size_t bytes = (size_t)(d.groups * row * COLS) * sizeof(float);
        step_arg_buffer(b, k, step_scratch(b, impl, bytes), CLG_FLOAT32);
    }
    append_operands(c, k, p, (double)x_bytes);
    STEP_INTS(b, k, p->m, p->sizes.n, p->sizes.blocks, d.words, d.per_block, d.vectors, d.share);
    if (tile) {
        const int64_t rows = row > 0 ? ROWS_BYTES / (row * (int64_t)sizeof(float)) / 12 * 12 : 0;
        step_arg_int(b, k, rows > 12 ? rows : 12); /* 12: a multiple of each P_MR */
    }
    k->fixed_groups = true;
    work_range_2d(c, k, d.groups, 1, tile ? 1 : p->m, 1);
}

/* Returns log2(n), or -1 where n is not a power of two. */
static int64_t log2_of(int64_t n)
{
    int64_t log = 0;
    while ((int64_t)1 << log < n) log++;
    return (int64_t)1 << log == n ? log : -1;
}

static void lower_simt(lower_context *c, const nbits_problem *p)
{
    step_builder *b = &c->build;
    const int64_t per_block = p->block_bytes / 4, words = p->sizes.blocks * per_block;
    /* P_COLS: elements of A are read once for four columns, each of which a work-item reads a word
     * of before it computes. P_ROWS: weights become floats once for four rows. Estimated. */
    const int64_t local = (int64_t)work_local(c, work_min(words, 128) > 32 ? words : 32, 128);
    int rows = p->m > 1 ? 4 : 1, cols = 4;
    while (rows * cols > local && rows > 1) rows /= 2;
    while (rows * cols > local && cols > 1) cols /= 2;
    step *k = step_kernel(b, step_candidate(b, "nbits_simt"), "nbits_simt", "nbits_simt",
                          prelude_text(b, "%s P_ROWS=%d P_COLS=%d P_LOCAL=%d P_VEC=4",
                                       common_prelude(c, p), rows, cols, (int)local));
    step_arg_buffer(b, k, operand_input(NBITS_A), p->dtype);
    append_operands(c, k, p, a_bytes(p));
    STEP_INTS(b, k, p->m, p->sizes.n, p->sizes.k, p->sizes.blocks, words, per_block,
              log2_of(per_block));
    work_range_2d(c, k, work_ceil_div(p->sizes.n, cols) * local, (uint64_t)local,
                  work_ceil_div(p->m, rows), 1);
}

/* Returns whether elements of A may be rounded to 8 bits: with accuracy_level 4, except for zero
 * points of a float type, with which ONNX Runtime's CPU provider computes in float32 too. */
static bool may_round(const lower_context *c, const nbits_problem *p)
{
    return node_int(c->node, "accuracy_level", 0) == 4 && p->zero_form != 2;
}

static clg_status nbits_lower(lower_context *c)
{
    const nbits_problem p = read_problem(c);
    if (lower_is_simd(c) && may_round(c, &p) && dot_is_proved(c, DOT_BYTE) &&
        work_simd_lanes(c) >= 8)
        lower_dot(c, &p);
    else if (lower_is_simd(c))
        lower_simd(c, &p);
    else
        lower_simt(c, &p);
    return CLG_OK;
}

#define HALF_OR_FLOAT (DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16))
static const op_types types[] = {{'T', HALF_OR_FLOAT},
                                 {'B', DTYPE_BIT(CLG_UINT8)},
                                 {'Z', DTYPE_BIT(CLG_UINT8) | HALF_OR_FLOAT},
                                 {'I', DTYPE_BIT(CLG_INT32)},
                                 {0}};
static const op_attribute attributes[] = {
    {"K", ATTRIBUTE_INT, true, OP_COUNT},
    {"N", ATTRIBUTE_INT, true, OP_COUNT},
    {"bits", ATTRIBUTE_INT, false, OP_ANY},
    {"block_size", ATTRIBUTE_INT, true, OP_BETWEEN(0, INT32_MAX)},
    {"accuracy_level", ATTRIBUTE_INT, false, OP_BETWEEN(0, 4)},
    {"weight_prepacked", ATTRIBUTE_INT, false, OP_ANY}, /* newer ONNX Runtimes write the default */
    {0}};

#define NBITS                                                                                      \
    .name = "MatMulNBits", .since = 1, OP_INPUTS(3, 6, "TBTZIT"), OP_OUTPUTS(1, 1, "T"),           \
    .types = types, .attributes = attributes, .check = nbits_check, .infer = nbits_infer,          \
    .lower = nbits_lower

/* The internal one, of the pass `nbits`, has blocks of any multiple of 16. */
const op_row op_rows_nbits[] = {
    {NBITS, .domain = "com.microsoft", .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = BATCH_OVER(NULL, -1)},
    {NBITS, .domain = DOMAIN_INTERNAL, .grad = GRAD_NONE(GRAD_OF_PASSES)},
};
const size_t n_op_rows_nbits = sizeof op_rows_nbits / sizeof *op_rows_nbits;
