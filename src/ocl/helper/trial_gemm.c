/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs trials of CLBlast's GEMM: has the compile helper compute a small GEMM that launches the same
 * kernels. CLBlast builds one program per routine at its first call; drivers that compile late
 * compile each of its kernels at a launch.
 *
 * CLBlast chooses its kernels by the problem (xgemm.cpp of 1.5). If m * n * k is below the cube of
 * XGEMM_MIN_INDIRECT_SIZE, a parameter tuned for the device, it launches one direct kernel. Else it
 * launches a faster kernel, before and after it kernels that copy, pad or transpose the operands;
 * these have variants without padding and are omitted for operands that can be used in place. Its C
 * interface does not return the tuned parameters. But in its database for float32 that size is a
 * multiple of 64 up to 1984, and tile sizes are powers of two up to 256. So problems belong to one
 * class if they have the same largest multiple of 64 whose cube is at most m * n * k, the same
 * largest powers of two that divide m, n and k, and the same transposes, padding of rows, offsets
 * and beta (zero or not). One problem per class is tried. A large problem is reduced, if possible
 * within its class.
 *
 * A failure is recorded for the routine, that is for all of its classes: a compiler that crashes on
 * one of its kernels may well crash on others, and each would take two crashes or a time limit to
 * find out. See decision 36.
 */
#include "ocl/blas/blas.h"
#include "ocl/helper/attempt.h"

#include <string.h>

/* Granularity of XGEMM_MIN_INDIRECT_SIZE, and an upper limit of it. */
#define SIDE_STEP 64
#define MAX_SIDE 2048
/* The largest side of a tile, in elements. */
#define MAX_TILE 256
/* Global size of a dimension from which on PoCL compiles another version of a kernel. A work-item
 * of CLBlast's copy kernels processes up to 32 elements. */
#define WIDE_ITEMS 65536
#define WIDE_ELEMS (32 * WIDE_ITEMS)
/* Limits of a trial: total bytes of its operands, and m * n * k. */
#define MAX_BYTES (double)(256 << 20)
#define MAX_VOLUME (3 * cube(MAX_SIDE))
/* Batch size and offsets of a trial, where its class has them. */
#define TRIAL_BATCH 2
#define TRIAL_OFFSET 64

/* ---- classes --------------------------------------------------------------------------------- */

static double volume(int64_t m, int64_t n, int64_t k) { return (double)m * (double)n * (double)k; }

static double cube(double x) { return x * x * x; }

/* Returns the largest multiple of SIDE_STEP up to MAX_SIDE whose cube is at most m * n * k, divided
 * by SIDE_STEP. */
static uint64_t side_of(const ocl_gemm *g)
{
    const double elems = volume(g->m, g->n, g->k);
    uint64_t i = 0;
    while (i < MAX_SIDE / SIDE_STEP && cube((double)(i + 1) * SIDE_STEP) <= elems) i++;
    return i;
}

/* Returns the largest power of two, up to MAX_TILE, that divides a dimension. */
static uint64_t divisor_of(int64_t dim)
{
    uint64_t d = 1;
    while (d < MAX_TILE && dim % (int64_t)(2 * d) == 0) d *= 2;
    return d;
}

/* If dim is at least WIDE_ITEMS, so that PoCL may compile for a large global size, returns the
 * largest power of two that is at most dim and WIDE_ELEMS; else 1. */
static uint64_t width_of(int64_t dim)
{
    uint64_t w = WIDE_ITEMS;
    if (dim < WIDE_ITEMS) return 1;
    while (w < WIDE_ELEMS && (int64_t)(2 * w) <= dim) w *= 2;
    return w;
}

/* Returns about half of dim, with the same divisor_of; dim itself if it cannot be halved. */
static int64_t halved(int64_t dim)
{
    const int64_t d = (int64_t)divisor_of(dim), n = dim / d;
    if (n == 1) return dim;
    return d * (d < MAX_TILE ? n / 2 | 1 : n / 2);
}

/* Halves the largest dimension that can be halved. Returns false, with g unchanged, if there is
 * none, or if keeps_class and g would change its class. */
static bool shrink(ocl_gemm *g, bool keeps_class)
{
    int64_t *const dims[3] = {&g->m, &g->n, &g->k}, *max = NULL;
    for (int i = 0; i < 3; i++) {
        const int64_t dim = *dims[i], less = halved(dim);
        const bool may = less < dim && (!keeps_class || width_of(dim) == width_of(less));
        if (may && (!max || dim > *max)) max = dims[i];
    }
    if (!max) return false;
    const int64_t before = *max;
    *max = halved(before);
    if (!keeps_class || volume(g->m, g->n, g->k) >= cube(MAX_SIDE)) return true;
    *max = before;
    return false;
}

static bool is_too_large(const ocl_gemm *g)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    const double n_elems = (double)g->batch * (m * k + k * n + m * n);
    return n_elems * (double)sizeof(float) > MAX_BYTES || m * n * k > MAX_VOLUME;
}

/* The properties of an operand by which CLBlast chooses kernels. */
typedef struct matrix_kind {
    bool has_gaps, has_offset;
} matrix_kind;

/* Sets the leading dimension, stride and offset of an operand of rows x cols, in elements. */
static void lay_out(matrix_kind kind, int64_t rows, int64_t cols, int64_t *ld, int64_t *stride,
                    int64_t *offset)
{
    *ld = cols + kind.has_gaps;
    *stride = rows * *ld;
    *offset = kind.has_offset ? TRIAL_OFFSET : 0;
}

static void lay_out_all(ocl_gemm *g, const matrix_kind kinds[3])
{
    const int64_t a_rows = g->trans_a ? g->k : g->m, a_cols = g->trans_a ? g->m : g->k;
    const int64_t b_rows = g->trans_b ? g->n : g->k, b_cols = g->trans_b ? g->k : g->n;
    lay_out(kinds[0], a_rows, a_cols, &g->lda, &g->stride_a, &g->offset_a);
    lay_out(kinds[1], b_rows, b_cols, &g->ldb, &g->stride_b, &g->offset_b);
    lay_out(kinds[2], g->m, g->n, &g->ldc, &g->stride_c, &g->offset_c);
}

hash128 trial_gemm_class(const ocl_gemm *g, int64_t i, ocl_gemm *out_small)
{
    const bool batched = blas_is_batched(g);
    const matrix_kind kinds[3] = {
        {g->lda != (g->trans_a ? g->m : g->k), g->offset_a + i * g->stride_a != 0},
        {g->ldb != (g->trans_b ? g->k : g->n), g->offset_b + i * g->stride_b != 0},
        {g->ldc != g->n, g->offset_c + i * g->stride_c != 0}};
    uint64_t parts[] = {batched,        g->trans_a,       g->trans_b,       g->beta != 0,
                        side_of(g),     divisor_of(g->m), divisor_of(g->n), divisor_of(g->k),
                        width_of(g->m), width_of(g->n),   width_of(g->k),   0};
    for (int operand = 0; operand < 3; operand++)
        parts[11] = parts[11] * 4 + kinds[operand].has_gaps * 2u + kinds[operand].has_offset;
    *out_small = (ocl_gemm){.m = g->m,
                            .n = g->n,
                            .k = g->k,
                            .batch = batched ? TRIAL_BATCH : 1,
                            .trans_a = g->trans_a,
                            .trans_b = g->trans_b,
                            .alpha = g->alpha,
                            .beta = g->beta};
    while (shrink(out_small, true)) continue;
    while (is_too_large(out_small) && shrink(out_small, false)) continue;
    lay_out_all(out_small, kinds);
    return hash128_bytes(parts, sizeof parts);
}

/* ---- trials ---------------------------------------------------------------------------------- */

static const char *routine_name(bool batched)
{
    return batched ? "CLBlast's SgemmStridedBatched" : "CLBlast's Sgemm";
}

/* Combines a key with the identity of this CLBlast; the cache adds device, driver and version. */
static hash128 blas_key(hash128 what)
{
    const char *identity = ocl_blas_identity();
    const hash128 parts[2] = {hash128_bytes(identity, strlen(identity)), what};
    return hash128_bytes(parts, sizeof parts);
}

static hash128 routine_key(bool batched)
{
    const char *name = routine_name(batched);
    return blas_key(hash128_bytes(name, strlen(name)));
}

static clg_status try_call(ocl_context *ocl, const ocl_gemm *g, int64_t i,
                           process_keep_waiting keep_waiting, void *user)
{
    const bool batched = blas_is_batched(g);
    helper_request request = {.n_limits = HELPER_BLAS_LIMITS,
                              .content_arg = HELPER_NO_ARG,
                              .has_gemm = true,
                              .blas = ocl_blas_identity()};
    const hash128 class = trial_gemm_class(g, i, &request.gemm);
    const attempt a = {.ocl = ocl,
                       .request = &request,
                       .kernel = routine_name(batched),
                       .what = routine_name(batched),
                       .key = blas_key(class),
                       .refusal_key = routine_key(batched),
                       .settles = true,
                       .keep_waiting = keep_waiting,
                       .user = user};
    helper_reply reply;
    const clg_status status = attempt_run(&a, &reply);
    helper_reply_deinit(&reply);
    return status;
}

/* Returns the maximum number of classes among the calls for one GEMM: 2 for several calls, since
 * only the first may have offsets of 0. */
static int64_t n_classes(const ocl_gemm *g) { return blas_n_calls(g) > 1 ? 2 : 1; }

clg_status trial_of_gemm(ocl_context *ocl, const ocl_gemm *g, process_keep_waiting keep_waiting,
                         void *user)
{
    for (int64_t i = 0; i < n_classes(g); i++) CLG_TRY(try_call(ocl, g, i, keep_waiting, user));
    return CLG_OK;
}

bool trial_gemm_has_passed(ocl_context *ocl, const ocl_gemm *g)
{
    bool has_passed = true;
    ocl_gemm small;
    for (int64_t i = 0; i < n_classes(g) && has_passed; i++)
        has_passed = attempt_has_passed(ocl, blas_key(trial_gemm_class(g, i, &small)));
    return has_passed;
}

bool trial_gemm_has_failed(ocl_context *ocl, const ocl_gemm *g)
{
    /* The planner places operands later; a batch with offsets becomes one call per matrix. */
    return attempt_has_failed(ocl, routine_key(false)) ||
           (blas_is_batched(g) && attempt_has_failed(ocl, routine_key(true)));
}
