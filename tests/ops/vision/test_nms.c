/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares NonMaxSuppression with a reference that sorts the boxes first and then marks overlaps.
 * Box coordinates are multiples of 1/4, so that intersection over union is not near a threshold,
 * whatever the rounding.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <math.h>

typedef struct problem {
    int64_t batches, classes, n;
    const double *boxes, *scores;
    bool center;
    /* max_output_boxes_per_class, iou_threshold, score_threshold; NAN: not given. */
    double max, iou, score;
} problem;

typedef struct box {
    double y0, x0, y1, x1;
} box;

static box box_of(const problem *p, int64_t at)
{
    const double *b = p->boxes + at * 4;
    if (p->center) return (box){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    return (box){fmin(b[0], b[2]), fmin(b[1], b[3]), fmax(b[0], b[2]), fmax(b[1], b[3])};
}

static bool overlap(box a, box b, double threshold)
{
    const double h = fmin(a.y1, b.y1) - fmax(a.y0, b.y0), w = fmin(a.x1, b.x1) - fmax(a.x0, b.x0);
    if (h <= 0 || w <= 0) return false;
    const double of_a = (a.y1 - a.y0) * (a.x1 - a.x0), of_b = (b.y1 - b.y0) * (b.x1 - b.x0);
    return h * w / (of_a + of_b - h * w) > threshold;
}

/* Writes the indices of the candidates, by descending score and, if equal, ascending index, to
 * `out`; returns their number. */
static int64_t sort_candidates(const problem *p, const double *scores, double *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t at = count;
        if (isnan(scores[i]) || (!isnan(p->score) && !(scores[i] > p->score))) continue;
        for (; at > 0 && scores[(int64_t)out[at - 1]] < scores[i]; at--) out[at] = out[at - 1];
        out[at] = (double)i;
        count++;
    }
    return count;
}

static int64_t choose(const problem *p, int64_t row, double *y, int64_t found)
{
    double *order = run_node_zeros(p->n), *out = run_node_zeros(p->n);
    const int64_t b = row / p->classes, max = isnan(p->max) ? 0 : (int64_t)p->max;
    const int64_t count = sort_candidates(p, p->scores + row * p->n, order);
    int64_t chosen = 0;
    for (int64_t k = 0; k < count && chosen < max; k++) {
        if (out[k] != 0) continue;
        const int64_t i = (int64_t)order[k];
        double *to = y + (found + chosen++) * 3;
        to[0] = (double)b;
        to[1] = (double)(row % p->classes);
        to[2] = (double)i;
        for (int64_t other = k + 1; other < count; other++)
            if (overlap(box_of(p, b * p->n + i), box_of(p, b * p->n + (int64_t)order[other]),
                        isnan(p->iou) ? 0 : p->iou))
                out[other] = 1;
    }
    return found + chosen;
}

static void number(run_node *r, clg_dtype dtype, const double *x)
{
    if (isnan(*x))
        run_node_absent(r);
    else
        run_node_input(r, dtype, DIMS(1), x);
}

static void nms(const problem *p)
{
    const int64_t rows = p->batches * p->classes;
    double *y = run_node_zeros(rows * p->n * 3);
    int64_t found = 0;
    run_node r;
    for (int64_t row = 0; row < rows; row++) found = choose(p, row, y, found);
    run_node_start(&r, NULL, "NonMaxSuppression", 11);
    run_node_int(&r, "center_point_box", p->center);
    run_node_input(&r, CLG_FLOAT32, DIMS(p->batches, p->n, 4), p->boxes);
    run_node_input(&r, CLG_FLOAT32, DIMS(p->batches, p->classes, p->n), p->scores);
    number(&r, CLG_INT64, &p->max);
    number(&r, CLG_FLOAT32, &p->iou);
    number(&r, CLG_FLOAT32, &p->score);
    run_node_expect(&r, CLG_INT64, DIMS(found, 3), y);
    run_node_check(&r, 0);
}

static problem random_problem(int64_t batches, int64_t classes, int64_t n)
{
    double *boxes = run_node_random(batches * n * 4),
           *scores = run_node_random(batches * classes * n);
    for (int64_t i = 0; i < batches * n * 4; i++) boxes[i] = floor(boxes[i] * 32) / 4 + 8;
    for (int64_t i = 0; i < batches * classes * n; i++) scores[i] = floor(scores[i] * 64) / 64;
    return (problem){batches, classes, n, boxes, scores, false, 1000, 0.4531, NAN};
}

TEST(nms__random)
{
    static const int64_t sizes[][3] = {{1, 1, 1},  {1, 1, 2},   {2, 3, 31},
                                       {1, 2, 65}, {1, 5, 300}, {3, 1, 257}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        problem p = random_problem(sizes[i][0], sizes[i][1], sizes[i][2]);
        nms(&p);
        p.score = 0.25;
        p.max = 3;
        nms(&p);
        p.center = true;
        nms(&p);
    }
}

TEST(nms__inputs_left_out)
{
    problem p = random_problem(1, 2, 20);
    p.max = NAN; /* the default of 0 selects nothing */
    nms(&p);
    p.max = 4;
    p.iou = NAN; /* the default of 0 suppresses any overlap */
    nms(&p);
    p.max = -3;
    nms(&p);
}

TEST(nms__nothing_and_all)
{
    problem p = random_problem(1, 2, 40);
    p.score = 5;
    nms(&p);
    p.score = NAN;
    p.iou = 1;
    nms(&p);
    p = random_problem(1, 2, 0);
    nms(&p);
    p = random_problem(0, 2, 5);
    nms(&p);
}

/* Overlaps of exactly one half, and complete ones: boxes that overlap by exactly the threshold are
 * kept. */
TEST(nms__equal_to_the_threshold)
{
    const double boxes[] = {0, 0, 1, 2, 0, 0, 1, 1, 4, 4, 5, 5, 4, 4, 5, 5},
                 scores[] = {4, 3, 2, 1};
    problem p = {1, 1, 4, boxes, scores, false, 4, 0.5, NAN};
    nms(&p);
    p.iou = 1;
    nms(&p);
    p.iou = 0.25;
    nms(&p);
}

TEST(nms__ties_and_nan)
{
    problem p = random_problem(1, 1, 70);
    double *scores = run_node_zeros(70);
    p.scores = scores;
    nms(&p);
    for (int i = 0; i < 70; i += 3) scores[i] = NAN;
    nms(&p);
    p.score = -1;
    nms(&p);
}

TEST(nms__refuses_shapes_that_do_not_fit)
{
    const problem p = random_problem(1, 1, 6);
    run_node r;
    run_node_start(&r, NULL, "NonMaxSuppression", 10);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 6, 4), p.boxes);
    run_node_input(&r, CLG_FLOAT32, DIMS(1, 1, 5), p.scores);
    run_node_expect(&r, CLG_INT64, DIMS(0, 3), p.scores);
    run_node_refused(&r, CLG_ERROR_SHAPE, "[b,c,n]");
}

TEST_GROUP(run_node_open, run_node_close)
