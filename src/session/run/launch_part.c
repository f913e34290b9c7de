/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the division of launches (launch_part.h). A kernel's NDRange is divided along the
 * dimension with the most work-groups; its program is another one, in which a work-group sees the
 * whole NDRange.
 */
#include "session/run/launch_part.h"

#include "step/kernel_source.h"

#define MIN_ROWS 64                   /* of a part of a GEMM: a tile of CLBlast's kernels */
#define MIN_BYTES (UINT64_C(1) << 20) /* of a part of a copy or fill */
#define ALIGN_BYTES UINT64_C(4096)

static uint64_t at_least_one(uint64_t n) { return n > 0 ? n : 1; }

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* Returns the part's range of n pieces. */
static part_range range_of(uint64_t n, launch_part part)
{
    const uint64_t count = at_least_one(part.count);
    const uint64_t each = n / count, more = n % count; /* n * index may overflow */
    const uint64_t first = each * part.index + smaller(part.index, more);
    return (part_range){first, each + (part.index < more)};
}

static uint64_t count_groups(const step *s, uint32_t dim)
{
    return s->global[dim] / at_least_one(s->local[dim]);
}

/* Returns the dimension with the most work-groups, the last of several. */
static uint32_t dim_of(const step *s)
{
    uint32_t dim = 0;
    for (uint32_t i = 1; i < s->n_dims; i++)
        if (count_groups(s, i) >= count_groups(s, dim)) dim = i;
    return dim;
}

/* Returns whether a work-group of this kernel computes the same in a launch of a part. Generated
 * kernels divide their work by global ids and sizes only. */
static bool may_split(const kernel_ref *ref)
{
    if (ref->body) return true;
    const kernel_source *source = kernel_source_find(ref->source);
    return source && source->splits;
}

static uint64_t max_kernel_parts(const step *s, uint32_t units)
{
    uint64_t groups = 1;
    if (s->local[0] == 0 || !may_split(&s->kernel)) return 1;
    for (uint32_t i = 0; i < s->n_dims; i++) groups *= at_least_one(count_groups(s, i));
    return smaller(ceil_div(groups, at_least_one(units)), count_groups(s, dim_of(s)));
}

static uint64_t max_rows(const gemm_problem *p) { return at_least_one((uint64_t)p->m / MIN_ROWS); }

uint32_t launch_max_parts(const step *s, uint32_t units)
{
    uint64_t n = 1;
    switch (s->kind) {
    case STEP_KERNEL: n = max_kernel_parts(s, units); break;
    case STEP_BLAS_GEMM: n = (uint64_t)s->gemm.batch * max_rows(&s->gemm); break;
    case STEP_COPY:
    case STEP_FILL: n = s->size_bytes / MIN_BYTES; break;
    }
    return (uint32_t)smaller(at_least_one(n), UINT32_MAX);
}

uint32_t launch_count_parts(const step *s, uint64_t wanted, uint32_t units)
{
    const uint64_t n = smaller(at_least_one(wanted), launch_max_parts(s, units));
    const uint64_t batch = at_least_one(s->kind == STEP_BLAS_GEMM ? (uint64_t)s->gemm.batch : 1);
    return (uint32_t)(n > batch ? ceil_div(n, batch) * batch : n);
}

kernel_ref launch_part_ref(const step *s)
{
    kernel_ref ref = s->kernel;
    ref.part = 1 + dim_of(s);
    return ref;
}

void launch_part_range(const step *s, launch_part part, launch_range *out)
{
    *out = (launch_range){.n_dims = s->n_dims};
    for (uint32_t i = 0; i < 3; i++) {
        out->global[i] = i < s->n_dims ? s->global[i] : 1;
        out->local[i] = i < s->n_dims ? s->local[i] : s->local[0] > 0;
    }
    if (part.count == 1) return;
    const uint32_t dim = dim_of(s), other = LAUNCH_PART_OTHER(dim);
    const part_range groups = range_of(count_groups(s, dim), part);
    if (out->n_dims <= other) out->n_dims = other + 1;
    out->offset[other] = s->global[dim];
    out->offset[dim] = groups.first * s->local[dim];
    out->global[dim] = groups.count * s->local[dim];
}

void launch_part_gemm(launch_part part, ocl_gemm *g)
{
    const uint64_t batch = at_least_one((uint64_t)g->batch);
    part_range matrices, rows = {0, (uint64_t)g->m};
    if (part.count <= batch) {
        matrices = range_of(batch, part);
    } else {
        const uint32_t n = (uint32_t)(part.count / batch); /* parts of a matrix */
        matrices = (part_range){part.index / n, 1};
        rows = range_of((uint64_t)g->m, (launch_part){part.index % n, n});
    }
    const int64_t matrix = (int64_t)matrices.first, row = (int64_t)rows.first;
    g->offset_a += matrix * g->stride_a + row * (g->trans_a ? 1 : g->lda);
    g->offset_b += matrix * g->stride_b;
    g->offset_c += matrix * g->stride_c + row * g->ldc;
    g->batch = (int64_t)matrices.count;
    g->m = (int64_t)rows.count;
}

part_range launch_part_bytes(const step *s, launch_part part)
{
    part_range r = {0, s->size_bytes};
    if (part.count == 1) return r;
    const part_range blocks = range_of(ceil_div(s->size_bytes, ALIGN_BYTES), part);
    r.first = blocks.first * ALIGN_BYTES;
    r.count = smaller(blocks.count * ALIGN_BYTES, s->size_bytes - r.first);
    return r;
}
