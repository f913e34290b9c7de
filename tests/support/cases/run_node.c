/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs nodes on every test target. See run_node.h.
 */
#include "support/cases/run_node.h"
#include "support/case_share.h"
#include "support/fixtures/sized_data.h"

#include "support/fakes/driver_faults.h"
#include "support/fixtures/ocl_platforms.h"

#include "ocl/program_build.h"
#include "plan/plan.h"
#include "session/context_handle.h"
#include "tensor/tensor.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A test target: a device and a class of kernels. */
typedef struct place {
    clg_context *context;
    clg_session_options options;
    bool is_simulator;
    bool is_slow;   /* compiles or runs so slowly that it runs only some of the cases */
    size_t n_taken; /* cases that it supports, where it is not slow */
    char name[160];
} place;

#define MAX_PLACES 16
static place places[MAX_PLACES];
static size_t n_places;
static clg_context *contexts[MAX_PLACES];
static size_t n_contexts;

/* Slow devices run the cases with n_cases % share_of == share, where n_cases counts the cases. */
static unsigned n_cases, share, share_of = 1;

static const char *the_impl; /* set by run_node_by; NULL: any */
static clg_kernel_class the_kernels;

static void **blocks; /* arrays returned to tests, freed when the group ends */
static size_t n_blocks;
static uint64_t seed;

static void add_place(clg_context *context, clg_kernel_class kernels, bool no_blas)
{
    const clg_device_info *device = clg_context_device(context);
    if (n_places == MAX_PLACES) return;
    const char *wanted = getenv("CLG_TEST_PLACES");
    place *p = &places[n_places];
    *p = (place){.context = context, .options = CLG_SESSION_OPTIONS_INIT};
    p->is_simulator = strstr(device->platform, "Oclgrind") != NULL;
    p->is_slow = p->is_simulator || strstr(device->name, "llvmpipe");
    p->options.kernels = kernels;
    p->options.no_blas = no_blas;
    (void)snprintf(p->name, sizeof p->name, "%.100s, %s%s", device->platform,
                   kernels == CLG_KERNELS_SIMD ? "simd" : "simt",
                   no_blas ? " without CLBlast" : "");
    if (!wanted || strstr(p->name, wanted)) n_places++;
}

/* Default: "0/4", or all where CLG_TEST_PLACES selects targets. */
static void read_share(void)
{
    case_share_read(getenv("CLG_TEST_PLACES") ? 1 : 4, &share, &share_of);
    if (share_of > 1) printf("CLG_TEST_SHARE=%u/%u on slow devices\n", share, share_of);
}

/* Whether a kernel used built-in functions that cl/common/builtins.clh does not declare, which is
 * slower to compile, or did not compile: another implementation then passes its test. */
static bool has_complaint;

static void look_at_message(void *user, clg_log_level level, const char *message)
{
    const bool is_replaced = strstr(message, "takes its place") && strstr(message, "not compile");
    (void)user;
    (void)level;
    if (!is_replaced && !strstr(message, PROGRAM_OWN_DECLARATIONS)) return;
    printf("%s\n", message);
    has_complaint = true;
}

static uint64_t stopped_clock(void) { return 0; }

int run_node_open(void **state)
{
    (void)state;
    clg_set_log(look_at_message, NULL, CLG_LOG_INFO);
    ocl_platforms_show_all();
    read_share();
    const char *given = getenv("CLG_TEST_SEED");
    seed = given ? strtoull(given, NULL, 10) : 20240229;
    printf("CLG_TEST_SEED=%llu\n", (unsigned long long)seed);
    clg_device_info *devices;
    size_t n_devices;
    if (clg_device_list(&devices, &n_devices) != CLG_OK) return -1;
    for (size_t i = 0; i < n_devices && n_contexts < MAX_PLACES; i++) {
        clg_context *context;
        clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
        /* PoCL caches compiled kernels itself, and would compile them all again to return a binary
         * for the library's cache. */
        if (strcmp(devices[i].platform, "Portable Computing Language") == 0) options.cache_dir = "";
        if (clg_context_create(devices[i].selector, &options, &context) != CLG_OK) {
            printf("skipped %s: %s\n", devices[i].name, clg_last_error());
            continue;
        }
        if (getenv("CLG_TEST_DIVIDED")) {
            context->current->budget = (launch_budget){1, {1e-9, 1e-9, 1}};
            context->current->now_ns = stopped_clock;
        }
        const size_t n_before = n_places;
        const bool is_cpu = devices[i].kernel_class == CLG_KERNELS_SIMD;
        if (is_cpu) add_place(context, CLG_KERNELS_SIMD, true);
        if (is_cpu) add_place(context, CLG_KERNELS_SIMT, false);
        add_place(context, CLG_KERNELS_SIMT, true);
        if (n_places > n_before)
            contexts[n_contexts++] = context;
        else
            clg_context_free(context);
    }
    clg_device_list_free(devices, n_devices);
    return n_places > 0 ? 0 : -1;
}

int run_node_close(void **state)
{
    (void)state;
    int result = has_complaint ? -1 : 0;
    clg_set_log(NULL, NULL, CLG_LOG_ERROR);
    for (size_t i = 0; i < n_contexts; i++) {
        clg_counters counters = CLG_COUNTERS_INIT;
        if (clg_context_counters(contexts[i], &counters) != CLG_OK ||
            counters.kernels_launched == 0) {
            printf("no kernel ran on %s\n", clg_context_device(contexts[i])->name);
            result = -1;
        }
        printf("%s: %llu programs compiled, %llu kernels run\n",
               clg_context_device(contexts[i])->platform,
               (unsigned long long)counters.programs_compiled,
               (unsigned long long)counters.kernels_launched);
        clg_context_free(contexts[i]);
    }
    for (size_t i = 0; i < n_blocks; i++) free(blocks[i]);
    free((void *)blocks);
    blocks = NULL;
    n_blocks = n_places = n_contexts = 0;
    return result;
}

int64_t run_node_count(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    return n;
}

/* ---- building a case ------------------------------------------------------------------------- */

void run_node_start(run_node *r, const char *domain, const char *op_type, int64_t opset)
{
    *r = (run_node){.domain = domain,
                    .opset = opset,
                    .n_links = 1,
                    .impl = the_impl,
                    .impl_kernels = the_kernels};
    r->links[0].op_type = op_type;
}

void run_node_then(run_node *r, const char *op_type)
{
    assert_true(r->n_links < RUN_NODE_LINKS);
    r->links[r->n_links++] = (run_node_link){op_type, r->n_inputs, r->n_attributes};
}

static run_node_tensor describe(clg_dtype dtype, int rank, const int64_t *dims,
                                const double *numbers)
{
    run_node_tensor t = {
        .dtype = dtype, .rank = rank, .n = run_node_count(rank, dims), .numbers = numbers};
    for (int i = 0; i < rank; i++) t.dims[i] = dims[i];
    return t;
}

void run_node_input(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                    const double *numbers)
{
    assert_true(r->n_inputs < RUN_NODE_INPUTS);
    r->inputs[r->n_inputs++] = describe(dtype, rank, dims, numbers);
}

void run_node_constant(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                       const double *numbers)
{
    run_node_input(r, dtype, rank, dims, numbers);
    r->inputs[r->n_inputs - 1].constant = true;
}

void run_node_absent(run_node *r) { run_node_input(r, CLG_DTYPE_NONE, 0, NULL, NULL); }

void run_node_expect(run_node *r, clg_dtype dtype, int rank, const int64_t *dims,
                     const double *numbers)
{
    assert_true(r->n_outputs < RUN_NODE_OUTPUTS);
    r->outputs[r->n_outputs++] = describe(dtype, rank, dims, numbers);
}

void run_node_expect_absent(run_node *r) { run_node_expect(r, CLG_DTYPE_NONE, 0, NULL, NULL); }

static run_node_attribute *next_attribute(run_node *r, const char *name)
{
    assert_true(r->n_attributes < RUN_NODE_ATTRIBUTES);
    run_node_attribute *a = &r->attributes[r->n_attributes++];
    a->name = name;
    return a;
}

void run_node_int(run_node *r, const char *name, int64_t value)
{
    run_node_attribute *a = next_attribute(r, name);
    a->type = RUN_NODE_INT;
    a->i = value;
}

void run_node_float(run_node *r, const char *name, double value)
{
    run_node_attribute *a = next_attribute(r, name);
    a->type = RUN_NODE_FLOAT;
    a->f = (float)value;
}

void run_node_string(run_node *r, const char *name, const char *value)
{
    run_node_attribute *a = next_attribute(r, name);
    a->type = RUN_NODE_STRING;
    a->s = value;
}

void run_node_ints(run_node *r, const char *name, size_t n, const int64_t *values)
{
    run_node_attribute *a = next_attribute(r, name);
    assert_true(n <= RUN_NODE_LIST);
    a->type = RUN_NODE_INTS;
    a->n = n;
    for (size_t i = 0; i < n; i++) a->ints[i] = values[i];
}

void run_node_pads(run_node *r, int axes, const int64_t *begin, const int64_t *end)
{
    int64_t pads[2 * CLG_MAX_RANK];
    for (int i = 0; i < axes; i++) {
        pads[i] = begin[i];
        pads[axes + i] = end[i];
    }
    run_node_ints(r, "pads", (size_t)axes * 2, pads);
}

void run_node_floats(run_node *r, const char *name, size_t n, const double *values)
{
    run_node_attribute *a = next_attribute(r, name);
    assert_true(n <= RUN_NODE_LIST);
    a->type = RUN_NODE_FLOATS;
    a->n = n;
    for (size_t i = 0; i < n; i++) a->floats[i] = (float)values[i];
}

void run_node_strings(run_node *r, const char *name, size_t n, const char *const *values)
{
    run_node_attribute *a = next_attribute(r, name);
    a->type = RUN_NODE_STRINGS;
    a->n = n;
    a->strings = values;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

double *run_node_zeros(int64_t n)
{
    double *numbers = calloc(n > 0 ? (size_t)n : 1, sizeof *numbers);
    void **grown = realloc((void *)blocks, (n_blocks + 1) * sizeof *blocks);
    assert_non_null(numbers);
    assert_non_null(grown);
    blocks = grown;
    blocks[n_blocks++] = numbers;
    return numbers;
}

double *run_node_numbered(int64_t n, int64_t max)
{
    double *numbers = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) numbers[i] = (double)(i % max);
    return numbers;
}

double *run_node_random(int64_t n)
{
    double *numbers = run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        numbers[i] = (double)(int)(seed >> 54) / 512.0 - 1.0; /* 10 bits */
    }
    return numbers;
}

/* ---- running --------------------------------------------------------------------------------- */

static tensor *make_tensor(const run_node_tensor *t)
{
    shape dims = {.rank = t->rank};
    tensor *made;
    memcpy(dims.dims, t->dims, sizeof dims.dims);
    assert_ok(tensor_create(t->dtype, &dims, &made));
    for (int64_t i = 0; i < t->n; i++) {
        if (dtype_is_float(t->dtype))
            tensor_set_float(made, i, t->numbers[i]);
        else
            tensor_set_int(made, i, (int64_t)t->numbers[i]);
    }
    return made;
}

static const char *input_name(const run_node *r, size_t i)
{
    static const char *const names[RUN_NODE_INPUTS] = {
        "in0",  "in1",  "in2",  "in3",  "in4",  "in5",  "in6",  "in7",  "in8",  "in9",
        "in10", "in11", "in12", "in13", "in14", "in15", "in16", "in17", "in18", "in19"};
    return r->inputs[i].dtype == CLG_DTYPE_NONE ? "" : names[i];
}

static const char *output_name(const run_node *r, size_t i)
{
    static const char *const names[] = {"out0", "out1", "out2", "out3",
                                        "out4", "out5", "out6", "out7"};
    return r->outputs[i].dtype == CLG_DTYPE_NONE ? "" : names[i];
}

static clg_status set_attribute(clg_builder *b, const run_node_attribute *a)
{
    switch (a->type) {
    case RUN_NODE_INT: return clg_builder_attribute_int(b, a->name, a->i);
    case RUN_NODE_FLOAT: return clg_builder_attribute_float(b, a->name, a->f);
    case RUN_NODE_STRING: return clg_builder_attribute_string(b, a->name, a->s);
    case RUN_NODE_INTS: return clg_builder_attribute_ints(b, a->name, a->n, a->ints);
    case RUN_NODE_FLOATS: return clg_builder_attribute_floats(b, a->name, a->n, a->floats);
    case RUN_NODE_STRINGS: return clg_builder_attribute_strings(b, a->name, a->n, a->strings);
    }
    return CLG_ERROR_INTERNAL;
}

static clg_status add_inputs(clg_builder *b, const run_node *r)
{
    for (size_t i = 0; i < r->n_inputs; i++) {
        const run_node_tensor *t = &r->inputs[i];
        const size_t rank = (size_t)t->rank;
        if (t->dtype == CLG_DTYPE_NONE) continue;
        if (!t->constant) {
            CLG_TRY(clg_builder_input(b, input_name(r, i), t->dtype, rank, t->dims, NULL));
            continue;
        }
        tensor *content = make_tensor(t);
        clg_status status =
            sized_constant(b, input_name(r, i), t->dtype, rank, t->dims, content->data);
        tensor_free(content);
        if (status != CLG_OK) return status;
    }
    return CLG_OK;
}

/* Adds node i of the chain: its inputs are the previous node's output, then its own inputs. */
static clg_status add_link(clg_builder *b, const run_node *r, size_t i)
{
    static const char *const between[] = {"", "mid1", "mid2", "mid3", "mid4", "mid5"};
    const bool last = i + 1 == r->n_links;
    const run_node_link *link = &r->links[i];
    const size_t end_inputs = last ? r->n_inputs : link[1].first_input;
    const size_t end_attributes = last ? r->n_attributes : link[1].first_attribute;
    const char *inputs[RUN_NODE_INPUTS + 1], *outputs[RUN_NODE_OUTPUTS] = {""};
    size_t n_inputs = 0, n_outputs = 1;
    if (i > 0) inputs[n_inputs++] = between[i];
    for (size_t k = link->first_input; k < end_inputs; k++) inputs[n_inputs++] = input_name(r, k);
    if (last) {
        n_outputs = r->n_outputs;
        for (size_t k = 0; k < n_outputs; k++) outputs[k] = output_name(r, k);
    } else {
        outputs[0] = between[i + 1];
    }
    CLG_TRY(clg_builder_node(b, r->domain, link->op_type, i == 0 ? "tested" : "", n_inputs, inputs,
                             n_outputs, outputs));
    for (size_t k = link->first_attribute; k < end_attributes; k++)
        CLG_TRY(set_attribute(b, &r->attributes[k]));
    return CLG_OK;
}

static clg_status build(const run_node *r, clg_model **out_model)
{
    clg_builder *b = NULL;
    clg_status status = clg_builder_create(r->opset, &b);
    if (status == CLG_OK) status = add_inputs(b, r);
    for (size_t i = 0; i < r->n_links && status == CLG_OK; i++) status = add_link(b, r, i);
    for (size_t i = 0; i < r->n_outputs && status == CLG_OK; i++) {
        if (r->outputs[i].dtype != CLG_DTYPE_NONE)
            status = clg_builder_output(b, output_name(r, i));
    }
    if (status == CLG_OK) status = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return status;
}

clg_status run_node_on(clg_context *context, clg_session_options options, const run_node *r,
                       clg_session **out_session)
{
    static uint32_t n_runs; /* in three of six, launches have one work-group */
    clg_model *model = NULL;
    *out_session = NULL;
    plan_short_runs_use(n_runs++ / 3 % 2 ? PLAN_SHORT_RUNS_ALWAYS : PLAN_SHORT_RUNS_NEVER);
    options.preferred_impls = &r->impl;
    options.n_preferred_impls = r->impl != NULL;
    clg_status status = build(r, &model);
    if (status == CLG_OK) status = clg_session_create(context, model, &options, out_session);
    for (size_t i = 0; i < r->n_inputs && status == CLG_OK; i++) {
        const run_node_tensor *t = &r->inputs[i];
        if (t->dtype == CLG_DTYPE_NONE || t->constant) continue;
        tensor *content = make_tensor(t);
        status = sized_input(*out_session, input_name(r, i), t->dtype, (size_t)t->rank, t->dims,
                             content->data);
        tensor_free(content);
    }
    if (status == CLG_OK) status = clg_session_run(*out_session);
    clg_model_free(model);
    return status;
}

/* Returns whether a value is within the tolerance; infinity and NaN must be expected. */
static bool is_near(double got, double want, double tolerance, double scale)
{
    if (got == want || (isnan(got) && isnan(want))) return true;
    return isfinite(want) && fabs(got - want) <= tolerance * fmax(fabs(want), scale);
}

static const double *expected(const run_node *r, size_t index, clg_session *session)
{
    char *plan = NULL;
    if (r->other_impl && index == 0) assert_ok(clg_session_plan_text(session, &plan));
    const bool other = plan && strstr(plan, r->other_impl);
    clg_text_free(plan);
    return other ? r->other_numbers : r->outputs[index].numbers;
}

static void compare(const place *p, const run_node *r, size_t index, clg_value *value,
                    const double *numbers, double tolerance, double scale)
{
    const run_node_tensor *t = &r->outputs[index];
    assert_int_equal(clg_value_dtype(value), t->dtype);
    assert_int_equal(clg_value_rank(value), t->rank);
    for (int i = 0; i < t->rank; i++) assert_int_equal(clg_value_dims(value)[i], t->dims[i]);
    for (int64_t i = 0; i < t->n; i++) {
        const double got = clg_value_get_double(value, i), want = numbers[i];
        if (is_near(got, want, tolerance, scale)) continue;
        fail_msg("%s on %s: output %zu, element %lld of %lld is %.9g where %.9g is right",
                 r->links[0].op_type, p->name, index, (long long)i, (long long)t->n, got, want);
    }
}

static bool uses_float64(const run_node *r)
{
    for (size_t i = 0; i < r->n_inputs; i++)
        if (r->inputs[i].dtype == CLG_FLOAT64) return true;
    return r->float64;
}

/* Returns whether the driver miscompiles the emulated matrix unit for this node: it does in
 * variants with an epilogue, but not for MatMul. */
static bool is_miscompiled(const place *p, const run_node *r)
{
    const clg_device_info *device = clg_context_device(p->context);
    return r->impl && strcmp(r->impl, "gemm_matrix") == 0 && !device->matrix &&
           (strcmp(r->links[0].op_type, "MatMul") != 0 || r->n_links > 1) &&
           driver_miscompiles_emulated_unit(device);
}

/* Returns whether the target runs the current case: the first ones that it supports, then only some
 * (n_cases, share). */
static bool takes_case(place *p, const run_node *r)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    const bool simt = p->options.kernels == CLG_KERNELS_SIMT;
    if (r->heavy && p->is_simulator) return false;
    if (r->blas_only && p->options.no_blas) return false;
    if (r->impl && p->options.kernels != r->impl_kernels) return false;
    if (r->impl && r->impl_kernels == CLG_KERNELS_SIMT && !p->options.no_blas) return false;
    if (is_miscompiled(p, r)) return false;
    if (!p->is_slow)
        return p->n_taken++ == 0 || case_share_takes_class(n_cases, simt, r->impl != NULL);
    if (n_cases % share_of == share) return true;
    return clg_context_counters(p->context, &counters) != CLG_OK || counters.kernels_launched == 0;
}

void run_node_by(clg_kernel_class kernels, const char *impl)
{
    the_impl = impl;
    the_kernels = kernels;
}

static void check_impl(const place *p, const run_node *r, clg_session *session)
{
    char *plan;
    if (!r->impl || r->outputs[0].n == 0) return;
    assert_ok(clg_session_plan_text(session, &plan));
    if (!strstr(plan, r->impl)) {
        if (!driver_compiler_may_die(clg_context_device(p->context)))
            fail_msg("%s on %s: not by %s but\n%s", r->links[0].op_type, p->name, r->impl, plan);
        printf("%s on %s: not by %s, of which the driver's compiler dies\n", r->links[0].op_type,
               p->name, r->impl);
    }
    clg_text_free(plan);
}

void run_node_check_scaled(const run_node *r, double tolerance, double scale)
{
    n_cases++;
    for (size_t i = 0; i < n_places; i++) {
        clg_session *session = NULL;
        if (!takes_case(&places[i], r)) continue;
        if (uses_float64(r) && !clg_context_device(places[i].context)->fp64) {
            assert_error(run_node_on(places[i].context, places[i].options, r, &session),
                         CLG_ERROR_UNSUPPORTED_DTYPE, "float64");
            clg_session_free(session);
            continue;
        }
        const clg_status status = run_node_on(places[i].context, places[i].options, r, &session);
        const char *type = r->links[0].op_type, *name = places[i].name;
        if (driver_refused(places[i].context, status)) {
            print_message("%s on %s: refused: %s\n", type, name, clg_last_error());
            clg_session_free(session);
            continue;
        }
        if (status != CLG_OK) fail_msg("%s on %s: %s", type, name, clg_last_error());
        check_impl(&places[i], r, session);
        for (size_t k = 0; k < r->n_outputs; k++) {
            clg_value *value;
            if (r->outputs[k].dtype == CLG_DTYPE_NONE) continue;
            assert_ok(clg_session_get_output(session, output_name(r, k), &value));
            compare(&places[i], r, k, value, expected(r, k, session), tolerance, scale);
            clg_value_free(value);
        }
        clg_session_free(session);
    }
}

void run_node_check(const run_node *r, double tolerance)
{
    run_node_check_scaled(r, tolerance, 1.0);
}

void run_node_refused(const run_node *r, clg_status status, const char *words)
{
    for (size_t i = 0; i < n_places; i++) {
        clg_session *session = NULL;
        assert_error(run_node_on(places[i].context, places[i].options, r, &session), status, words);
        clg_session_free(session);
    }
}

size_t run_node_leave_out(bool (*is_faulty)(const clg_device_info *device))
{
    size_t n_kept = 0, n_contexts_kept = 0;
    for (size_t i = 0; i < n_places; i++)
        if (!is_faulty(clg_context_device(places[i].context))) places[n_kept++] = places[i];
    for (size_t i = 0; i < n_contexts; i++) {
        if (is_faulty(clg_context_device(contexts[i]))) {
            printf("left out: %s: its driver is known to be wrong here\n",
                   clg_context_device(contexts[i])->platform);
            clg_context_free(contexts[i]);
        } else {
            contexts[n_contexts_kept++] = contexts[i];
        }
    }
    n_contexts = n_contexts_kept;
    n_places = n_kept;
    return n_kept;
}

void run_node_each(run_node_body body, void *user)
{
    for (size_t i = 0; i < n_places; i++)
        body(places[i].context, &places[i].options, places[i].name, user);
}

void run_node_each_case(run_node_body body, void *user)
{
    static const run_node any;
    n_cases++;
    for (size_t i = 0; i < n_places; i++)
        if (takes_case(&places[i], &any))
            body(places[i].context, &places[i].options, places[i].name, user);
}
