/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers PackNBits, an internal operator of the pass `nbits`: packs quantised weights or zero
 * points as MatMulNBits reads them. See cl/quant/pack_nbits.cl.
 *
 *   X       [k, n], or [n, k] with by_row 1; int4, uint4, int8 or uint8
 *   Y       uint8 [n, length * bits / 8, rounded up]; signed numbers plus 8 or 128; elements from k
 *           on are 0
 *   length  elements of a row of Y, at least k
 */
#include "ops/grad/grad_rule.h"
#include "ops/lowering/work.h"

static int bits_of(clg_dtype dtype) { return dtype == CLG_INT4 || dtype == CLG_UINT4 ? 4 : 8; }

static clg_status pack_infer(op_context *c)
{
    const value_fact *x = op_input(c, 0);
    const int64_t by_row = node_int(c->node, "by_row", 0);
    shape y = {.rank = 2, .dims = {DIM_UNKNOWN, DIM_UNKNOWN}};
    if (x->dims.rank != RANK_UNKNOWN && x->dims.rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "X must be a matrix");
    if (x->dims.rank == 2) y.dims[0] = x->dims.dims[by_row ? 0 : 1];
    if (x->dtype != CLG_DTYPE_NONE)
        y.dims[1] = (node_int(c->node, "length", 0) * bits_of(x->dtype) + 7) / 8;
    fact_set(&c->outputs[0], CLG_UINT8, &y);
    return CLG_OK;
}

static clg_status pack_lower(lower_context *c)
{
    const lower_operand *x = lower_input(c, 0);
    const bool by_row = node_int(c->node, "by_row", 0) != 0;
    const int64_t n = x->dims.dims[by_row ? 0 : 1], k = x->dims.dims[by_row ? 1 : 0],
                  row_bytes = c->outputs[0].dims.dims[1];
    step_builder *b = &c->build;
    step *s = step_kernel(b, step_candidate(b, "pack_nbits"), "pack_nbits", "pack_nbits",
                          prelude_text(b, "P_BITS=%d P_SIGNED=%d P_BY_ROW=%d", bits_of(x->dtype),
                                       x->dtype == CLG_INT4 || x->dtype == CLG_INT8, by_row));
    STEP_INTS(b, s, n, k, row_bytes);
    STEP_BUFFERS(b, s, {operand_input(0), x->dtype}, {operand_output(0), CLG_UINT8});
    s->bytes = 2.0 * (double)n * (double)row_bytes;
    work_range_rows(c, s, by_row ? row_bytes : n, by_row ? n : row_bytes);
    return CLG_OK;
}

static const op_types types[] = {
    {'Q', DTYPE_BIT(CLG_INT4) | DTYPE_BIT(CLG_UINT4) | DTYPE_BIT(CLG_INT8) | DTYPE_BIT(CLG_UINT8)},
    {0}};
static const op_attribute attributes[] = {
    {"by_row", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"length", ATTRIBUTE_INT, true, OP_BETWEEN(1, INT32_MAX / 2)},
    {0}};

const op_row op_rows_pack_nbits[] = {
    {.name = "PackNBits",
     .grad = GRAD_NONE(GRAD_OF_PASSES),
     .domain = DOMAIN_INTERNAL,
     .since = 1,
     OP_INPUTS(1, 1, "Q"),
     OP_OUTPUTS(1, 1, "?"),
     .types = types,
     .attributes = attributes,
     .infer = pack_infer,
     .lower = pack_lower},
};
const size_t n_op_rows_pack_nbits = sizeof op_rows_pack_nbits / sizeof *op_rows_pack_nbits;
