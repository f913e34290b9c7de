// SPDX-License-Identifier: Apache-2.0
//
// Computes NonMaxSuppression (ONNX 10, 11). boxes: float [batches, n, 4]; scores: float [batches,
// classes, n]. For each batch and class: repeatedly selects the box of the highest remaining score
// (of equal ones the lower index), and removes all boxes whose overlap with it, intersection over
// union, is above a threshold.
//
// Parameters
//   P_LOCAL   work-items of a group, a power of two
//   P_CENTER  format of a box: 0: two opposite corners y, x, y, x; 1: x, y of the centre, width,
//             height
//   P_SCORE   1: only boxes with a score above the argument score; 0: all, except NaN
//   P_MAX_OUTPUT  1: max_output is given; 0: it is absent, and nothing is selected
//   P_IOU     1: iou is given; 0: it is absent, and the threshold is 0
// Arguments of nms_choose: a row is one batch and class
//   max_output  long: the maximum number of boxes per row
//   iou, score  float: the thresholds. An absent argument is any buffer
//   list        int [rows, n]: the first found[row] elements of a row become its boxes, best first
//   found       int [rows]: number of boxes selected
//   left        int [rows, n]: work memory for the boxes that remain
// Arguments of nms_write, which writes y from list:
//   total       number of boxes of all rows
//   offsets     int [rows]: number of boxes in all rows before
//   y           long [total, 3]: batch, class, box
// NDRange: nms_choose: one group per row; nms_write: total.
// Local memory: 8 * P_LOCAL bytes.
//
// @variant P_LOCAL=1 P_CENTER=0 P_SCORE=1 P_MAX_OUTPUT=1 P_IOU=1
// @variant P_LOCAL=256 P_CENTER=1 P_SCORE=0 P_MAX_OUTPUT=1 P_IOU=0
// @variant P_LOCAL=64 P_CENTER=0 P_SCORE=1 P_MAX_OUTPUT=0 P_IOU=1
#include "common/group_scan.clh"
#include "common/work_group.clh"

// Returns y0, x0, y1, x1 with y0 <= y1 and x0 <= x1.
static inline float4 corners(__global const float *boxes, const long at)
{
    const float4 b = vload4(at, boxes);
#if P_CENTER
    const float w = b.z / 2, h = b.w / 2;
    return (float4)(b.y - h, b.x - w, b.y + h, b.x + w);
#else
    return (float4)(fmin(b.x, b.z), fmin(b.y, b.w), fmax(b.x, b.z), fmax(b.y, b.w));
#endif
}

static inline float area(const float4 b) { return (b.z - b.x) * (b.w - b.y); }

static inline bool overlap(const float4 a, const float4 b, const float threshold)
{
    const float h = fmin(a.z, b.z) - fmax(a.x, b.x), w = fmin(a.w, b.w) - fmax(a.y, b.y);
    if (!(h > 0 && w > 0)) return false;
    const float both = h * w, of_a = area(a), of_b = area(b);
    return of_a > 0 && of_b > 0 && both / (of_a + of_b - both) > threshold;
}

// Writes the indices of the boxes whose score qualifies, ascending, to `rest`; returns their
// number.
static inline int candidates(__global const float *of, const int n, __global const float *score,
                             __global int *rest, __local int *sums)
{
    const int me = get_local_id(0);
    int n_left = 0;
    for (int first = 0; first < n; first += P_LOCAL) {
        const int i = first + me;
        const bool is = i < n && (P_SCORE ? of[i] > score[0] : of[i] == of[i]);
        int total;
        const int before = group_scan(is, sums, &total);
        if (is) rest[n_left + before] = i;
        n_left += total;
    }
#if P_LOCAL > 1
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
    return n_left;
}

// Goes through every P_LOCAL-th box of `rest`: if `any` is true, removes it if it overlaps `last`.
// Returns the index in `rest` of the best remaining one, or -1 for none; sets *out_score to its
// score.
static inline int best_of_share(__global const float *boxes, const long first_box,
                                __global const float *of, __global int *rest, int *n_left,
                                const bool any, const float4 last, const float threshold,
                                float *out_score)
{
    int best = -1;
#if P_LOCAL == 1
    int kept = 0;
#endif
    for (int k = get_local_id(0); k < *n_left; k += P_LOCAL) {
        const int i = rest[k];
        if (i < 0) continue;
        const bool out = any && overlap(last, corners(boxes, first_box + i), threshold);
#if P_LOCAL == 1
        const int at = kept; // close the gaps
        kept += !out;
#else
        const int at = k;
#endif
        rest[at] = out ? -1 : i;
        if (!out && (best < 0 || of[i] > *out_score)) {
            best = at;
            *out_score = of[i];
        }
    }
#if P_LOCAL == 1
    *n_left = kept;
#endif
    return best;
}

#if P_LOCAL > 1
// Returns the index in `rest` of the best box of all work-items; of equal scores the lower index.
static inline int best_of_group(const int best, const float score, __local int *places,
                                __local float *scores)
{
    const int me = get_local_id(0);
    places[me] = best;
    scores[me] = score;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = P_LOCAL / 2; step > 0; step /= 2) {
        if (me < step && places[me + step] >= 0 &&
            (places[me] < 0 || scores[me + step] > scores[me] ||
             (scores[me + step] == scores[me] && places[me + step] < places[me]))) {
            places[me] = places[me + step];
            scores[me] = scores[me + step];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int found = places[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return found;
}
#define GROUP_BARRIER barrier(CLK_GLOBAL_MEM_FENCE)
#else
#define GROUP_BARRIER
#endif

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void nms_choose(const int n_rows, const int classes, const int n,
                         __global const float *boxes, const long boxes_off,
                         __global const float *scores, const long scores_off,
                         __global const long *max_output, const long max_output_off,
                         __global const float *iou, const long iou_off, __global const float *score,
                         const long score_off, __global int *list, const long list_off,
                         __global int *found, const long found_off, __global int *left,
                         const long left_off)
{
    __local int sums[P_LOCAL];
#if P_LOCAL > 1
    __local float best_scores[P_LOCAL];
#endif
    int limit = 0;
#if P_MAX_OUTPUT
    limit = (int)clamp(max_output[max_output_off], 0l, (long)n);
#endif
    const float threshold = P_IOU ? iou[iou_off] : 0.0f;
    for (int row = get_group_id(0); row < n_rows; row += get_num_groups(0)) {
        __global const float *of = scores + scores_off + (long)row * n;
        __global int *rest = left + left_off + (long)row * n,
                     *chosen = list + list_off + (long)row * n;
        const long first_box = (long)(row / classes) * n;
        int n_left = limit > 0 ? candidates(of, n, score + score_off, rest, sums) : 0, n_chosen = 0;
        float4 last = (float4)(0);
        while (n_chosen < limit) {
            float best_score = 0;
            int best = best_of_share(boxes + boxes_off, first_box, of, rest, &n_left, n_chosen > 0,
                                     last, threshold, &best_score);
#if P_LOCAL > 1
            best = best_of_group(best, best_score, sums, best_scores);
#endif
            if (best < 0) break;
            const int i = rest[best];
            last = corners(boxes + boxes_off, first_box + i);
            GROUP_BARRIER; // all have read rest[best]
            if (get_local_id(0) == 0) {
                chosen[n_chosen] = i;
                rest[best] = -1;
            }
            ++n_chosen;
            GROUP_BARRIER;
        }
        if (get_local_id(0) == 0) found[found_off + row] = n_chosen;
    }
}

__kernel void nms_write(const int n_rows, const int classes, const int n, const int total,
                        __global const int *list, const long list_off, __global const int *offsets,
                        const long offsets_off, __global long *y, const long y_off)
{
    for (int k = get_global_id(0); k < total; k += get_global_size(0)) {
        int low = 0, high = n_rows; // the last row that begins at k or before
        while (high - low > 1) {
            const int at = low + (high - low) / 2;
            if (offsets[offsets_off + at] <= k)
                low = at;
            else
                high = at;
        }
        __global long *to = y + y_off + (long)k * 3;
        to[0] = low / classes;
        to[1] = low % classes;
        to[2] = list[list_off + (long)low * n + k - offsets[offsets_off + low]];
    }
}
