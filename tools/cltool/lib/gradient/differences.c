/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes directional derivatives in two ways. See differences.h.
 */
#include "differences.h"

#include "engine.h"
#include "splitmix.h"
#include "stats.h"
#include "values.h"

#include <clgraph/gradient.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_DIRECTIONS 3
#define N_DIRECTIONS_OF_MANY_NODES 5
#define N_STEPS 6
/* Rounding errors of an element of y, in units of its epsilon: float32 sums of many terms. What has
 * 16 bits is summed in float32 and rounded once. */
#define NOISE 4
#define NOISE_OF_MANY_NODES 32
#define NOISE_OF_16_BITS 1

/* Names of what is added to the model. */
static const char cotangent_name[] = "clgraph/check/cotangent",
                  product_name[] = "clgraph/check/product";

typedef struct checker {
    const check_point *points;
    size_t n_points;
    const char *y;
    clg_session *forward, *backward;
    clg_model *gradient; /* outputs: by point that varies its gradient */
    clg_value *at;       /* y at the points */
    double size_of_y;    /* magnitude_of it */
    double epsilon;
    bool has_many_nodes;
    uint64_t random;
    /* of the present direction */
    clg_value **directions; /* by point, elements in [-1, 1]; NULL: it does not vary */
    clg_value *low, *high;  /* y at both ends */
    clg_value *cotangent;
    bool leaves_out;  /* some of its elements are 0, since y is not smooth there */
    size_t n_stopped; /* elements of inputs that stop, since their gradient is not finite */
} checker;

static bool has_16_bits(const checker *c) { return c->epsilon > 1e-5; }

static double epsilon_of(clg_dtype dtype)
{
    switch (dtype) {
    case CLG_FLOAT64: return 0x1p-52;
    case CLG_FLOAT16: return 0x1p-10;
    case CLG_BFLOAT16: return 0x1p-7;
    default: return 0x1p-23;
    }
}

/* Returns the largest error that passes: at least 5 times those of right gradients. */
static double bound_of(double epsilon, bool has_many_nodes)
{
    if (has_many_nodes) return epsilon < 1e-10 ? 1e-3 : 5e-2; /* kinks of many nodes add up */
    return epsilon < 1e-10 ? 1e-6 : epsilon < 1e-5 ? 5e-3 : epsilon < 5e-3 ? 5e-2 : 2e-1;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int work_status(clg_status status)
{
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

/* Makes a tensor of the dtype with the elements of numbers, a float64 tensor, which is freed. */
static int narrow(clg_value *numbers, clg_dtype dtype, clg_value **out_value)
{
    const clg_status status = clg_value_cast(numbers, dtype, out_value, NULL);
    clg_value_free(numbers);
    return work_status(status);
}

static int make_numbers(const clg_value *like, clg_value **out_value)
{
    return work_status(
        clg_value_create(CLG_FLOAT64, clg_value_rank(like), clg_value_dims(like), out_value));
}

/* Makes a float64 tensor of random elements in [-1, 1]. */
static int make_random(checker *c, const clg_value *like, clg_value **out_value)
{
    const int code = make_numbers(like, out_value);
    if (code != CODE_DONE) return code;
    double *to = clg_value_data(*out_value);
    for (int64_t i = 0; i < clg_value_n_elements(like); i++)
        to[i] = 2 * splitmix_real(&c->random) - 1;
    return CODE_DONE;
}

/* Returns the geometric mean of the magnitudes of elements, without zeros; 1 if there are none. */
static double magnitude_of(const clg_value *v)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < clg_value_n_elements(v); i++) {
        const double x = fabs(clg_value_get_double(v, i));
        if (x == 0 || !isfinite(x)) continue;
        sum += log(x);
        n++;
    }
    return n > 0 ? exp(sum / (double)n) : 1;
}

/* Makes the value of a point that is moved by `step` along the direction. */
static int make_moved(const checker *c, size_t k, double step, clg_value **out_value)
{
    const clg_value *from = c->points[k].value;
    const double least = magnitude_of(from) / 10, *direction = clg_value_data(c->directions[k]);
    clg_value *numbers;
    const int code = make_numbers(from, &numbers);
    if (code != CODE_DONE) return code;
    double *to = clg_value_data(numbers);
    for (int64_t i = 0; i < clg_value_n_elements(from); i++) {
        const double x = clg_value_get_double(from, i);
        to[i] = x + step * direction[i] * fmax(fabs(x), least);
    }
    return narrow(numbers, clg_value_dtype(from), out_value);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static int set_input(clg_session *session, const char *name, clg_value *value)
{
    const clg_status status = clg_session_set_input(session, name, value);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, NULL);
}

/* Computes y at the points moved by `step`; 0: at the points. */
static int run_at(const checker *c, double step, clg_value **out_y)
{
    int code = CODE_DONE;
    for (size_t k = 0; k < c->n_points && code == CODE_DONE; k++) {
        clg_value *moved = NULL;
        if (step != 0 && c->points[k].varies) code = make_moved(c, k, step, &moved);
        if (code == CODE_DONE)
            code = set_input(c->forward, c->points[k].name, moved ? moved : c->points[k].value);
        clg_value_free(moved);
    }
    if (code == CODE_DONE) code = engine_run(c->forward);
    if (code == CODE_DONE) code = work_status(clg_session_get_output(c->forward, c->y, out_y));
    return code;
}

/* Makes the model of the gradient of the sum of cotangent * y. */
static clg_status differentiate(checker *c, const clg_model *model)
{
    const char **names = must_alloc(c->n_points + 1, sizeof *names);
    const char *factors[] = {c->y, cotangent_name}, *product = product_name;
    clg_builder *b = NULL;
    clg_model *with = NULL;
    size_t n = 0;
    for (size_t k = 0; k < c->n_points; k++)
        if (c->points[k].varies) names[n++] = c->points[k].name;
    clg_status status = clg_builder_create_from_model(model, 18, &b);
    if (status == CLG_OK)
        status = clg_builder_input(b, cotangent_name, clg_value_dtype(c->at), clg_value_rank(c->at),
                                   clg_value_dims(c->at), NULL);
    if (status == CLG_OK)
        status = clg_builder_node(b, "", "Mul", product_name, 2, factors, 1, &product);
    if (status == CLG_OK) status = clg_builder_output(b, product_name);
    if (status == CLG_OK) status = clg_builder_build(b, &with);
    if (status == CLG_OK) status = clg_model_gradient(with, product_name, names, n, &c->gradient);
    clg_model_free(with);
    clg_builder_free(b);
    free(names);
    return status;
}

static int start(checker *c, const options *o, clg_context *context, clg_model *model)
{
    int code = engine_create_session(o, context, model, &c->forward);
    if (code == CODE_DONE) code = run_at(c, 0, &c->at);
    if (code != CODE_DONE) return code;
    c->size_of_y = magnitude_of(c->at);
    c->epsilon = epsilon_of(clg_value_dtype(c->at));
    for (size_t k = 0; k < c->n_points; k++)
        if (c->points[k].varies)
            c->epsilon = fmax(c->epsilon, epsilon_of(clg_value_dtype(c->points[k].value)));
    if (clg_session_precision(c->forward) == CLG_PRECISION_FP16)
        c->epsilon = fmax(c->epsilon, 0x1p-10);
    code = work_status(differentiate(c, model));
    if (code == CODE_DONE) code = engine_create_session(o, context, c->gradient, &c->backward);
    for (size_t k = 0; k < c->n_points && code == CODE_DONE; k++)
        code = set_input(c->backward, c->points[k].name, c->points[k].value);
    return code;
}

/* ---- one direction --------------------------------------------------------------------------- */

/* Returns the rounding error of an element of y: also small ones are sums of large terms. */
static double noise_of(const checker *c, double y)
{
    const double units = has_16_bits(c)      ? NOISE_OF_16_BITS
                         : c->has_many_nodes ? NOISE_OF_MANY_NODES
                                             : NOISE;
    return units * c->epsilon * fmax(fabs(y), c->size_of_y);
}

/* Sets the cotangent: random, 0 where y is not smooth. *out_share: the part of all changes of y
 * that is left out. */
static int choose_cotangent(checker *c, double step, double *out_share)
{
    /* At a kink, differences to both sides disagree by more than this part of their sum. */
    const double kink = fmin(fmax(0.1, 2 * step), 0.5);
    clg_value *numbers;
    double all = 0, left_out = 0;
    int code = make_random(c, c->at, &numbers);
    if (code != CODE_DONE) return code;
    double *v = clg_value_data(numbers);
    c->leaves_out = false;
    for (int64_t j = 0; j < clg_value_n_elements(c->at); j++) {
        const double y = clg_value_get_double(c->at, j);
        const double after = clg_value_get_double(c->high, j) - y;
        const double before = y - clg_value_get_double(c->low, j);
        const double change = fabs(after) + fabs(before);
        const double noise = noise_of(c, y);
        const bool is_finite = isfinite(change);
        if (is_finite) all += change;
        if (is_finite && fabs(after - before) <= kink * change + noise) continue;
        if (is_finite) left_out += change;
        v[j] = 0;
        c->leaves_out = true;
    }
    *out_share = all > 0 ? left_out / all : 0;
    clg_value_free(c->cotangent);
    c->cotangent = NULL;
    return narrow(numbers, clg_value_dtype(c->at), &c->cotangent);
}

/* A sum, the root of the sum of the squares of its terms, and that of their rounding errors; bend:
 * by how much the changes to both sides differ. */
typedef struct total {
    double sum, squares, noise, bend;
} total;

/* Sums the changes of y between `low` and `high`, times the cotangent. */
static total changes_of(const checker *c, const clg_value *low, const clg_value *high)
{
    total t = {0};
    for (int64_t j = 0; j < clg_value_n_elements(c->at); j++) {
        const double v = clg_value_get_double(c->cotangent, j);
        if (v == 0) continue;
        const double before = clg_value_get_double(low, j), after = clg_value_get_double(high, j);
        const double y = clg_value_get_double(c->at, j), change = v * (after - before);
        const double noise = v * noise_of(c, y);
        t.bend += v * (before + after - 2 * y);
        t.sum += change;
        t.squares += change * change;
        t.noise += noise * noise;
    }
    return (total){t.sum, sqrt(t.squares), sqrt(t.noise), t.bend};
}

/* Adds what the gradient by point k says of a change of its value by twice the step. 0 times an
 * infinite derivative is NaN: where y is left out, elements with such a gradient are not moved any
 * more. */
static int add_expected(checker *c, size_t k, const clg_value *gradient, double step, total *t)
{
    clg_value *low = NULL, *high = NULL;
    int code = make_moved(c, k, -step, &low);
    if (code == CODE_DONE) code = make_moved(c, k, step, &high);
    double *direction = clg_value_data(c->directions[k]);
    for (int64_t i = 0; code == CODE_DONE && i < clg_value_n_elements(gradient); i++) {
        const double x = clg_value_get_double(high, i) - clg_value_get_double(low, i);
        const double change = clg_value_get_double(gradient, i) * x;
        if (direction[i] == 0) continue;
        if (c->leaves_out && !isfinite(change)) {
            direction[i] = 0;
            c->n_stopped++;
            continue;
        }
        t->sum += change;
        t->squares += change * change;
    }
    clg_value_free(low);
    clg_value_free(high);
    return code;
}

/* Sums what the gradient says of the change of y. */
static int expected_of(checker *c, double step, total *out_total)
{
    total t = {0};
    c->n_stopped = 0;
    size_t output = 0;
    int code = set_input(c->backward, cotangent_name, c->cotangent);
    if (code == CODE_DONE) code = engine_run(c->backward);
    for (size_t k = 0; k < c->n_points && code == CODE_DONE; k++) {
        clg_value *gradient = NULL;
        if (!c->points[k].varies) continue;
        const char *name = clg_model_output(c->gradient, output++)->name;
        code = work_status(clg_session_get_output(c->backward, name, &gradient));
        if (code == CODE_DONE) code = add_expected(c, k, gradient, step, &t);
        clg_value_free(gradient);
    }
    *out_total = (total){.sum = t.sum, .squares = sqrt(t.squares)};
    return code;
}

/* Computes y at both ends of the step. */
static int run_ends(const checker *c, double step, clg_value **out_low, clg_value **out_high)
{
    clg_value_free(*out_low);
    clg_value_free(*out_high);
    *out_low = *out_high = NULL;
    const int code = run_at(c, -step, out_low);
    return code == CODE_DONE ? run_at(c, step, out_high) : code;
}

static const char kink_reason[] = "a kink is near: the differences to both sides disagree";

/* What a step showed. */
typedef enum finding { DECIDED, TOO_LARGE, TOO_SMALL, AGAIN } finding;

/* Compares the change over a step, extrapolated with that over half of it, with what the gradient
 * says. With 16 bits the rounding errors of half a step are too large for that. */
static finding judge(const checker *c, check_result *r, const total *got, const total *half,
                     const total *want)
{
    const double sum = has_16_bits(c) ? got->sum : (8 * half->sum - got->sum) / 3;
    const double noise = has_16_bits(c) ? got->noise : (8 * half->noise + got->noise) / 3;
    const double scale = fmax(fmax(got->squares, want->squares), fabs(got->sum));
    const double distance = fabs(sum - want->sum);
    const bool is_constant = got->squares == 0 && half->squares == 0 && want->squares == 0;
    const bool is_finite = isfinite(want->squares);
    r->reason = "the gradient is not finite, near a point without a derivative";
    if (c->n_stopped > 0) return AGAIN;
    r->reason = kink_reason;
    if (is_constant && c->leaves_out) return TOO_LARGE;
    if (is_finite && !is_constant && noise > r->bound / 2 * scale) {
        r->reason = "it changes by less than rounding errors";
        return TOO_SMALL;
    }
    if (fabs(2 * half->sum - got->sum) > r->bound / 2 * scale + 2 * half->noise + got->noise) {
        r->reason = "differences of two steps disagree";
        return TOO_LARGE;
    }
    if (c->has_many_nodes && fabs(got->bend) > r->bound * scale + 2 * got->noise) {
        r->reason = kink_reason; /* of nodes before y: the error is half of the bend */
        return TOO_LARGE;
    }
    r->error = scale > 0 ? distance / scale : distance;
    r->reason = "";
    r->outcome = is_finite && distance <= r->bound * scale ? CHECK_OK : CHECK_FAILED;
    return DECIDED;
}

static int check_step(checker *c, double step, check_result *r, finding *out_finding)
{
    clg_value *low = NULL, *high = NULL; /* of half the step */
    total want;
    double share;
    int code = run_ends(c, step, &c->low, &c->high);
    if (code == CODE_DONE) code = choose_cotangent(c, step, &share);
    if (code != CODE_DONE) return code;
    *out_finding = TOO_LARGE;
    if (share >= 0.5) {
        r->reason = kink_reason;
        return CODE_DONE;
    }
    code = run_ends(c, step / 2, &low, &high);
    if (code == CODE_DONE) code = expected_of(c, step, &want);
    if (code == CODE_DONE) {
        const total got = changes_of(c, c->low, c->high), half = changes_of(c, low, high);
        *out_finding = judge(c, r, &got, &half, &want);
    }
    clg_value_free(low);
    clg_value_free(high);
    return code;
}

/* Looks for a step that decides. What one finds wrong must also be wrong at a smaller one, unless
 * rounding errors hide it there. */
static int check_steps(checker *c, check_result *r)
{
    double step = cbrt(c->epsilon);
    int n_failed = 0;
    finding before = DECIDED;
    for (int i = 0; i < N_STEPS; i++) {
        const char *reason = r->reason;
        finding found;
        const int code = check_step(c, step, r, &found);
        if (code != CODE_DONE || (found == DECIDED && r->outcome == CHECK_OK)) return code;
        const bool is_turn = (found == TOO_LARGE && before == TOO_SMALL) ||
                             (found == TOO_SMALL && before == TOO_LARGE);
        if (is_turn && found == TOO_SMALL) r->reason = reason;
        n_failed += found == DECIDED ? 1 : found == TOO_SMALL && n_failed > 0;
        if (n_failed >= 2 || is_turn) break;
        if (found == AGAIN) continue;
        step *= found == TOO_SMALL ? 8 : 0.25;
        before = found;
    }
    r->outcome = n_failed >= 2 ? CHECK_FAILED : CHECK_NOT_DONE;
    if (r->outcome == CHECK_FAILED) r->reason = "";
    return CODE_DONE;
}

static int check_direction(checker *c, check_result *out_result)
{
    int code = CODE_DONE;
    for (size_t k = 0; k < c->n_points && code == CODE_DONE; k++) {
        clg_value_free(c->directions[k]);
        c->directions[k] = NULL;
        if (c->points[k].varies) code = make_random(c, c->points[k].value, &c->directions[k]);
    }
    return code == CODE_DONE ? check_steps(c, out_result) : code;
}

/* The directions of one outcome. */
typedef struct directions {
    int count;
    double error; /* the largest */
} directions;

/* Joins the directions. Of one node each must be right. Of many nodes, a kink near one of them
 * spoils a direction now and then, and a wrong gradient most: 4 of 5 must agree. */
static void join(check_result *r, const directions *ok, const directions *failed,
                 bool has_many_nodes)
{
    if (ok->count + failed->count == 0) return;
    if (failed->count == 0 || (has_many_nodes && ok->count >= 4 * failed->count))
        r->outcome = CHECK_OK;
    else if (!has_many_nodes || failed->count >= 4 * ok->count)
        r->outcome = CHECK_FAILED;
    const bool is_open = r->outcome == CHECK_NOT_DONE;
    r->error = is_open ? NAN : r->outcome == CHECK_OK ? ok->error : failed->error;
    r->reason = is_open ? "kinks of some nodes are near: directions disagree" : "";
}

static int check_directions(checker *c, check_result *r)
{
    directions of[3] = {{0}};
    const int n = c->has_many_nodes ? N_DIRECTIONS_OF_MANY_NODES : N_DIRECTIONS;
    *r = (check_result){.outcome = CHECK_NOT_DONE, .error = NAN, .reason = ""};
    r->bound = bound_of(c->epsilon, c->has_many_nodes);
    if (c->has_many_nodes && has_16_bits(c)) {
        r->reason = "with 16 bits, the rounding errors of many nodes are too large";
        return CODE_DONE;
    }
    for (int i = 0; i < n; i++) {
        check_result one = {.outcome = CHECK_NOT_DONE, .bound = r->bound, .reason = ""};
        const int code = check_direction(c, &one);
        if (code != CODE_DONE) return code;
        directions *to = &of[one.outcome];
        if (to->count++ == 0 || !(one.error <= to->error)) to->error = one.error;
        if (one.outcome == CHECK_NOT_DONE) r->reason = one.reason;
    }
    join(r, &of[CHECK_OK], &of[CHECK_FAILED], c->has_many_nodes);
    return CODE_DONE;
}

int differences_check(const options *o, clg_context *context, clg_model *model, const char *y,
                      const check_point *points, size_t n_points, bool has_many_nodes,
                      uint64_t seed, check_result *out_result)
{
    checker c = {.points = points,
                 .n_points = n_points,
                 .y = y,
                 .has_many_nodes = has_many_nodes,
                 .random = seed,
                 .directions = must_alloc(n_points, sizeof(clg_value *))};
    int code = start(&c, o, context, model);
    if (code == CODE_DONE) code = check_directions(&c, out_result);
    for (size_t k = 0; k < n_points; k++) clg_value_free(c.directions[k]);
    free(c.directions);
    clg_value_free(c.cotangent);
    clg_value_free(c.low);
    clg_value_free(c.high);
    clg_value_free(c.at);
    clg_session_free(c.backward);
    clg_session_free(c.forward);
    clg_model_free(c.gradient);
    return code;
}
