/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test references, in double, of normalisation: by mean and variance, by root mean square, by
 * Lp norms, across channels (LRN), of sums of inputs (SkipLayerNormalization) and of embeddings
 * (EmbedLayerNormalization). Elements are scattered to the statistics of their groups; variances
 * are those of differences from a group's first element, where kernels subtract the mean.
 */
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* Part of each scale, so that float16 results that are subnormal, less than 6.1e-5, may be flushed
 * to zero. */
#define FLOOR (1.0 / 32)

static void put(const selftest_expected *out, int64_t i, double y, double scale)
{
    out->y[i] = y;
    out->scale[i] = isfinite(y) ? scale + FLOOR : (double)NAN;
}

static bool wants(const lower_context *lc, const selftest_expected *out, size_t k)
{
    return k < lc->n_outputs && out[k].y;
}

static bool is(const lower_context *lc, const char *op_type)
{
    return strcmp(lc->node->op_type, op_type) == 0;
}

/* Returns the number of elements of dimensions first .. end - 1. */
static int64_t product(const shape *s, int first, int end)
{
    int64_t n = 1;
    for (int i = first; i < end; i++) n *= s->dims[i];
    return n;
}

/* Returns element i of a parameter, which repeats; `fallback` if it is absent. */
static double parameter(const lower_context *lc, const double *const *in, size_t input, int64_t i,
                        double fallback)
{
    return lower_has_input(lc, input) ? in[input][i % selftest_count(&lc->inputs[input].dims)]
                                      : fallback;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The groups of elements that have common statistics: element i is in group i / step % n or, if
 * dims is set, in that whose index is the sum of the element's coordinates times `strides`. */
typedef struct grouping {
    int64_t step, n;
    const shape *dims;
    int64_t strides[CLG_MAX_RANK];
} grouping;

static int64_t group_of(const grouping *g, int64_t i)
{
    int64_t at = 0;
    if (!g->dims) return g->step > 0 && g->n > 0 ? i / g->step % g->n : 0;
    for (int d = g->dims->rank - 1; d >= 0 && g->dims->dims[d] > 0; d--) {
        at += i % g->dims->dims[d] * g->strides[d];
        i /= g->dims->dims[d];
    }
    return at;
}

/* Makes a group of all elements that differ only in the coordinates along the reduced axes. */
static grouping group_by_axes(const shape *x, const bool *reduced)
{
    grouping g = {.n = 1, .dims = x};
    for (int d = x->rank - 1; d >= 0; d--) {
        g.strides[d] = reduced[d] ? 0 : g.n;
        if (!reduced[d]) g.n *= x->dims[d];
    }
    return g;
}

/* Statistics of a group. `size` is the mean magnitude of its elements: the mean's error is relative
 * to that. */
typedef struct moments {
    double n, mean, variance, size;
    double first, sum, squares; /* sums of differences from the first element */
} moments;

static clg_status find_moments(const lower_context *lc, const double *x, int64_t n,
                               const grouping *g, moments **out)
{
    moments *all = *out = arena_alloc(lc->memory, (size_t)g->n + 1, sizeof *all);
    if (!all) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        moments *m = &all[group_of(g, i)];
        if (m->n++ == 0) m->first = x[i];
        const double d = x[i] - m->first;
        m->sum += d;
        m->squares += d * d;
        m->size += fabs(x[i]);
    }
    for (int64_t k = 0; k < g->n; k++) {
        moments *m = &all[k];
        m->mean = m->first + m->sum / m->n;
        m->variance = fmax(m->n * m->squares - m->sum * m->sum, 0) / (m->n * m->n);
        m->size /= m->n;
    }
    return CLG_OK;
}

/* Returns an array of each group's sum of |x|^p. */
static clg_status find_sums(const lower_context *lc, const double *x, int64_t n, const grouping *g,
                            double p, double **out)
{
    double *sums = *out = arena_alloc(lc->memory, (size_t)g->n + 1, sizeof *sums);
    if (!sums) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) sums[group_of(g, i)] += pow(fabs(x[i]), p);
    return CLG_OK;
}

/* Sets element i to (x - mean) * gain + shift, where the error of the mean is relative to `size`.
 * */
static void put_affine(const selftest_expected *out, int64_t i, double x, double mean, double size,
                       double gain, double shift)
{
    put(out, i, x * gain - mean * gain + shift,
        (fabs(x) + fabs(mean) + size) * fabs(gain) + fabs(shift));
}

/* ---- LayerNormalization, RMSNormalization ---------------------------------------------------- */

/* A normalisation of rows of `cols` elements of x, with the weights in input `gamma` and the bias
 * in input `beta`, which may be absent. */
typedef struct rows {
    const double *x;
    int64_t n, cols;
    double epsilon;
    size_t gamma, beta;
} rows;

/* Normalises rows by mean and variance. */
static clg_status normalise_rows(const lower_context *lc, const double *const *in, const rows *r,
                                 const selftest_expected *out, moments **out_moments)
{
    const grouping g = {.step = r->cols, .n = r->cols > 0 ? r->n / r->cols : 0};
    moments *all;
    *out_moments = NULL;
    CLG_TRY(find_moments(lc, r->x, r->n, &g, &all));
    for (int64_t i = 0; i < r->n; i++) {
        const moments *m = &all[i / r->cols];
        const double gain =
            parameter(lc, in, r->gamma, i % r->cols, 1) / sqrt(m->variance + r->epsilon);
        put_affine(out, i, r->x[i], m->mean, m->size, gain,
                   parameter(lc, in, r->beta, i % r->cols, 0));
    }
    *out_moments = all;
    return CLG_OK;
}

/* Normalises rows by root mean square. */
static clg_status scale_rows(const lower_context *lc, const double *const *in, const rows *r,
                             const selftest_expected *out)
{
    const grouping g = {.step = r->cols, .n = r->cols > 0 ? r->n / r->cols : 0};
    double *sums;
    CLG_TRY(find_sums(lc, r->x, r->n, &g, 2, &sums));
    for (int64_t i = 0; i < r->n; i++) {
        const double y = r->x[i] / sqrt(sums[i / r->cols] / (double)r->cols + r->epsilon) *
                         parameter(lc, in, r->gamma, i % r->cols, 1);
        put(out, i, y, fabs(y));
    }
    return CLG_OK;
}

static rows read_rows(const lower_context *lc, const double *const *in)
{
    const shape *x = &lc->inputs[0].dims;
    return (rows){.x = in[0],
                  .n = selftest_count(x),
                  .cols = product(x, selftest_axis(lc->node, x, -1), x->rank),
                  .epsilon = (double)node_float(lc->node, "epsilon", 1e-5f),
                  .gamma = 1,
                  .beta = 2};
}

/* Computes LayerNormalization with its outputs Mean and InvStdDev. */
static clg_status layer_norm(const lower_context *lc, const double *const *in,
                             const selftest_expected *out)
{
    const rows r = read_rows(lc, in);
    moments *all;
    CLG_TRY(normalise_rows(lc, in, &r, &out[0], &all));
    for (int64_t k = 0; r.cols > 0 && k < r.n / r.cols; k++) {
        const double inverse = 1 / sqrt(all[k].variance + r.epsilon);
        if (wants(lc, out, 1)) put(&out[1], k, all[k].mean, all[k].size);
        if (wants(lc, out, 2)) put(&out[2], k, inverse, inverse + inverse * inverse * all[k].size);
    }
    for (size_t k = 1; k < 3 && r.cols == 0; k++) /* means of nothing */
        for (int64_t i = 0; wants(lc, out, k) && i < selftest_count(&lc->outputs[k].dims); i++)
            out[k].scale[i] = (double)NAN;
    return CLG_OK;
}

static clg_status rms_norm(const lower_context *lc, const double *const *in,
                           const selftest_expected *out)
{
    const rows r = read_rows(lc, in);
    return scale_rows(lc, in, &r, &out[0]);
}

/* ---- by channels ----------------------------------------------------------------------------- */

/* Computes InstanceNormalization, whose groups are the channels, and GroupNormalization. */
static clg_status group_norm(const lower_context *lc, const double *const *in,
                             const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const int64_t n = selftest_count(x), channels = x->dims[1], inner = product(x, 2, x->rank),
                  groups = node_int(lc->node, "num_groups", channels);
    const bool by_group = is(lc, "GroupNormalization") && lc->node->opset < 21;
    const double epsilon = (double)node_float(lc->node, "epsilon", 1e-5f);
    if (n == 0) return CLG_OK;
    const int64_t per_group = channels / groups;
    const grouping g = {.step = per_group * inner, .n = x->dims[0] * groups};
    moments *all;
    CLG_TRY(find_moments(lc, in[0], n, &g, &all));
    for (int64_t i = 0; i < n; i++) {
        const int64_t channel = i / inner % channels, at = by_group ? channel / per_group : channel;
        const moments *m = &all[group_of(&g, i)];
        put_affine(&out[0], i, in[0][i], m->mean, m->size, in[1][at] / sqrt(m->variance + epsilon),
                   in[2][at]);
    }
    return CLG_OK;
}

/* Returns whether BatchNormalization is in training mode: by training_mode from opset 14 on, before
 * that by its outputs. */
static bool batch_trains(const lower_context *lc, const selftest_expected *out)
{
    bool more = false;
    for (size_t k = 1; k < lc->n_outputs; k++) more = more || out[k].y;
    return lc->node->opset >= 14 ? node_int(lc->node, "training_mode", 0) != 0 : more;
}

/* Sets outputs 1 to 4 of BatchNormalization in training mode for channel c: running mean and
 * variance, and those of the batch. */
static void put_statistics(const lower_context *lc, const double *const *in, int64_t c,
                           const moments *m, const selftest_expected *out)
{
    const double old = (double)node_float(lc->node, "momentum", 0.9f), new = 1 - old;
    const double spread = m->variance + m->size * m->size;
    if (wants(lc, out, 1))
        put(&out[1], c, in[3][c] * old + m->mean * new, fabs(in[3][c] * old) + m->size * new);
    if (wants(lc, out, 2))
        put(&out[2], c, in[4][c] * old + m->variance * new, fabs(in[4][c] * old) + spread * new);
    if (wants(lc, out, 3)) put(&out[3], c, m->mean, m->size);
    if (wants(lc, out, 4)) put(&out[4], c, m->variance, spread);
}

static clg_status batch_norm(const lower_context *lc, const double *const *in,
                             const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const int64_t n = selftest_count(x);
    const double epsilon = (double)node_float(lc->node, "epsilon", 1e-5f);
    const bool trains = batch_trains(lc, out);
    int64_t channels = x->rank > 1 ? x->dims[1] : 1,
            inner = x->rank > 1 ? product(x, 2, x->rank) : 1;
    moments *all = NULL;
    if (node_int(lc->node, "spatial", 1) == 0) {
        channels *= inner;
        inner = 1;
    }
    const grouping g = {.step = inner, .n = channels};
    if (trains) CLG_TRY(find_moments(lc, in[0], n, &g, &all));
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = group_of(&g, i);
        const double mean = trains ? all[c].mean : in[3][c],
                     variance = trains ? all[c].variance : in[4][c];
        put_affine(&out[0], i, in[0][i], mean, trains ? all[c].size : 0,
                   in[1][c] / sqrt(variance + epsilon), in[2][c]);
    }
    for (int64_t c = 0; trains && c < channels; c++) put_statistics(lc, in, c, &all[c], out);
    return CLG_OK;
}

/* Computes LRN. Squares are scattered to the channels whose windows contain them: that of channel c
 * is c - floor((size - 1) / 2) .. c + ceil((size - 1) / 2). */
static clg_status lrn(const lower_context *lc, const double *const *in,
                      const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const node *n = lc->node;
    const int64_t channels = x->dims[1], inner = product(x, 2, x->rank),
                  size = node_int(n, "size", 1);
    /* a kernel argument in float32 */
    const float alpha = (float)((double)node_float(n, "alpha", 1e-4f) / (double)size);
    double *sums = out[0].y;
    for (int64_t i = 0; i < selftest_count(x); i++) {
        const int64_t c = i / inner % channels, first = c < size / 2 ? 0 : c - size / 2,
                      after = c + (size - 1) / 2,
                      last = after < channels - 1 ? after : channels - 1;
        for (int64_t k = first; k <= last; k++) sums[i + (k - c) * inner] += in[0][i] * in[0][i];
    }
    for (int64_t i = 0; i < selftest_count(x); i++) {
        const double base = (double)node_float(n, "bias", 1.0f) + (double)alpha * sums[i];
        const double y = in[0][i] * pow(base, -(double)node_float(n, "beta", 0.75f));
        put(&out[0], i, y, fabs(y));
    }
    return CLG_OK;
}

/* ---- along axes ------------------------------------------------------------------------------ */

/* Computes LpNormalization; results of lines of zeros are 0. */
static clg_status lp_norm(const lower_context *lc, const double *const *in,
                          const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const int64_t p = node_int(lc->node, "p", 2);
    bool reduced[CLG_MAX_RANK] = {false};
    double *sums;
    reduced[selftest_axis(lc->node, x, -1)] = true;
    const grouping g = group_by_axes(x, reduced);
    CLG_TRY(find_sums(lc, in[0], selftest_count(x), &g, (double)p, &sums));
    for (int64_t i = 0; i < selftest_count(x); i++) {
        const double norm = pow(sums[group_of(&g, i)], 1 / (double)p),
                     y = norm > 0 ? in[0][i] / norm : 0;
        put(&out[0], i, y, fabs(y));
    }
    return CLG_OK;
}

/* Computes MeanVarianceNormalization: y = (x - mean) / (sqrt(variance) + 1e-9). */
static clg_status mean_variance_norm(const lower_context *lc, const double *const *in,
                                     const selftest_expected *out)
{
    static const int64_t usual[] = {0, 2, 3};
    const shape *x = &lc->inputs[0].dims;
    bool reduced[CLG_MAX_RANK] = {false};
    size_t n_axes;
    moments *all;
    const int64_t *axes = node_ints(lc->node, "axes", &n_axes);
    if (!node_attribute(lc->node, "axes")) {
        axes = usual;
        n_axes = 3;
    }
    for (size_t i = 0; i < n_axes; i++) reduced[(axes[i] + x->rank) % x->rank] = true;
    const grouping g = group_by_axes(x, reduced);
    CLG_TRY(find_moments(lc, in[0], selftest_count(x), &g, &all));
    for (int64_t i = 0; i < selftest_count(x); i++) {
        const moments *m = &all[group_of(&g, i)];
        put_affine(&out[0], i, in[0][i], m->mean, m->size, 1 / (sqrt(m->variance) + 1e-9), 0);
    }
    return CLG_OK;
}

clg_status selftest_norm(const lower_context *lc, const double *const *in,
                         const selftest_expected *out)
{
    static const struct {
        const char *op_type;
        selftest_reference *reference;
    } operators[] = {{"LayerNormalization", layer_norm},
                     {"RMSNormalization", rms_norm},
                     {"SimplifiedLayerNormalization", rms_norm},
                     {"InstanceNormalization", group_norm},
                     {"GroupNormalization", group_norm},
                     {"BatchNormalization", batch_norm},
                     {"LpNormalization", lp_norm},
                     {"MeanVarianceNormalization", mean_variance_norm},
                     {"LRN", lrn}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (is(lc, operators[i].op_type)) return operators[i].reference(lc, in, out);
    return error_set(CLG_ERROR_NOT_FOUND, "%s has no reference", lc->node->op_type);
}

/* ---- SkipLayerNormalization, SkipSimplifiedLayerNormalization -------------------------------- */

/* Computes com.microsoft's normalisations of x + skip + bias, whose output 3 is that sum. */
clg_status selftest_skip_norm(const lower_context *lc, const double *const *in,
                              const selftest_expected *out)
{
    const shape *x = &lc->inputs[0].dims;
    const bool simple = is(lc, "SkipSimplifiedLayerNormalization");
    const int64_t n = selftest_count(x), n_skip = selftest_count(&lc->inputs[1].dims),
                  cols = x->dims[x->rank - 1];
    const size_t bias = simple ? 3 : 4;
    moments *all;
    double *sum = arena_alloc(lc->memory, (size_t)n + 1, sizeof *sum);
    if (!sum) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const double skip = in[1][i % n_skip], more = parameter(lc, in, bias, i % cols, 0);
        sum[i] = more + skip + in[0][i];
        if (wants(lc, out, 3)) put(&out[3], i, sum[i], fabs(in[0][i]) + fabs(skip) + fabs(more));
    }
    if (wants(lc, out, 1) || wants(lc, out, 2))
        return error_set(CLG_ERROR_NOT_FOUND, "outputs 1 and 2 of %s have no reference",
                         lc->node->op_type);
    const rows r = {.x = sum,
                    .n = n,
                    .cols = cols,
                    .epsilon = (double)node_float(lc->node, "epsilon", 1e-12f),
                    .gamma = 2,
                    .beta = 3};
    return simple ? scale_rows(lc, in, &r, &out[0]) : normalise_rows(lc, in, &r, &out[0], &all);
}

/* ---- EmbedLayerNormalization ----------------------------------------------------------------- */

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS };

/* Returns the row of a table for an index; kernels use row 0 for an index that is out of range. */
static const double *row_of(const lower_context *lc, const double *const *in, size_t table,
                            int64_t index)
{
    const shape *dims = &lc->inputs[table].dims;
    return in[table] + (index >= 0 && index < dims->dims[0] ? index : 0) * dims->dims[1];
}

/* Sets y and scale to the sums of the embeddings of ids, positions and segments, and of their
 * magnitudes. */
static void add_embeddings(const lower_context *lc, const double *const *in, double *y,
                           double *scale)
{
    const shape *ids = &lc->inputs[IDS].dims;
    const int64_t places = ids->dims[1], cols = lc->inputs[WORDS].dims.dims[1];
    for (int64_t r = 0; r < selftest_count(ids); r++) {
        int64_t place = r % places;
        if (lower_has_input(lc, POSITION_IDS))
            place = (int64_t)in[POSITION_IDS][r % selftest_count(&lc->inputs[POSITION_IDS].dims)];
        const double *terms[] = {row_of(lc, in, WORDS, (int64_t)in[IDS][r]),
                                 row_of(lc, in, POSITIONS, place), NULL};
        if (lower_has_input(lc, SEGMENT_IDS))
            terms[2] = row_of(lc, in, SEGMENTS, (int64_t)in[SEGMENT_IDS][r]);
        for (int k = 0; k < 3 && terms[k]; k++)
            selftest_axpy(1, terms[k], 1, cols, y + r * cols, scale + r * cols);
    }
}

clg_status selftest_embed_norm(const lower_context *lc, const double *const *in,
                               const selftest_expected *out)
{
    const shape *ids = &lc->inputs[IDS].dims;
    const int64_t cols = lc->inputs[WORDS].dims.dims[1], n = selftest_count(ids) * cols;
    double *sum = arena_alloc(lc->memory, (size_t)n + 1, sizeof *sum),
           *size = arena_alloc(lc->memory, (size_t)n + 1, sizeof *size);
    moments *all;
    if (!is(lc, "EmbedLayerNormalization"))
        return error_set(CLG_ERROR_NOT_FOUND, "%s has no reference", lc->node->op_type);
    if (!sum || !size) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    add_embeddings(lc, in, sum, size);
    const rows r = {.x = sum,
                    .n = n,
                    .cols = cols,
                    .epsilon = (double)node_float(lc->node, "epsilon", 1e-12f),
                    .gamma = GAMMA,
                    .beta = BETA};
    CLG_TRY(normalise_rows(lc, in, &r, &out[0], &all));
    for (int64_t i = 0; wants(lc, out, 2) && i < n; i++) put(&out[2], i, sum[i], size[i]);
    for (int64_t i = 0; wants(lc, out, 1) && i < selftest_count(ids); i++) {
        out[1].scale[i / ids->dims[1]] = 1;
        if (lower_has_input(lc, MASK)) out[1].y[i / ids->dims[1]] += in[MASK][i] == 1;
    }
    return CLG_OK;
}

bool selftest_embed_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                             double *out)
{
    static const size_t tables[] = {
        [IDS] = WORDS, [SEGMENT_IDS] = SEGMENTS, [POSITION_IDS] = POSITIONS};
    (void)at;
    if (input == MASK) {
        *out = (double)(random % 2);
        return true;
    }
    if (input != IDS && input != SEGMENT_IDS && input != POSITION_IDS) return false;
    const int64_t n_rows = p->inputs[tables[input]].dims.dims[0];
    *out = n_rows > 0 ? (double)(random % (uint64_t)n_rows) : 0;
    return true;
}
