/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares gradients with central differences. See gradient_case.h.
 */
#include "support/unit.h"

#include "support/case_share.h"
#include "support/cases/gradient/gradient_case.h"
#include "support/fixtures/graph_text.h"

#include <clgraph/gradient.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 5, MAX_ELEMENTS = 256 };

/* The values of a model's inputs: all float64. */
typedef struct point {
    size_t n;
    const char *names[MAX_INPUTS];
    size_t ranks[MAX_INPUTS];
    int64_t dims[MAX_INPUTS][CLG_MAX_RANK];
    size_t sizes[MAX_INPUTS];
    double data[MAX_INPUTS][MAX_ELEMENTS];
    bool single;
} point;

static double draw(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (double)(1u << 24);
}

static double draw_in(gradient_range range, unsigned *seed)
{
    const double u = draw(seed);
    switch (range) {
    case GRADIENT_POSITIVE: return 0.3 + 1.7 * u;
    case GRADIENT_INNER: return -0.9 + 1.8 * u;
    case GRADIENT_ABOVE_1: return 1.2 + 1.8 * u;
    case GRADIENT_ZEROS: return u < 0.25 ? 0 : draw_in(GRADIENT_ANY, seed);
    default: return u < 0.5 ? -0.05 - 1.95 * 2 * u : 0.05 + 1.95 * (2 * u - 1);
    }
}

static void make_point(const clg_model *m, const gradient_case *c, point *p)
{
    unsigned seed = 7;
    p->single = c->single;
    p->n = clg_model_n_inputs(m);
    assert_true(p->n <= MAX_INPUTS);
    for (size_t i = 0; i < p->n; i++) {
        const clg_port *port = clg_model_input(m, i);
        p->names[i] = port->name;
        p->ranks[i] = (size_t)port->rank;
        p->sizes[i] = 1;
        for (int d = 0; d < port->rank; d++) {
            p->dims[i][d] = port->dims[d] >= 0 ? port->dims[d] : c->n ? c->n : 2;
            p->sizes[i] *= (size_t)p->dims[i][d];
        }
        assert_true(p->sizes[i] <= MAX_ELEMENTS);
        for (size_t k = 0; k < p->sizes[i]; k++) p->data[i][k] = draw_in(c->range, &seed);
    }
}

/* Runs the session; out[i], of n_out of them, gets the elements of output i. */
static void run(clg_session *s, const point *p, const char *const *names, size_t n_out,
                double out[][MAX_ELEMENTS], size_t *out_sizes)
{
    static float singles[MAX_INPUTS][MAX_ELEMENTS], single_results[MAX_INPUTS + 1][MAX_ELEMENTS];
    const clg_dtype dtype = p->single ? CLG_FLOAT32 : CLG_FLOAT64;
    const size_t size = p->single ? sizeof(float) : sizeof(double);
    clg_call_input in[MAX_INPUTS];
    clg_call_output results[MAX_INPUTS + 1];
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->sizes[i]; k++) singles[i][k] = (float)p->data[i][k];
        in[i] = (clg_call_input){.name = p->names[i],
                                 .dtype = dtype,
                                 .rank = p->ranks[i],
                                 .dims = p->dims[i],
                                 .data = p->single ? (const void *)singles[i] : p->data[i],
                                 .size_bytes = p->sizes[i] * size};
    }
    for (size_t i = 0; i < n_out; i++)
        results[i] = (clg_call_output){.name = names[i],
                                       .data = p->single ? (void *)single_results[i] : out[i],
                                       .capacity_bytes = MAX_ELEMENTS * size};
    assert_ok(clg_session_call(s, in, p->n, results, n_out));
    for (size_t i = 0; i < n_out; i++) {
        assert_int_equal(results[i].dtype, dtype);
        assert_null(results[i].value);
        out_sizes[i] = results[i].size_bytes / size;
        for (size_t k = 0; p->single && k < out_sizes[i]; k++)
            out[i][k] = (double)single_results[i][k];
    }
}

static double sum_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += values[i];
    return sum;
}

/* Compares the gradients, outputs of `gradients`, with differences of the sum of the elements of
 * `what`, an output of `values`. */
static void compare(const gradient_case *c, clg_session *values, const char *what,
                    clg_session *gradients, const point *at, double tolerance)
{
    char names[MAX_INPUTS][80];
    const char *list[MAX_INPUTS];
    static double found[MAX_INPUTS][MAX_ELEMENTS], up[1][MAX_ELEMENTS], down[1][MAX_ELEMENTS],
        wanted[MAX_ELEMENTS];
    size_t sizes[MAX_INPUTS], n;
    const double step = c->single ? 1e-2 : 1e-5;
    if (c->single) tolerance = 5e-3;
    for (size_t i = 0; i < at->n; i++) {
        /* a second derivative's first gradient has the name already */
        (void)snprintf(names[i], sizeof names[i], "%s_grad%s", at->names[i],
                       strstr(what, "_grad") ? "_2" : "");
        list[i] = names[i];
    }
    run(gradients, at, list, at->n, found, sizes);
    for (size_t i = 0; i < at->n; i++) {
        double scale = c->single ? 0.05 : 1;
        point p = *at;
        assert_int_equal(sizes[i], at->sizes[i]);
        for (size_t k = 0; k < at->sizes[i]; k++) {
            p.data[i][k] = at->data[i][k] + step;
            run(values, &p, &what, 1, up, &n);
            const double high = sum_of(up[0], n);
            p.data[i][k] = at->data[i][k] - step;
            run(values, &p, &what, 1, down, &n);
            p.data[i][k] = at->data[i][k];
            wanted[k] = (high - sum_of(down[0], n)) / (2 * step);
            scale = fmax(scale, fabs(wanted[k]));
        }
        for (size_t k = 0; k < at->sizes[i]; k++)
            if (!(fabs(found[i][k] - wanted[k]) <= tolerance * scale))
                fail_msg("%s: the gradient of '%s' by element %zu of '%s' is %.12g, not %.12g",
                         c->text, what, k, at->names[i], found[i][k], wanted[k]);
    }
}

static clg_session *open_session(clg_context *context, clg_kernel_class kernels, clg_model *m)
{
    clg_session *s;
    clg_session_options o = CLG_SESSION_OPTIONS_INIT;
    o.kernels = kernels;
    assert_ok(clg_session_create(context, m, &o, &s));
    return s;
}

static clg_model *gradient_of(const clg_model *m, const char *y, const point *p)
{
    clg_model *made;
    assert_ok(clg_model_gradient(m, y, p->names, p->n, &made));
    return made;
}

/* Compares second derivatives: by each first gradient in turn. */
static void compare_second(clg_context *context, clg_kernel_class kernels, const gradient_case *c,
                           const clg_model *first, clg_session *gradients, const point *p)
{
    for (size_t i = 0; i < p->n; i++) {
        char what[80];
        (void)snprintf(what, sizeof what, "%s_grad", p->names[i]);
        clg_model *second = gradient_of(first, what, p);
        clg_session *s = open_session(context, kernels, second);
        compare(c, gradients, what, s, p, 1e-6);
        clg_session_free(s);
        clg_model_free(second);
    }
}

void gradient_case_check(clg_context *context, clg_kernel_class kernels, const gradient_case *c,
                         bool second)
{
    static char text[2048];
    static point p;
    (void)snprintf(text, sizeof text,
                   "%s weights = %s[%s]; weighted = Mul(z, weights); "
                   "loss = ReduceSum(weighted) keepdims=0; out loss",
                   c->text, c->single ? "f32" : "f64", c->dims);
    clg_model *m = graph_text_model(c->opset ? c->opset : 18, text);
    make_point(m, c, &p);
    clg_model *first = gradient_of(m, "loss", &p);
    clg_session *gradients = open_session(context, kernels, first);
    compare(c, gradients, "loss", gradients, &p, 1e-7);
    if (second) compare_second(context, kernels, c, first, gradients, &p);
    clg_session_free(gradients);
    clg_model_free(first);
    clg_model_free(m);
}

void gradient_cases_check(clg_context *context, const gradient_case *cases, size_t n)
{
    const char *share = getenv("CLG_TEST_SHARE");
    const bool all = share && strcmp(share, "all") == 0;
    for (size_t i = 0; i < n; i++) {
        const bool second = share ? case_share_takes(i, 4) : i % 2 == 0;
        const bool simt = share ? case_share_takes(i + 1, 4) : i % 3 == 0;
        if (i == 0 || case_share_takes(i, 2))
            gradient_case_check(context, CLG_KERNELS_SIMD, &cases[i], second);
        if (simt) gradient_case_check(context, CLG_KERNELS_SIMT, &cases[i], all);
    }
}
