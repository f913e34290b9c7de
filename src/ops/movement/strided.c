/* SPDX-License-Identifier: Apache-2.0
 *
 * Strided copies: chooses the kernel and its arguments; see strided.h and cl/movement/strided.cl.
 */
#include "ops/movement/strided.h"

#include "ops/lowering/work.h"

#include <string.h>

/* Sizes for CPUs. Dense copies of up to DRIVER_COPY_BYTES are left to the driver; larger ones use a
 * kernel, which runs on all threads. Estimated, not measured; checked by:
 *     cltool profile MODEL    (GB/s of its copies) */
#define SIMD_CHUNK 16384 /* elements of a work-item per iteration: 64 KiB of float32 */
#define DRIVER_COPY_BYTES (256 * 1024)
/* edge of a tile in the SIMD class, in elements: EDGE in strided.cl */
#define SIMD_EDGE 64

grid_dims *strided_grid(arena *memory, int rank, const int64_t *dims)
{
    const shape none = {.rank = 0};
    grid_dims *g = grid_create(memory, &none, 2);
    if (!g) return NULL;
    g->rank = rank;
    if (rank > 0) memcpy(g->dims, dims, (size_t)rank * sizeof dims[0]);
    return g;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Returns the vector width for copying runs of n adjacent elements. */
static int lanes(const lower_context *c, int64_t n)
{
    return lower_is_simd(c) ? work_lanes(c, n) : 1;
}

static int64_t at_least_one(int64_t n) { return n > 1 ? n : 1; }

static void outer_args(lower_context *c, step *s, const grid_dims *g, int n_dims, bool wide_index)
{
    for (int d = 0; d < n_dims; d++) {
        grid_arg(c, s, wide_index, g->dims[d]);
        grid_arg(c, s, wide_index, g->strides[STRIDED_FROM][d]);
        grid_arg(c, s, wide_index, g->strides[STRIDED_TO][d]);
    }
}

static void row_args(lower_context *c, step *s, const grid_dims *g, bool wide_index, int vec)
{
    const bool simd = lower_is_simd(c);
    const int last = g->rank - 1;
    const int64_t inner = g->dims[last], n = grid_n_elements(g), rows = inner ? n / inner : 0;
    const int64_t chunk = simd ? SIMD_CHUNK : vec,
                  block = simd ? at_least_one(SIMD_CHUNK / at_least_one(inner)) : 1;
    outer_args(c, s, g, last, wide_index);
    grid_arg(c, s, wide_index, inner);
    grid_arg(c, s, wide_index, g->strides[STRIDED_FROM][last]);
    grid_arg(c, s, wide_index, g->strides[STRIDED_TO][last]);
    STEP_INTS(&c->build, s, chunk, block);
    grid_range_rows(c, s, inner, (inner + chunk - 1) / chunk, (rows + block - 1) / block);
}

static void copy_rows(lower_context *c, candidate *to, const grid_dims *g, const operand *ends,
                      clg_dtype dtype)
{
    const bool wide_index = grid_needs_64_bits(g);
    const int last = g->rank - 1, vec = lanes(c, g->dims[last]);
    const int64_t from = g->strides[STRIDED_FROM][last];
    const char *prelude = prelude_text(
        &c->build, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_RANK=%d P_SRC=%d P_DST=%d P_TILE=0",
        (int)dtype_size(dtype), vec, wide_index ? 64 : 32, last,
        from == 1   ? 1
        : from == 0 ? 2
                    : 0,
        g->strides[STRIDED_TO][last] == 1);
    step *s = step_kernel(&c->build, to, "strided", "strided_rows", prelude);
    row_args(c, s, g, wide_index, vec);
    STEP_BUFFERS(&c->build, s, {ends[STRIDED_FROM], dtype}, {ends[STRIDED_TO], dtype});
    s->bytes = 2.0 * (double)grid_n_elements(g) * (double)dtype_size(dtype);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static int dense_dim(const grid_dims *g, size_t which)
{
    for (int d = g->rank - 1; d >= 0; d--)
        if (g->strides[which][d] == 1) return d;
    return -1;
}

/* Returns whether source and destination are contiguous along two different dimensions, *out_a and
 * *out_b, both long enough for tiles. */
static bool find_tiles(const grid_dims *g, int *out_a, int *out_b)
{
    *out_a = dense_dim(g, STRIDED_FROM);
    *out_b = dense_dim(g, STRIDED_TO);
    if (*out_a < 0 || *out_b < 0 || *out_a == *out_b) return false;
    return g->dims[*out_a] >= 4 && g->dims[*out_b] >= 4 && g->strides[STRIDED_FROM][*out_b] != 0;
}

/* Returns the edge, in elements, of the square tiles that a work-group transposes in local memory,
 * with one work-item for every 4 elements. */
static int tile_edge(const lower_context *c, clg_dtype dtype)
{
    int edge = dtype_size(dtype) == 8 ? 16 : 32;
    while (edge > 1 && (uint64_t)edge * (uint64_t)edge / 4 > c->caps->max_work_group_size)
        edge /= 2;
    return edge;
}

static void copy_tiles(lower_context *c, candidate *to, const grid_dims *g, int a, int b,
                       const operand *ends, clg_dtype dtype)
{
    const bool simd = lower_is_simd(c), wide_index = grid_needs_64_bits(g);
    const size_t size = dtype_size(dtype);
    const int tile = simd ? 0 : tile_edge(c, dtype), edge = simd ? SIMD_EDGE : tile;
    grid_dims outer = *g;
    int64_t strides[2][GRID_MAX_RANK];
    outer.strides = strides;
    outer.rank = 0;
    for (int d = 0; d < g->rank; d++) {
        if (d == a || d == b) continue;
        outer.dims[outer.rank] = g->dims[d];
        strides[STRIDED_FROM][outer.rank] = g->strides[STRIDED_FROM][d];
        strides[STRIDED_TO][outer.rank++] = g->strides[STRIDED_TO][d];
    }
    const char *prelude = prelude_text(
        &c->build, "P_SIZE=%d P_VEC=%d P_FP64=0 P_INDEX=%d P_RANK=%d P_SRC=1 P_DST=1 P_TILE=%d",
        (int)size, lanes(c, g->dims[a] < g->dims[b] ? g->dims[a] : g->dims[b]),
        wide_index ? 64 : 32, outer.rank, tile);
    step *s = step_kernel(&c->build, to, "strided", "strided_tiles", prelude);
    outer_args(c, s, &outer, outer.rank, wide_index);
    grid_arg(c, s, wide_index, g->dims[a]);
    grid_arg(c, s, wide_index, g->strides[STRIDED_TO][a]);
    grid_arg(c, s, wide_index, g->dims[b]);
    grid_arg(c, s, wide_index, g->strides[STRIDED_FROM][b]);
    STEP_BUFFERS(&c->build, s, {ends[STRIDED_FROM], dtype}, {ends[STRIDED_TO], dtype});
    const int64_t tiles_a = (g->dims[a] + edge - 1) / edge,
                  tiles_b = (g->dims[b] + edge - 1) / edge;
    const uint64_t local[2] = {simd ? 1 : (uint64_t)tile, simd ? 1 : (uint64_t)tile / 4};
    const int64_t pieces[2] = {tiles_b * (int64_t)local[0],
                               tiles_a * grid_n_elements(&outer) * (int64_t)local[1]};
    work_range(c, s, 2, pieces, local);
    s->bytes = 2.0 * (double)grid_n_elements(g) * (double)size;
}

/* ---- the choice of a copy -------------------------------------------------------------------- */

void strided_copy(lower_context *c, candidate *to, grid_dims *g, operand source,
                  operand destination, clg_dtype dtype)
{
    const operand ends[2] = {source, destination};
    const size_t size_bytes = (size_t)grid_n_elements(g) * dtype_size(dtype);
    int a, b;
    if (size_bytes == 0) return;
    grid_collapse(g);
    if (g->rank == 0) {
        g->rank = 1;
        g->dims[0] = 1;
        g->strides[STRIDED_FROM][0] = g->strides[STRIDED_TO][0] = 1;
    }
    const bool dense =
        g->rank == 1 && g->strides[STRIDED_FROM][0] == 1 && g->strides[STRIDED_TO][0] == 1;
    if (dense && (size_bytes <= DRIVER_COPY_BYTES || !lower_is_simd(c))) {
        source.offset_elems *= (int64_t)dtype_size(dtype);
        destination.offset_elems *= (int64_t)dtype_size(dtype);
        (void)step_copy(&c->build, to, source, destination, size_bytes);
    } else if (find_tiles(g, &a, &b) && (lower_is_simd(c) || tile_edge(c, dtype) >= 4)) {
        copy_tiles(c, to, g, a, b, ends, dtype);
    } else {
        copy_rows(c, to, g, ends, dtype);
    }
}

/* ---- copies on the host ---------------------------------------------------------------------- */

void strided_copy_host(const grid_dims *g, size_t element_bytes, const void *source,
                       void *destination)
{
    int64_t at[GRID_MAX_RANK] = {0}, from = 0, to = 0;
    for (int64_t n = grid_n_elements(g); n > 0; n--) {
        memcpy((char *)destination + (size_t)to * element_bytes,
               (const char *)source + from * (int64_t)element_bytes, element_bytes);
        for (int d = g->rank - 1; d >= 0; d--) {
            from += g->strides[STRIDED_FROM][d];
            to += g->strides[STRIDED_TO][d];
            if (++at[d] < g->dims[d]) break;
            at[d] = 0;
            from -= g->dims[d] * g->strides[STRIDED_FROM][d];
            to -= g->dims[d] * g->strides[STRIDED_TO][d];
        }
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

void strided_add_dim(strided_walk *w, int64_t n, int64_t from, int64_t to)
{
    grid_dims *g = w->grid;
    g->dims[g->rank] = n;
    g->strides[STRIDED_FROM][g->rank] = from;
    g->strides[STRIDED_TO][g->rank++] = to;
}

size_t strided_known_ints(const strided_walk *w, size_t i, int64_t out_values[OP_MAX_INTS])
{
    const tensor *t = i < w->n_known ? w->known[i] : NULL;
    const int64_t n = t && t->n_elements <= OP_MAX_INTS ? t->n_elements : 0;
    for (int64_t k = 0; k < n; k++) out_values[k] = tensor_get_int(t, k);
    return (size_t)n;
}

clg_status strided_eval(op_context *c, tensor **out_tensors)
{
    const tensor *known[6] = {NULL};
    int64_t in_strides[CLG_MAX_RANK], strides[2][GRID_MAX_RANK] = {{0}};
    const tensor *from = c->inputs[0].known;
    const size_t size = dtype_size(from->dtype);
    grid_dims g = {.n_operands = 2, .strides = strides};
    tensor *t;
    if (size == 0) return CLG_OK;
    for (size_t i = 0; i < c->n_inputs && i < 6; i++) known[i] = c->inputs[i].known;
    shape_strides(&from->dims, in_strides);
    strided_walk w = {.node = c->node,
                      .in = &from->dims,
                      .out = &c->outputs[0].dims,
                      .in_strides = in_strides,
                      .known = known,
                      .n_known = 6,
                      .grid = &g};
    CLG_TRY(((const strided_op *)c->row->param)->walk(&w));
    CLG_TRY(tensor_create(from->dtype, &c->outputs[0].dims, &t));
    strided_copy_host(&g, size, (const char *)from->data + w.offset_elems * (int64_t)size, t->data);
    out_tensors[0] = t;
    return CLG_OK;
}

/* The shortest run of adjacent elements for which a view may reorder dimensions; with shorter runs
 * the elements are copied. */
#define VIEW_RUN 16

static bool is_good_view(const strided_walk *w)
{
    const grid_dims *g = w->grid;
    int64_t dense[CLG_MAX_RANK];
    if (g->rank != w->out->rank) return false;
    shape_strides(w->out, dense);
    for (int d = 0; d < g->rank; d++)
        if (g->strides[STRIDED_FROM][d] < 0 ||
            (g->dims[d] != 1 && g->strides[STRIDED_TO][d] != dense[d]))
            return false;
    if (grid_is_dense(g, STRIDED_FROM)) return true;
    int last = g->rank - 1;
    while (last > 0 && g->dims[last] == 1) last--;
    /* Accept a view that keeps the order of dimensions, or has long runs. */
    bool in_order = true;
    for (int d = 1; d < g->rank; d++)
        if (g->dims[d] != 1 && g->dims[d - 1] != 1 && g->strides[STRIDED_FROM][d - 1] != 0)
            in_order = in_order && g->strides[STRIDED_FROM][d] <= g->strides[STRIDED_FROM][d - 1];
    return in_order || (g->strides[STRIDED_FROM][last] == 1 && g->dims[last] >= VIEW_RUN);
}

clg_status strided_lower(lower_context *c)
{
    const tensor *known[6] = {NULL};
    const strided_op *op = c->row->param;
    const lower_operand *in = &c->inputs[0];
    for (size_t i = 0; i < c->n_inputs && i < 6; i++) known[i] = c->inputs[i].known;
    strided_walk w = {.node = c->node,
                      .in = &in->dims,
                      .out = &c->outputs[0].dims,
                      .in_strides = in->strides,
                      .known = known,
                      .n_known = 6,
                      .grid = strided_grid(c->memory, 0, NULL)};
    if (!w.grid) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = op->walk(&w);
    if (status != CLG_OK) return lower_error(c, status, "%s", error_text());
    if (is_good_view(&w)) {
        c->is_view = true;
        c->views[0].offset_elems = w.offset_elems;
        memcpy(c->views[0].strides, w.grid->strides[STRIDED_FROM],
               (size_t)w.grid->rank * sizeof w.grid->strides[0][0]);
        return CLG_OK;
    }
    operand source = operand_input(0);
    source.offset_elems = w.offset_elems;
    strided_copy(c, step_candidate(&c->build, op->variant), w.grid, source, operand_output(0),
                 in->dtype);
    return CLG_OK;
}
