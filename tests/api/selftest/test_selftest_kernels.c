/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that the self-test covers the kernels of all kinds of operators: below a driver that spoils
 * one element of one kernel's results (layers/opencl_corrupting.c), in three ways, a session of an
 * operator that uses the kernel must report it. What the session then computes, by other kernels,
 * is not looked at here. Without a fault nothing is reported.
 */
/* ctest: timeout 900 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/literals.h"
#include "support/platform.h"
#include "support/scratch.h"

#include <clgraph/clgraph.h>

#include <stdio.h>
#include <string.h>

enum { MAX_INPUTS = 4, MAX_KERNELS = 8, NAME_BYTES = 96, MAX_ELEMENTS = 4096 };

/* An input of a node: float32 or, with `ints`, a constant of these elements. */
typedef struct node_input {
    int rank;
    int64_t dims[4];
    bool constant;
    const int64_t *ints; /* of an int64 vector */
} node_input;

typedef struct node_case {
    const char *op_type;
    int64_t opset;                 /* 0: 13 */
    node_input inputs[MAX_INPUTS]; /* rank 0: none */
    const char *list_name;         /* an attribute of type INTS */
    size_t n_list;
    int64_t list[4];
    const char *int_name; /* an attribute of type INT */
    int64_t value;
} node_case;

static const int64_t indices[] = {3, 0, 6, -1}, sizes[] = {1, 3, 11, 17},
                     pads[] = {0, 1, 2, 0, 1, 0}, axes[] = {1, 0}, repeats[] = {2, 1, 3},
                     classes[] = {3, 0, 12, 5, 5, 1, 7}, first_class[2048];

/* Inputs: any floats; weights; a vector of integers; none. */
#define X(of_rank, ...)                                                                            \
    {                                                                                              \
        .rank = of_rank, .dims = { __VA_ARGS__ }                                                   \
    }
#define W(of_rank, ...)                                                                            \
    {                                                                                              \
        .rank = of_rank, .dims = {__VA_ARGS__}, .constant = true                                   \
    }
#define V(length, elements_of)                                                                     \
    {                                                                                              \
        .rank = 1, .dims = {length}, .constant = true, .ints = elements_of                         \
    }
#define NONE                                                                                       \
    {                                                                                              \
        .rank = 0                                                                                  \
    }
#define INPUTS(...) .inputs = {__VA_ARGS__}
#define LIST(name, n, ...) .list_name = name, .n_list = n, .list = {__VA_ARGS__}
#define INT(name, of) .int_name = name, .value = of
/* Of opset 6, whose second input is aligned with the first from an axis on. */
#define LEGACY .opset = 6
#define CASE(op, ...)                                                                              \
    {                                                                                              \
        .op_type = op, __VA_ARGS__                                                                 \
    }

static const node_case cases[] = {
    CASE("Gelu", INPUTS(X(3, 3, 37, 19)), .opset = 20),
    CASE("Add", INPUTS(X(3, 3, 37, 19), X(2, 37, 1))),
    CASE("Sub", INPUTS(X(3, 3, 37, 19), X(1, 37)), LEGACY, INT("axis", 1)),
    CASE("PRelu", INPUTS(X(3, 3, 37, 19), X(1, 37)), LEGACY),
    CASE("MatMul", INPUTS(X(2, 37, 45), X(1, 45))),
    CASE("Less", INPUTS(X(3, 3, 37, 19), X(2, 37, 19))),
    CASE("Softmax", INPUTS(X(2, 37, 45)), INT("axis", -1)),
    CASE("NegativeLogLikelihoodLoss", INPUTS(X(2, 7, 13), V(7, classes))),
    CASE("NegativeLogLikelihoodLoss", INPUTS(X(2, 2048, 2), V(2048, first_class))),
    CASE("ReduceMean", INPUTS(X(3, 5, 37, 19)), LIST("axes", 1, 1)),
    CASE("ReduceMax", INPUTS(X(3, 5, 7, 97)), LIST("axes", 1, -1)),
    CASE("ArgMax", INPUTS(X(3, 5, 37, 19)), INT("axis", 1)),
    CASE("CumSum", INPUTS(X(2, 5, 37), V(1, axes))),
    CASE("MaxPool", INPUTS(X(4, 2, 5, 13, 31)), LIST("kernel_shape", 2, 3, 3)),
    CASE("AveragePool", INPUTS(X(4, 2, 5, 13, 31)), LIST("kernel_shape", 2, 2, 3)),
    CASE("InstanceNormalization", INPUTS(X(4, 2, 5, 7, 11), X(1, 5), X(1, 5))),
    CASE("Resize", INPUTS(X(4, 1, 3, 7, 9), NONE, NONE, V(4, sizes))),
    CASE("Transpose", INPUTS(X(3, 5, 37, 19)), LIST("perm", 3, 2, 0, 1)),
    CASE("Concat", INPUTS(X(3, 3, 5, 7), X(3, 3, 11, 7)), INT("axis", 1)),
    CASE("Gather", INPUTS(X(3, 5, 7, 37), V(4, indices)), INT("axis", 1)),
    CASE("Pad", INPUTS(X(3, 5, 7, 19), V(6, pads))),
    CASE("Tile", INPUTS(X(3, 5, 7, 19), V(3, repeats))),
    CASE("DepthToSpace", INPUTS(X(4, 2, 12, 5, 7)), INT("blocksize", 2)),
    CASE("ConvTranspose", INPUTS(X(4, 1, 3, 7, 9), W(4, 3, 5, 3, 3)), LIST("strides", 2, 2, 2)),
    CASE("GRU", INPUTS(X(3, 5, 2, 7), W(3, 1, 33, 7), W(3, 1, 33, 11)), INT("hidden_size", 11)),
    CASE("DynamicQuantizeLinear", INPUTS(X(2, 13, 37))),
};

static int n_warnings;

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    n_warnings += level <= CLG_LOG_WARNING && strstr(message, "gives wrong results") != NULL;
}

/* ---- the model ------------------------------------------------------------------------------- */

static float elements[MAX_ELEMENTS];

static int64_t count(const node_input *in)
{
    int64_t n = 1;
    for (int d = 0; d < in->rank; d++) n *= in->dims[d];
    return n;
}

static void add_input(clg_builder *g, const char *name, const node_input *in)
{
    assert_true(count(in) <= MAX_ELEMENTS);
    if (in->ints)
        assert_ok(sized_constant(g, name, CLG_INT64, 1, in->dims, in->ints));
    else if (in->constant)
        assert_ok(sized_constant(g, name, CLG_FLOAT32, (size_t)in->rank, in->dims, elements));
    else
        assert_ok(clg_builder_input(g, name, CLG_FLOAT32, (size_t)in->rank, in->dims, NULL));
}

static clg_model *model_of(const node_case *c)
{
    static const char *const names[MAX_INPUTS] = {"a", "b", "c", "d"};
    const char *used[MAX_INPUTS];
    clg_builder *g;
    clg_model *m;
    size_t n = 0;
    assert_ok(clg_builder_create(c->opset ? c->opset : 13, &g));
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        used[i] = c->inputs[i].rank ? names[i] : "";
        if (!c->inputs[i].rank) continue;
        add_input(g, names[i], &c->inputs[i]);
        n = i + 1;
    }
    const bool three = strcmp(c->op_type, "DynamicQuantizeLinear") == 0;
    assert_ok(clg_builder_node(g, NULL, c->op_type, "node", n, used, three ? 3 : 1,
                               NAMES("y", "scale", "zero")));
    if (c->list_name) assert_ok(clg_builder_attribute_ints(g, c->list_name, c->n_list, c->list));
    if (c->int_name) assert_ok(clg_builder_attribute_int(g, c->int_name, c->value));
    assert_ok(clg_builder_output(g, "y"));
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    return m;
}

/* Runs the node in a new context and returns the status. */
static clg_status run(const node_case *c, clg_selftest selftest)
{
    static const char *const names[MAX_INPUTS] = {"a", "b", "c", "d"};
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    clg_session *session;
    clg_model *model = model_of(c);
    options.cache_dir = ""; /* each test is made anew */
    options.selftest = selftest;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    clg_status status = clg_session_create(context, model, NULL, &session);
    for (size_t i = 0; status == CLG_OK && i < MAX_INPUTS; i++) {
        const node_input *in = &c->inputs[i];
        if (in->rank && !in->constant)
            assert_ok(
                sized_input(session, names[i], CLG_FLOAT32, (size_t)in->rank, in->dims, elements));
    }
    if (status == CLG_OK) {
        status = clg_session_run(session);
        clg_session_free(session);
    }
    clg_model_free(model);
    clg_context_free(context);
    return status;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static void set(const char *name, const char *value) { assert_true(platform_set_env(name, value)); }

/* Reads the layer's log: the names of kernels, without their hashes, and whether a launch was
 * spoilt. */
static size_t read_log(const char *path, char names[MAX_KERNELS][NAME_BYTES], bool *out_altered)
{
    char line[256];
    size_t n = 0;
    FILE *f = fopen(path, "r");
    *out_altered = false;
    if (!f) return 0;
    while (fgets(line, sizeof line, f)) {
        char *name = strchr(line, '.');
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "altered") == 0) *out_altered = true;
        if (!name || n == MAX_KERNELS) continue;
        size_t i = 0;
        while (i < n && strcmp(names[i], name + 1) != 0) i++;
        if (i == n) (void)snprintf(names[n++], NAME_BYTES, "%s", name + 1);
    }
    (void)fclose(f);
    return n;
}

/* Returns whether a kernel is a probe of the device: a wrong one has it thought to lack something.
 * */
static bool is_probe(const char *name) { return strncmp(name, "probe", 5) == 0; }

/* Lists the kernels that the node launches, which depends on the device. */
static size_t kernels_of(const node_case *c, char names[MAX_KERNELS][NAME_BYTES])
{
    char path[1024];
    bool altered;
    (void)snprintf(path, sizeof path, "%s-%td", scratch_path("kernels"), c - cases);
    set("CLG_CORRUPT_KERNEL", NULL);
    set("CLG_CORRUPT_LOG", path);
    n_warnings = 0;
    assert_ok(run(c, CLG_SELFTEST_ON));
    assert_int_equal(n_warnings, 0);
    const size_t n = read_log(path, names, &altered);
    assert_true(n > 0);
    return n;
}

static void check(const node_case *c, const char *kernel, const char *by)
{
    char path[1024], others[MAX_KERNELS][NAME_BYTES];
    bool altered;
    (void)snprintf(path, sizeof path, "%s-%td-%s-%s", scratch_path("log"), c - cases, kernel, by);
    set("CLG_CORRUPT_KERNEL", kernel);
    set("CLG_CORRUPT_BY", by);
    set("CLG_CORRUPT_LOG", path);
    n_warnings = 0;
    (void)run(c, CLG_SELFTEST_ON);
    (void)read_log(path, others, &altered);
    if (altered && n_warnings == 0)
        fail_msg("%s: kernel %s with one element wrong (%s) is not reported", c->op_type, kernel,
                 by);
}

TEST(selftest_kernels__one_wrong_element_of_any_is_found)
{
    static const char *const faults[] = {"change", "omit", "swap"};
    char names[MAX_KERNELS][NAME_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = kernels_of(&cases[i], names);
        for (size_t k = 0; k < n; k++)
            for (size_t f = 0; f < 3 && !is_probe(names[k]); f++)
                check(&cases[i], names[k], faults[f]);
    }
}

/* The layer itself: without self-tests a spoilt result is what the session returns. */
TEST(selftest_kernels__without_it_the_result_is_wrong)
{
    char names[MAX_KERNELS][NAME_BYTES], others[MAX_KERNELS][NAME_BYTES];
    bool altered;
    (void)kernels_of(&cases[1], names);
    set("CLG_CORRUPT_KERNEL", "pointwise");
    set("CLG_CORRUPT_BY", "change");
    set("CLG_CORRUPT_LOG", scratch_path("trusting"));
    n_warnings = 0;
    assert_ok(run(&cases[1], CLG_SELFTEST_OFF));
    (void)read_log(scratch_path("trusting"), others, &altered);
    assert_true(altered);
    assert_int_equal(n_warnings, 0);
}

static int begin(void **state)
{
    (void)state;
    set("CLG_SELFTEST", NULL);
    set("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_corrupting.so");
    ocl_platforms_show_pocl();
    clg_set_log(listen, NULL, CLG_LOG_WARNING);
    for (int i = 0; i < MAX_ELEMENTS; i++) elements[i] = (float)(i * 37 % 61 - 30) / 64;
    return 0;
}

TEST_GROUP(begin, NULL)
