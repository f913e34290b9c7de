/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-test reference, in double, of RotaryEmbedding of ONNX and of com.microsoft, and test inputs
 * with position ids within the caches. Pairs are rotated as complex numbers in polar form.
 */
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <math.h>
#include <string.h>

/* Indices of the inputs, which differ between ONNX and com.microsoft. */
typedef struct rotary_inputs {
    size_t cosines, sines, ids;
} rotary_inputs;

static rotary_inputs inputs_of(const node *n)
{
    return strcmp(n->domain, "com.microsoft") == 0 ? (rotary_inputs){2, 3, 1}
                                                   : (rotary_inputs){1, 2, 3};
}

/* Sizes of x: [batch, heads, positions, d] if by_head, else [batch, positions, heads, d]. The first
 * 2 * pairs elements of a head are rotated. */
typedef struct rotary_sizes {
    int64_t positions, heads, d, pairs;
    bool by_head;
} rotary_sizes;

static rotary_sizes sizes_of(const lower_context *lc, const shape *cosines)
{
    const shape *x = &lc->inputs[0].dims;
    const int64_t pairs = cosines->dims[cosines->rank - 1];
    if (x->rank == 4) return (rotary_sizes){x->dims[2], x->dims[1], x->dims[3], pairs, true};
    /* Without num_heads, com.microsoft's heads are as wide as the caches require. */
    const int64_t given = node_int(lc->node, "num_heads", 0), heads = given > 0 ? given
                                                                      : pairs > 0 && x->dims[2] > 0
                                                                          ? x->dims[2] / (2 * pairs)
                                                                          : 1;
    return (rotary_sizes){x->dims[1], heads, x->dims[2] / heads, pairs, false};
}

/* Returns the row of the caches for a position of a batch; kernels use row 0 for one that is out of
 * range. */
static int64_t cache_row(const lower_context *lc, const double *const *in, const rotary_sizes *s,
                         int64_t batch, int64_t position)
{
    const rotary_inputs at = inputs_of(lc->node);
    int64_t row = batch * s->positions + position;
    if (!lower_has_input(lc, at.ids)) return row;
    const bool is_offset = lc->inputs[at.ids].dims.rank < 2;
    row = is_offset ? (int64_t)in[at.ids][0] + position : (int64_t)in[at.ids][row];
    return row >= 0 && row < lc->inputs[at.cosines].dims.dims[0] ? row : 0;
}

/* Rotates the pair of elements `first` and `second` of x by the angle whose cosine and sine are c
 * and s, and scales it by their length. */
static void rotate(const double *x, int64_t first, int64_t second, double c, double s,
                   const selftest_expected *out)
{
    const double length = hypot(x[first], x[second]) * hypot(c, s),
                 angle = atan2(x[second], x[first]) + atan2(s, c);
    out->y[first] = length * cos(angle);
    out->y[second] = length * sin(angle);
    out->scale[first] = fabs(x[first] * c) + fabs(x[second] * s) + 1.0 / 32;
    out->scale[second] = fabs(x[first] * s) + fabs(x[second] * c) + 1.0 / 32;
}

clg_status selftest_rotary(const lower_context *lc, const double *const *in,
                           const selftest_expected *out)
{
    const rotary_inputs at = inputs_of(lc->node);
    const rotary_sizes s = sizes_of(lc, &lc->inputs[at.cosines].dims);
    const bool interleaved = node_int(lc->node, "interleaved", 0) != 0;
    const float factor = node_float(lc->node, "scale", 1);
    const int64_t n = selftest_count(&lc->inputs[0].dims);
    if ((factor != 1 && factor != 0) || node_int(lc->node, "is_packed_batching", 0) != 0)
        return error_set(CLG_ERROR_NOT_FOUND, "scale and packed batches have no reference");
    for (int64_t head = 0; head * s.d < n; head++) {
        const int64_t batch = head / (s.heads * s.positions);
        const int64_t position = s.by_head ? head % s.positions : head / s.heads % s.positions;
        const int64_t row = cache_row(lc, in, &s, batch, position), start = head * s.d;
        for (int64_t i = 0; i < s.pairs; i++) {
            const int64_t first = start + (interleaved ? 2 * i : i),
                          second = first + (interleaved ? 1 : s.pairs);
            rotate(in[0], first, second, in[at.cosines][row * s.pairs + i],
                   in[at.sines][row * s.pairs + i], &out[0]);
        }
        for (int64_t i = start + 2 * s.pairs; i < start + s.d; i++) {
            out[0].y[i] = in[0][i];
            out[0].scale[i] = fabs(in[0][i]);
        }
    }
    return CLG_OK;
}

bool selftest_rotary_contents(const selftest_problem *p, size_t input, int64_t at, uint64_t random,
                              double *out)
{
    const rotary_inputs inputs = inputs_of(&p->node);
    (void)at;
    if (input != inputs.ids) return false;
    const shape *x = &p->inputs[0].dims;
    const int64_t positions = x->dims[x->rank - 2];
    int64_t n = p->inputs[inputs.cosines].dims.dims[0];
    if (p->inputs[input].dims.rank < 2) n -= positions - 1; /* the id of the first position */
    *out = n > 0 ? (double)(random % (uint64_t)n) : 0;
    return true;
}
