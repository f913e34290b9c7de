/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements stream compaction (compact.h): sizes of blocks, and the arguments of the kernels.
 */
#include "ops/lowering/compact.h"

#include "ops/lowering/work.h"

/* Elements of a block; a work-group counts one block. Estimated, not measured; checked by: cltool
 * profile MODEL    (compact, of a model with NonZero or Compress) */
#define MIN_BLOCK 4096  /* elements: processing them takes much longer than starting a work-group */
#define MAX_BLOCKS 1024 /* one work-group computes the prefix sum of all blocks */

static int64_t block_length(int64_t n)
{
    const int64_t min = (n + MAX_BLOCKS - 1) / MAX_BLOCKS;
    return min > MIN_BLOCK ? min : MIN_BLOCK;
}

int64_t compact_blocks(int64_t n) { return n <= 0 ? 1 : (n - 1) / block_length(n) + 1; }

/* Returns a mask of the bits that make an element non-zero. */
static int64_t value_bits(clg_dtype dtype)
{
    switch (dtype_is_float(dtype) ? dtype_size(dtype) : 0) {
    case 2: return 0x7fff;
    case 4: return 0x7fffffff;
    case 8: return INT64_MAX;
    default: return -1;
    }
}

static step *start(lower_context *c, candidate *impl, clg_dtype dtype, const char *entry,
                   compact_form form, uint64_t local)
{
    return step_kernel(&c->build, impl, "compact", entry,
                       prelude_text(&c->build,
                                    "P_SIZE=%d P_VEC=1 P_FP64=0 P_INDEX=32 P_LOCAL=%d P_FORM=%d",
                                    (int)dtype_size(dtype), (int)local, (int)form));
}

static uint64_t local_of(const lower_context *c, int64_t n)
{
    return lower_is_simd(c) ? 1 : work_group_local(c, n);
}

static void block_args(lower_context *c, step *s, const compaction *what)
{
    step_builder *b = &c->build;
    STEP_INTS(b, s, what->n, block_length(what->n), compact_blocks(what->n));
    step_arg_long(b, s, value_bits(what->dtype));
    STEP_BUFFERS(b, s, {what->x, what->dtype}, {what->offsets, CLG_INT32});
    s->bytes = (double)what->n * (double)dtype_size(what->dtype);
}

void compact_append_offsets(lower_context *c, candidate *impl, int64_t n, operand counts,
                            operand total)
{
    step_builder *b = &c->build;
    const uint64_t local = local_of(c, n);
    step *s = start(c, impl, CLG_UINT8, "compact_offsets", COMPACT_LIST, local);
    step_arg_int(b, s, n);
    STEP_BUFFERS(b, s, {counts, CLG_INT32}, {total, CLG_INT64});
    work_range_groups(c, s, 1, local);
}

void compact_append_count(lower_context *c, candidate *impl, const compaction *what, operand total)
{
    const int64_t n_blocks = compact_blocks(what->n);
    const uint64_t local = local_of(c, what->n);
    step *s = start(c, impl, what->dtype, "compact_count", COMPACT_LIST, local);
    block_args(c, s, what);
    work_range_groups(c, s, n_blocks, local);
    compact_append_offsets(c, impl, n_blocks, what->offsets, total);
}

void compact_append_write(lower_context *c, candidate *impl, const compaction *what,
                          compact_form form, const shape *dims, int64_t found, operand y)
{
    step_builder *b = &c->build;
    const uint64_t local = local_of(c, what->n);
    const int rank = dims ? dims->rank : 0;
    step *s = start(c, impl, what->dtype, "compact_write", form, local);
    block_args(c, s, what);
    STEP_INTS(b, s, found, rank);
    for (int d = 0; d < CLG_MAX_RANK; d++) step_arg_int(b, s, d < rank ? dims->dims[d] : 1);
    step_arg_buffer(b, s, y, form == COMPACT_COORDINATES ? CLG_INT64 : CLG_INT32);
    work_range_groups(c, s, compact_blocks(what->n), local);
}
