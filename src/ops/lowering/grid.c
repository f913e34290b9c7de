/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements grid.h: merges dimensions of index spaces and computes the NDRanges of kernels.
 */
#include "ops/lowering/grid.h"

#include "ops/lowering/work.h"

#include <string.h>

grid_dims *grid_create(arena *memory, const shape *over, size_t n_operands)
{
    grid_dims *g = arena_alloc(memory, 1, sizeof *g);
    if (!g) return NULL;
    g->strides = arena_alloc(memory, n_operands + 1, sizeof *g->strides);
    if (!g->strides) return NULL;
    g->rank = over->rank;
    memcpy(g->dims, over->dims, (size_t)over->rank * sizeof g->dims[0]);
    g->n_operands = n_operands;
    return g;
}

void grid_set_operand(grid_dims *g, size_t which, const lower_operand *what)
{
    const int shift = g->rank - what->dims.rank;
    for (int i = 0; i < shift; i++) g->strides[which][i] = 0;
    for (int i = 0; i < what->dims.rank; i++)
        g->strides[which][i + shift] = what->dims.dims[i] == 1 ? 0 : what->strides[i];
}

void grid_set_strides(grid_dims *g, size_t which, const int64_t *strides)
{
    memcpy(g->strides[which], strides, (size_t)g->rank * sizeof strides[0]);
}

static void move_dim(grid_dims *g, int from, int to)
{
    g->dims[to] = g->dims[from];
    for (size_t k = 0; k < g->n_operands; k++) g->strides[k][to] = g->strides[k][from];
}

/* Returns whether dimensions `outer` and `inner`, to its right, can be merged: for every operand,
 * the stride of `outer` is the stride of `inner` times its size. */
static bool continues(const grid_dims *g, int outer, int inner)
{
    for (size_t k = 0; k < g->n_operands; k++)
        if (g->strides[k][outer] != g->strides[k][inner] * g->dims[inner]) return false;
    return true;
}

void grid_collapse(grid_dims *g)
{
    int rank = 0;
    for (int i = 0; i < g->rank; i++) {
        if (g->dims[i] == 1) continue;
        if (rank > 0 && continues(g, rank - 1, i)) {
            const int64_t outer = g->dims[rank - 1];
            move_dim(g, i, rank - 1);
            g->dims[rank - 1] *= outer;
        } else {
            move_dim(g, i, rank++);
        }
    }
    g->rank = rank;
}

int64_t grid_n_elements(const grid_dims *g)
{
    int64_t n = 1;
    for (int i = 0; i < g->rank; i++) n *= g->dims[i];
    return n;
}

bool grid_is_dense(const grid_dims *g, size_t which)
{
    int64_t stride = 1;
    for (int i = g->rank - 1; i >= 0; i--) {
        if (g->dims[i] != 1 && g->strides[which][i] != stride) return false;
        stride *= g->dims[i];
    }
    return true;
}

bool grid_needs_64_bits(const grid_dims *g)
{
    /* Half of int's range, so that a loop may count one step past the end. */
    const int64_t max = INT32_MAX / 2;
    if (grid_n_elements(g) > max) return true;
    for (size_t k = 0; k < g->n_operands; k++) {
        int64_t reach = 0;
        for (int i = 0; i < g->rank; i++) {
            const int64_t stride = g->strides[k][i];
            if (stride > max || stride < -max) return true;
            reach += (g->dims[i] - 1) * (stride < 0 ? -stride : stride);
            if (reach > max) return true;
        }
    }
    return false;
}

uint64_t grid_local(const lower_context *c)
{
    return lower_is_simd(c) ? 1 : work_local(c, 128, 128);
}

void grid_range_1d(lower_context *c, step *s, int64_t n)
{
    const uint64_t local = grid_local(c);
    work_range(c, s, 1, &n, &local);
}

void grid_range_rows(lower_context *c, step *s, int64_t inner, int64_t n_inner, int64_t n_rows)
{
    const uint64_t all = grid_local(c);
    uint64_t along = inner >= 128 ? 128 : inner >= 32 ? 32 : inner >= 8 ? 8 : 1;
    while (along > 1 && along > all) along /= 2;
    const int64_t pieces[2] = {n_inner, n_rows};
    const uint64_t local[2] = {along, all / along};
    work_range(c, s, 2, pieces, local);
}

void grid_arg(lower_context *c, step *s, bool wide_index, int64_t number)
{
    if (wide_index)
        step_arg_long(&c->build, s, number);
    else
        step_arg_int(&c->build, s, number);
}
