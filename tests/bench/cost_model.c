/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the cost models of src/ops on this machine. For each problem, times the implementation and
 * tiling that a model chooses and those that it rejects, and prints the estimated costs beside the
 * measured times.
 *
 *     cost_model [SET|all [ROUNDS [PROBLEMS]]]    default: all, 15, those below; needs a CPU device
 *
 *     SET         compares                                               constants in
 *     winograd    F(4x4, 3x3), F(2x2, 3x3), direct convolution; tilings  winograd.c, conv_blocked.c
 *     conv        the same in NCHW, and other convolutions               winograd.c, conv_simd.c
 *     blocked     tilings of conv_blocked                                conv_blocked.c
 *     expand      tilings of conv_expand_blocked; two kernels            conv_expand_blocked.c
 *     qconv       tilings of 8-bit convolutions                          qconv_simd.c
 *     transposed  GEMMs of 1x1 convolutions in NCHW, and transposed      conv.c
 *     gemm        numbers of work-groups                                 gemm_simd.c
 *
 * Each output line is a candidate: its best wall-clock time and best processor time in ROUNDS
 * alternating runs, the estimate in kilocycles of a core, and the ratio of estimated cycles, times
 * the number of cores, to nanoseconds of processor time. The ratio is equal in all lines if the
 * constants are right. '>' marks the model's choice; loss is its time divided by that of the
 * fastest. Processor time is not affected by other programs, but does not include idle cores.
 * Tilings are those whose cost is at least 1, 1.03 ... 3 times that of the cheapest.
 */
#include "support/fixtures/sized_data.h"

#include "session/context_handle.h"
#include "session/exec/exec.h"
#include "session/exec/model.h"
#include "session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CANDIDATES = 40, NAME_BYTES = 32 };
typedef enum set_kind { WINOGRAD, CONV, BLOCKED, EXPAND, QCONV, TRANSPOSED, GEMM, N_SETS } set_kind;

/* Lists what is measured: implementations, each with all of its tilings, or without `impls` the
 * choices of start_trial. Problems are "channels, output channels, height and width, kernel,
 * stride"; of expand a 1x1 convolution followed by a depthwise one with this kernel and stride; of
 * gemm "k, n, m". */
static const struct {
    const char *name, *impls[3];
    const char *problems;
} sets[N_SETS] = {
    {"winograd",
     {"winograd_4x4", "winograd_2x2", "conv_blocked"},
     "64 64 56 3 1; 128 128 28 3 1; 256 256 14 3 1; 512 512 7 3 1; 96 208 14 3 1; 128 32 7 3 1"},
    {"conv",
     {"winograd_4x4", "winograd_2x2", "conv_simd"},
     "64 64 56 3 1; 256 256 14 3 1; 16 16 200 3 1; 3 64 224 7 2; 64 128 56 3 2; 48 64 27 5 1"},
    {"blocked",
     {"conv_blocked"},
     "64 256 56 1 1; 256 1024 14 1 1; 2048 512 7 1 1; 128 128 56 3 2; 512 512 14 3 2"},
    {"expand",
     {"conv_expand_blocked", "conv_expand_apart"},
     "16 96 112 3 2; 32 192 28 3 1; 96 576 14 3 1; 160 960 7 3 1"},
    {"qconv",
     {"qconv_simd_byte", "qconv_simd_short", "qconv_simd_float"},
     "64 64 56 1 1; 128 128 28 3 1; 512 512 7 3 1; 3 64 224 7 2"},
    {"transposed",
     .problems = "2048 512 7 1 1; 960 160 7 1 1; 576 96 14 1 1; 64 64 14 1 1; 256 1024 14 1 1"},
    {"gemm", .problems = "784 10 1; 784 128 1; 784 128 32; 128 128 64; 768 768 128; 64 64 3136"},
};
static const double factors[] = {0, 1.03, 1.1, 1.2, 1.4, 1.7, 2, 3}; /* times the lowest cost */

typedef struct problem {
    long long c, m, side, k, stride;
} problem;

typedef struct attempt {
    char name[NAME_BYTES];
    double cost, best_us, best_cpu_us; /* cost: estimated cycles; 0: not known */
    clg_session *session;
} attempt;

static void check(clg_status s)
{
    if (s == CLG_OK) return;
    fprintf(stderr, "cost_model: %s\n", clg_last_error());
    exit(1);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Adds a constant of zeros: unless they are denormal, values do not affect the times. */
static value_id add_weight(graph *g, const char *name, clg_dtype dtype, shape dims)
{
    value_id v;
    tensor *t;
    check(tensor_create(dtype, &dims, &t));
    memset(t->data, 0, (size_t)t->n_elements * dtype_size(dtype));
    check(graph_add_constant(g, name, t, &v));
    tensor_free(t);
    return v;
}

static shape input_dims(set_kind kind, const problem *p, int64_t lanes)
{
    if (kind == GEMM) return (shape){2, {p->side, p->c}};
    if (kind != WINOGRAD && kind != BLOCKED && kind != EXPAND)
        return (shape){4, {1, p->c, p->side, p->side}};
    return (shape){5, {1, (p->c + lanes - 1) / lanes, p->side, p->side, lanes}};
}

static void set_attributes(graph *g, node_id n, set_kind kind, const problem *p, int64_t lanes)
{
    const int64_t pad = (p->k - 1) / 2;
    check(node_set_ints(g, n, "strides", 2, (int64_t[]){p->stride, p->stride}));
    check(node_set_ints(g, n, "pads", 4, (int64_t[]){pad, pad, pad, pad}));
    if (kind == EXPAND) check(node_set_int(g, n, "group", p->m));
    if (lanes) check(node_set_int(g, n, "lanes", lanes));
    if (kind == WINOGRAD || kind == CONV) check(node_set_int(g, n, "winograd", 1));
}

static clg_model *make_model(set_kind kind, const problem *p, const shape *x)
{
    const char *type = kind == GEMM    ? "MatMul"
                       : kind == QCONV ? "ConvInteger"
                       : x->rank == 5  ? "BlockedConv"
                                       : "FusedConv";
    value_id in[6] = {0, 1, VALUE_NONE, VALUE_NONE, VALUE_NONE, VALUE_NONE}, y;
    graph *g;
    clg_model *model;
    node_id n;
    check(graph_create("", &g));
    check(graph_set_opset(g, "", 13));
    check(graph_set_opset(g, "clgraph", 1));
    check(graph_add_value(g, "x", &in[0]));
    g->values[in[0]].dtype = kind == QCONV ? CLG_UINT8 : CLG_FLOAT32;
    g->values[in[0]].dims = *x;
    check(graph_add_input(g, in[0]));
    shape w = {4, {p->m, kind == EXPAND ? 1 : p->c, p->k, p->k}};
    if (kind == GEMM) w = (shape){2, {p->c, p->m}};
    in[1] = add_weight(g, "w", kind == QCONV ? CLG_INT8 : CLG_FLOAT32, w);
    if (kind == EXPAND) in[4] = add_weight(g, "w1", CLG_FLOAT32, (shape){4, {p->m, p->c, 1, 1}});
    check(graph_add_value(g, "y", &y));
    check(graph_add_node(g, kind == GEMM || kind == QCONV ? "" : "clgraph", type, "",
                         kind == EXPAND ? 6 : 2, in, 1, &y, &n));
    if (kind != GEMM) set_attributes(g, n, kind, p, x->rank == 5 ? x->dims[4] : 0);
    check(graph_add_output(g, y));
    check(model_create(g, false, &model));
    return model;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static attempt seen; /* the candidate being started, filled in by note_impl */

/* plan_compiler.compiles: records the implementation and its cost in `seen`. */
static clg_status note_impl(void *self, const candidate *impl, bool *out_compiles)
{
    (void)snprintf(seen.name, sizeof seen.name, "%s", impl->variant);
    seen.cost = impl->cost > 0 ? impl->cost : impl->tiling_cost;
    return context_compiles(self, impl, out_compiles);
}

/* Creates a session, sets its input, and runs it once. impl: the preferred implementation, or
 * NULL. */
static attempt start(clg_context *context, set_kind kind, const problem *p, const char *impl,
                     const lower_trial *trial)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    const shape dims =
        input_dims(kind, p, caps_simd_lanes(ocl_context_caps(context->current->ocl)));
    const clg_dtype dtype = kind == QCONV ? CLG_UINT8 : CLG_FLOAT32;
    clg_model *model = make_model(kind, p, &dims);
    void *zeros = calloc((size_t)shape_product(&dims, 0, dims.rank), dtype_size(dtype));
    options.kernels = CLG_KERNELS_SIMD;
    options.disabled_passes = (const char *const[]){"blocked"};
    options.n_disabled_passes = 1;
    options.preferred_impls = &impl;
    options.n_preferred_impls = impl != NULL;
    seen = (attempt){.best_us = INFINITY, .best_cpu_us = INFINITY};
    check(clg_session_create(context, model, &options, &seen.session));
    clg_model_free(model);
    seen.session->exec->planning.trial = *trial;
    seen.session->exec->planning.compiler = (plan_compiler){context->current, note_impl};
    if (!zeros) exit(1);
    check(sized_input(seen.session, "x", dtype, (size_t)dims.rank, dims.dims, zeros));
    free(zeros);
    check(clg_session_run(seen.session));
    return seen;
}

/* Starts sessions with the tilings of an implementation, the cheapest first, in `out`. Returns
 * their number: 0 where the implementation does not support the problem. */
static size_t start_tilings(clg_context *context, set_kind kind, const problem *p, const char *impl,
                            attempt *out)
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof factors / sizeof *factors && (i == 0 || n > 0); i++) {
        const lower_trial trial = {.min_cost = i ? factors[i] * out[0].cost : 0};
        out[n] = start(context, kind, p, impl, &trial);
        if (strcmp(out[n].name, impl) == 0 && (n == 0 || out[n].cost > out[n - 1].cost))
            n++;
        else
            clg_session_free(out[n].session);
    }
    return n;
}

/* Starts a session without a cost estimate: the library's own choice (i = 0) or its alternative i.
 */
static attempt start_trial(clg_context *context, set_kind kind, const problem *p, int i)
{
    lower_trial trial = {.n_groups = kind == GEMM && i ? 1 << (i - 1) : 0,
                         .transposed = kind == GEMM || i == 0 ? 0
                                       : i == 1               ? -1
                                                              : 1};
    attempt a = start(context, kind, p, NULL, &trial);
    (void)snprintf(a.name, sizeof a.name,
                   i == 0         ? "its choice"
                   : kind == GEMM ? "groups: %d"
                                  : "transposed: %d",
                   kind == GEMM ? (int)trial.n_groups : i - 1);
    return a;
}

/* Runs repeatedly until 0.3 ms have passed, at least once, and updates the best times. */
static void run(attempt *a)
{
    double total_us = 0;
    do {
        struct timespec from, to;
        const clock_t used = clock();
        timespec_get(&from, TIME_UTC);
        check(clg_session_run(a->session));
        timespec_get(&to, TIME_UTC);
        const double us =
            difftime(to.tv_sec, from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
        a->best_us = fmin(a->best_us, us);
        a->best_cpu_us = fmin(a->best_cpu_us, (double)(clock() - used) * 1e6 / CLOCKS_PER_SEC);
        total_us += us;
    } while (total_us < 300);
}

/* Measures a problem's candidates and prints them. out_loss: time, and processor time, of the
 * model's choice divided by those of the fastest. */
static void measure(clg_context *context, set_kind kind, const problem *p, int rounds,
                    double out_loss[2])
{
    attempt all[MAX_CANDIDATES], best = {.best_us = INFINITY, .best_cpu_us = INFINITY};
    size_t n = 0, chosen = 0;
    const double units = ocl_context_caps(context->current->ocl)->compute_units;
    const int n_trials = kind == GEMM ? 7 : kind == TRANSPOSED ? 3 : 0;
    for (int i = 0; i < n_trials; i++) all[n++] = start_trial(context, kind, p, i);
    for (int i = 0; i < 3 && sets[kind].impls[i]; i++)
        n += start_tilings(context, kind, p, sets[kind].impls[i], all + n);
    attempt own = start(context, kind, p, NULL, &(lower_trial){0});
    for (size_t i = 0; i < (size_t)rounds * n; i++) run(&all[i % n]);
    for (size_t i = 0; i < n; i++) {
        best.best_us = fmin(best.best_us, all[i].best_us);
        best.best_cpu_us = fmin(best.best_cpu_us, all[i].best_cpu_us);
        if (strcmp(all[i].name, own.name) == 0 && all[i].cost <= own.cost) chosen = i;
    }
    clg_session_free(own.session);
    out_loss[0] = n ? all[chosen].best_us / best.best_us : 1;
    out_loss[1] = n ? all[chosen].best_cpu_us / best.best_cpu_us : 1;
    for (size_t i = 0; i < n; i++) {
        printf("%s %-20s %8.1f us, %8.1f of processors", i == chosen ? ">" : " ", all[i].name,
               all[i].best_us, all[i].best_cpu_us);
        if (all[i].cost > 0 && n_trials == 0)
            printf(", %8.1f kcycles: %4.2f a ns", all[i].cost * 1e-3,
                   all[i].cost * 1e-3 * units / all[i].best_cpu_us);
        printf("%s\n", all[i].best_us <= best.best_us ? "  fastest" : "");
        clg_session_free(all[i].session);
    }
    printf("  loss %.2f, of processor time %.2f\n", out_loss[0], out_loss[1]);
}

static void measure_set(clg_context *context, set_kind kind, int rounds, const char *problems)
{
    double logs[2] = {0}, worst[2] = {0}, loss[2];
    int n = 0;
    for (const char *at = problems; at; at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL, n++) {
        long long v[5];
        char *end;
        printf("%s: %.*s\n", sets[kind].name, (int)strcspn(at, ";"), at);
        for (int i = 0; i < 5; i++, at = end) v[i] = strtoll(at, &end, 10);
        const problem p = {v[0], v[1], v[2], v[3], v[4]};
        measure(context, kind, &p, rounds, loss);
        for (int i = 0; i < 2; i++) {
            logs[i] += log(loss[i]);
            worst[i] = fmax(worst[i], loss[i]);
        }
    }
    printf("%s, %d problems: loss %.2f on average, %.2f at most; of processor time %.2f, %.2f\n\n",
           sets[kind].name, n, exp(logs[0] / n), worst[0], exp(logs[1] / n), worst[1]);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 15;
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    if (rounds < 1) return 2;
    options.compile_helper = CLG_TEST_COMPILE_HELPER;
    check(clg_context_create(NULL, &options, &context));
    for (int i = 0; i < N_SETS; i++)
        if (argc < 2 || strcmp(argv[1], sets[i].name) == 0 || strcmp(argv[1], "all") == 0)
            measure_set(context, (set_kind)i, rounds, argc > 3 ? argv[3] : sets[i].problems);
    clg_context_free(context);
    return 0;
}
