/* SPDX-License-Identifier: Apache-2.0
 *
 * Strided copies: which kernel, and its arguments; see strided.h and cl/strided.cl.
 */
#include "ops/strided.h"

#include "ops/work.h"

#include <string.h>

/* Elements that a work-item of the wide class copies in a turn. */
#define WIDE_CHUNK 16384
/* What the driver's own copy does well; larger dense copies use all threads of a CPU in a kernel. */
#define DRIVER_COPY_BYTES (256 * 1024)
/* EDGE in strided.cl */
#define WIDE_EDGE 64

grid *strided_grid(arena *memory, int rank, const int64_t *dims)
{
    const shape none = {.rank = 0};
    grid *g = grid_create(memory, &none, 2);
    if (!g)
        return NULL;
    g->rank = rank;
    memcpy(g->dims, dims, (size_t)rank * sizeof dims[0]);
    return g;
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static int lanes(const lower_context *c)
{
    if (!lower_is_wide(c))
        return 1;
    return c->caps->vector_width ? (int)c->caps->vector_width : 4;
}

static int64_t at_least_one(int64_t n)
{
    return n > 1 ? n : 1;
}

static void outer_args(lower_context *c, step *s, const grid *g, int n_dims, bool wide_index)
{
    for (int d = 0; d < n_dims; d++) {
        grid_arg(c, s, wide_index, g->dims[d]);
        grid_arg(c, s, wide_index, g->strides[STRIDED_FROM][d]);
        grid_arg(c, s, wide_index, g->strides[STRIDED_TO][d]);
    }
}

static void row_args(lower_context *c, step *s, const grid *g, bool wide_index, int vec)
{
    const bool wide = lower_is_wide(c);
    const int last = g->rank - 1;
    const int64_t inner = g->dims[last], n = grid_n_elements(g), rows = inner ? n / inner : 0;
    const int64_t chunk = wide ? WIDE_CHUNK : vec, block = wide ? at_least_one(WIDE_CHUNK / at_least_one(inner)) : 1;
    outer_args(c, s, g, last, wide_index);
    grid_arg(c, s, wide_index, inner);
    grid_arg(c, s, wide_index, g->strides[STRIDED_FROM][last]);
    grid_arg(c, s, wide_index, g->strides[STRIDED_TO][last]);
    step_arg_int(&c->build, s, chunk);
    step_arg_int(&c->build, s, block);
    const int64_t pieces[2] = {(inner + chunk - 1) / chunk, (rows + block - 1) / block};
    const uint64_t along = wide ? 1 : inner >= 128 ? 128 : inner >= 16 ? 16 : 2;
    const uint64_t local[2] = {along, wide ? 1 : 128 / along};
    grid_range(c, s, 2, pieces, local);
}

static void copy_rows(lower_context *c, candidate *to, const grid *g, const operand *ends, clg_dtype dtype)
{
    const bool wide_index = grid_needs_64_bits(g);
    const int last = g->rank - 1, vec = lanes(c);
    const int64_t from = g->strides[STRIDED_FROM][last];
    const char *prelude =
        prelude_text(&c->build, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_RANK=%d P_SRC=%d P_DST=%d P_TILE=0",
                     (int)dtype_size(dtype), vec, wide_index ? 64 : 32, last, from == 1 ? 1 : from == 0 ? 2 : 0,
                     g->strides[STRIDED_TO][last] == 1);
    step *s = step_kernel(&c->build, to, "strided", "strided_rows", prelude);
    row_args(c, s, g, wide_index, vec);
    step_arg_buffer(&c->build, s, ends[STRIDED_FROM], dtype);
    step_arg_buffer(&c->build, s, ends[STRIDED_TO], dtype);
    s->bytes = 2.0 * (double)grid_n_elements(g) * (double)dtype_size(dtype);
}

/* ---- tiles ---------------------------------------------------------------------------------------------------------- */

static int dense_dim(const grid *g, size_t which)
{
    for (int d = g->rank - 1; d >= 0; d--)
        if (g->strides[which][d] == 1)
            return d;
    return -1;
}

/* Whether source and destination are dense along two different dimensions that are long enough for tiles. */
static bool find_tiles(const grid *g, int *out_a, int *out_b)
{
    *out_a = dense_dim(g, STRIDED_FROM);
    *out_b = dense_dim(g, STRIDED_TO);
    if (*out_a < 0 || *out_b < 0 || *out_a == *out_b)
        return false;
    return g->dims[*out_a] >= 4 && g->dims[*out_b] >= 4 && g->strides[STRIDED_FROM][*out_b] != 0;
}

static void copy_tiles(lower_context *c, candidate *to, const grid *g, int a, int b, const operand *ends, clg_dtype dtype)
{
    const bool wide = lower_is_wide(c), wide_index = grid_needs_64_bits(g);
    const size_t size = dtype_size(dtype);
    const int tile = wide ? 0 : size == 8 ? 16 : 32, edge = wide ? WIDE_EDGE : tile;
    grid outer = *g;
    int64_t strides[2][GRID_MAX_RANK];
    outer.strides = strides;
    outer.rank = 0;
    for (int d = 0; d < g->rank; d++) {
        if (d == a || d == b)
            continue;
        outer.dims[outer.rank] = g->dims[d];
        strides[STRIDED_FROM][outer.rank] = g->strides[STRIDED_FROM][d];
        strides[STRIDED_TO][outer.rank++] = g->strides[STRIDED_TO][d];
    }
    const char *prelude =
        prelude_text(&c->build, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_RANK=%d P_SRC=1 P_DST=1 P_TILE=%d", (int)size,
                     lanes(c), wide_index ? 64 : 32, outer.rank, tile);
    step *s = step_kernel(&c->build, to, "strided", "strided_tiles", prelude);
    outer_args(c, s, &outer, outer.rank, wide_index);
    grid_arg(c, s, wide_index, g->dims[a]);
    grid_arg(c, s, wide_index, g->strides[STRIDED_TO][a]);
    grid_arg(c, s, wide_index, g->dims[b]);
    grid_arg(c, s, wide_index, g->strides[STRIDED_FROM][b]);
    step_arg_buffer(&c->build, s, ends[STRIDED_FROM], dtype);
    step_arg_buffer(&c->build, s, ends[STRIDED_TO], dtype);
    const int64_t tiles_a = (g->dims[a] + edge - 1) / edge, tiles_b = (g->dims[b] + edge - 1) / edge;
    const uint64_t local[2] = {wide ? 1 : (uint64_t)tile, wide ? 1 : (uint64_t)tile / 4};
    const int64_t pieces[2] = {tiles_b * (int64_t)local[0], tiles_a * grid_n_elements(&outer) * (int64_t)local[1]};
    grid_range(c, s, 2, pieces, local);
    s->bytes = 2.0 * (double)grid_n_elements(g) * (double)size;
}

/* ---- the choice -------------------------------------------------------------------------------------------------------- */

void strided_copy(lower_context *c, candidate *to, grid *g, operand source, operand destination, clg_dtype dtype)
{
    const operand ends[2] = {source, destination};
    const size_t size_bytes = (size_t)grid_n_elements(g) * dtype_size(dtype);
    int a, b;
    if (size_bytes == 0)
        return;
    grid_collapse(g);
    if (g->rank == 0) {
        g->rank = 1;
        g->dims[0] = 1;
        g->strides[STRIDED_FROM][0] = g->strides[STRIDED_TO][0] = 1;
    }
    const bool dense = g->rank == 1 && g->strides[STRIDED_FROM][0] == 1 && g->strides[STRIDED_TO][0] == 1;
    if (dense && (size_bytes <= DRIVER_COPY_BYTES || !lower_is_wide(c))) {
        source.offset_elems *= (int64_t)dtype_size(dtype);
        destination.offset_elems *= (int64_t)dtype_size(dtype);
        (void)step_copy(&c->build, to, source, destination, size_bytes);
    } else if (find_tiles(g, &a, &b)) {
        copy_tiles(c, to, g, a, b, ends, dtype);
    } else {
        copy_rows(c, to, g, ends, dtype);
    }
}

/* ---- on the host ---------------------------------------------------------------------------------------------------------- */

void strided_copy_host(const grid *g, size_t element_bytes, const void *source, void *destination)
{
    int64_t at[GRID_MAX_RANK] = {0}, from = 0, to = 0;
    for (int64_t n = grid_n_elements(g); n > 0; n--) {
        memcpy((char *)destination + (size_t)to * element_bytes, (const char *)source + from * (int64_t)element_bytes,
               element_bytes);
        for (int d = g->rank - 1; d >= 0; d--) {
            from += g->strides[STRIDED_FROM][d];
            to += g->strides[STRIDED_TO][d];
            if (++at[d] < g->dims[d])
                break;
            at[d] = 0;
            from -= g->dims[d] * g->strides[STRIDED_FROM][d];
            to -= g->dims[d] * g->strides[STRIDED_TO][d];
        }
    }
}

clg_status strided_eval(const tensor *from, const grid *g, int64_t offset_elems, clg_dtype dtype, const shape *dims,
                        tensor **out_tensor)
{
    tensor *t;
    const size_t size = dtype_size(dtype);
    *out_tensor = NULL;
    if (size == 0)
        return CLG_OK;
    CLG_TRY(tensor_create(dtype, dims, &t));
    strided_copy_host(g, size, (const char *)from->data + offset_elems * (int64_t)size, t->data);
    *out_tensor = t;
    return CLG_OK;
}
