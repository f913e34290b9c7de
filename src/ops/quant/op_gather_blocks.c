/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers com.microsoft.GatherBlockQuantized: gathers and dequantises rows of a table, such as a
 * decoder's embeddings, that stays packed in memory with 2, 4 or 8 bits an element. See
 * cl/quant/gather_blocks.cl.
 */
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

#include <inttypes.h>
#include <string.h>

enum { DATA, INDICES, SCALES, ZEROS };

typedef struct table {
    int64_t rows, cols, block, blocks;
    int bits, per; /* per: quantised elements per element of the data tensor */
} table;

static table read_table(const node *n, clg_dtype dtype, const shape *data)
{
    table t = {.bits = dtype == CLG_UINT8 ? (int)node_int(n, "bits", 4) : 4,
               .per = 1,
               .block = node_int(n, "block_size", 128),
               .rows = data->dims[0]};
    if (dtype == CLG_UINT8) t.per = 8 / t.bits;
    t.cols = t.per;
    for (int i = 1; i < data->rank; i++)
        t.cols = t.cols == DIM_UNKNOWN || data->dims[i] == DIM_UNKNOWN ? DIM_UNKNOWN
                                                                       : t.cols * data->dims[i];
    t.blocks = t.cols == DIM_UNKNOWN ? DIM_UNKNOWN : (t.cols + t.block - 1) / t.block;
    return t;
}

static clg_status blocks_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const int64_t bits = node_int(n, "bits", 4), block = node_int(n, "block_size", 128);
    if (bits != 2 && bits != 4 && bits != 8)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "%s has bits %" PRId64 "; 2, 4 and 8 are supported", node_text(n, shown),
                         bits);
    if (block < 16 || block > INT32_MAX / 2 || (block & (block - 1)) != 0)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s has block_size %" PRId64, node_text(n, shown),
                         block);
    return CLG_OK;
}

static bool fits(const shape *s, int64_t rows, int64_t cols)
{
    return s->rank == 2 &&
           (rows == DIM_UNKNOWN || s->dims[0] == DIM_UNKNOWN || s->dims[0] == rows) &&
           (cols == DIM_UNKNOWN || s->dims[1] == DIM_UNKNOWN || s->dims[1] == cols);
}

static clg_status blocks_infer(op_context *c)
{
    const shape *data = &op_input(c, DATA)->dims;
    shape y = op_input(c, INDICES)->dims;
    int gathered, quantized;
    if (data->rank < 2 || (data->rank > 2 && strcmp(c->node->domain, DOMAIN_INTERNAL) != 0) ||
        shape_axis(node_int(c->node, "gather_axis", 0), 2, "gather_axis", &gathered) != CLG_OK ||
        shape_axis(node_int(c->node, "quantize_axis", 1), 2, "quantize_axis", &quantized) !=
            CLG_OK ||
        gathered != 0 || quantized != 1)
        return op_error(c, CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                        "rows of a table [rows, columns] in blocks of columns are supported");
    const table t = read_table(c->node, op_input(c, DATA)->dtype, data);
    const int64_t zeros = t.blocks == DIM_UNKNOWN ? DIM_UNKNOWN : (t.blocks + t.per - 1) / t.per;
    if (!fits(&op_input(c, SCALES)->dims, t.rows, t.blocks) ||
        (op_has_input(c, ZEROS) && !fits(&op_input(c, ZEROS)->dims, t.rows, zeros)))
        return op_error(c, CLG_ERROR_SHAPE, "scales or zero points do not fit the table's blocks");
    if (y.rank == CLG_MAX_RANK) return op_error(c, CLG_ERROR_SHAPE, "the result has too many axes");
    y.dims[y.rank++] = t.cols;
    fact_set(&c->outputs[0], c->outputs[0].dtype, &y);
    return CLG_OK;
}

static clg_status blocks_lower(lower_context *c)
{
    const lower_operand *data = lower_input(c, DATA), *index = lower_input(c, INDICES),
                        *zeros = lower_input(c, ZEROS);
    const table t = read_table(c->node, data->dtype, &data->dims);
    const bool has_zeros = lower_has_input(c, ZEROS);
    const clg_dtype dtype = c->outputs[0].dtype;
    int64_t picks;
    CLG_TRY(shape_n_elements(&index->dims, &picks));
    step_builder *b = &c->build;
    step *s =
        step_kernel(b, step_candidate(b, "gather_blocks"), "gather_blocks", "gather_blocks",
                    prelude_text(b,
                                 "P_BITS=%d P_SIGNED=%d P_PER=%d P_ZERO=%d P_INT=%d P_T=%d "
                                 "P_FMA=%d P_VEC=1",
                                 t.bits, data->dtype == CLG_INT4, t.per, has_zeros,
                                 index->dtype == CLG_INT64 ? 64 : 32, (int)dtype, work_fma(c)));
    STEP_INTS(b, s, picks, t.rows, t.cols, t.block, t.blocks,
              has_zeros ? zeros->dims.dims[1] * t.per : 0,
              data->dtype == CLG_UINT8 ? 1 << (t.bits - 1) : 0);
    STEP_BUFFERS(b, s, {operand_input(DATA), data->dtype}, {operand_input(INDICES), index->dtype},
                 {operand_input(SCALES), dtype},
                 {operand_input(has_zeros ? ZEROS : DATA), data->dtype},
                 {operand_output(0), dtype});
    s->bytes = (double)picks * (double)t.cols * ((double)t.bits / 8 + (double)dtype_size(dtype));
    work_range_rows(c, s, t.cols, picks);
    return CLG_OK;
}

static const op_types types[] = {
    {'D', DTYPE_BIT(CLG_UINT8) | DTYPE_BIT(CLG_INT4) | DTYPE_BIT(CLG_UINT4)},
    {'I', DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
    {'S', DTYPE_BIT(CLG_FLOAT32) | DTYPE_BIT(CLG_FLOAT16) | DTYPE_BIT(CLG_BFLOAT16)},
    {0}};
static const op_attribute attributes[] = {
    {"bits", ATTRIBUTE_INT, false, OP_ANY},
    {"block_size", ATTRIBUTE_INT, false, OP_BETWEEN(0, INT32_MAX)},
    {"gather_axis", ATTRIBUTE_INT, false, OP_ANY},
    {"quantize_axis", ATTRIBUTE_INT, false, OP_ANY},
    {0}};

#define GATHER_BLOCKS                                                                              \
    .name = "GatherBlockQuantized", .since = 1, OP_INPUTS(3, 4, "DISD"), OP_OUTPUTS(1, 1, "S"),    \
    .types = types, .attributes = attributes, .check = blocks_check, .infer = blocks_infer,        \
    .lower = blocks_lower

/* The internal one, of the pass `nbits`, takes a table [rows, ...] of any rank for [rows, columns].
 */
const op_row op_rows_gather_blocks[] = {
    {GATHER_BLOCKS, .domain = "com.microsoft", .grad = GRAD_NONE(GRAD_QUANTIZED),
     .batch = OP_BATCH(.pass = batch_pass_gather, .rows = 2, .attribute = "gather_axis")},
    {GATHER_BLOCKS, .domain = DOMAIN_INTERNAL, .grad = GRAD_NONE(GRAD_OF_PASSES)},
};
const size_t n_op_rows_gather_blocks = sizeof op_rows_gather_blocks / sizeof *op_rows_gather_blocks;
