/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool verify: runs ONNX test cases. A case is a folder with model.onnx and folders
 * test_data_set_*. Each case has its own session, so that cases do not affect each other.
 * Unsupported cases are skipped; all others must pass.
 */
#include "cltool.h"

#include "cases.h"
#include "engine.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct verification {
    const options *options;
    clg_context *context;
    case_list cases;
    json_t *tolerances; /* NULL: none */
    char **expected;    /* names that must pass */
    size_t n_expected;
    size_t n_passed, n_failed, n_skipped;
} verification;

static bool is_unsupported(clg_status status)
{
    return status == CLG_ERROR_UNSUPPORTED_OPERATOR || status == CLG_ERROR_UNSUPPORTED_ATTRIBUTE ||
           status == CLG_ERROR_UNSUPPORTED_DTYPE || status == CLG_ERROR_UNSUPPORTED_DEVICE;
}

/* Sets the result of the case from the library's last failed call; returns false. */
static bool set_failed(test_case *c, clg_status status, const char *where)
{
    const char *text = clg_last_error();
    /* The case is named already: the prefix "'<path>/model.onnx': " would repeat it. */
    size_t n = strlen(c->path);
    if (text[0] == '\'' && strncmp(text + 1, c->path, n) == 0) {
        const char *end = strstr(text + n, "': ");
        if (end) text = end + 3;
    }
    c->result = status == CLG_ERROR_CANCELLED ? CASE_OPEN
                : is_unsupported(status)      ? CASE_SKIP
                                              : CASE_FAIL;
    free(c->reason);
    c->reason = must_printf("%s%s%s", where, where[0] ? ": " : "", text);
    return false;
}

static bool set_result(test_case *c, case_result result, char *reason)
{
    c->result = result;
    free(c->reason);
    c->reason = reason;
    return false;
}

/* Skips a case whose model has unsupported operators. The reason, "not supported: Loop (opset 13),
 * Unique (opset 11)", is shorter than the library's message, and equal for like cases. */
static void check_operators(test_case *c, const char *path)
{
    clg_node_info *nodes;
    size_t n;
    if (clg_model_file_nodes(path, &nodes, &n) != CLG_OK) return;
    char *text = must_copy("not supported:");
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (nodes[i].supported) continue;
        char *name =
            must_printf(" %s%s%s (opset %" PRId64 ")", printable(nodes[i].domain),
                        nodes[i].domain[0] ? "." : "", printable(nodes[i].op_type), nodes[i].opset);
        if (!strstr(text, name)) {
            char *longer = must_printf("%s%s%s", text, any ? "," : "", name);
            free(text);
            text = longer;
            any = true;
        }
        free(name);
    }
    clg_node_list_free(nodes, n);
    if (any) {
        (void)set_result(c, CASE_SKIP, text);
    } else {
        free(text);
    }
}

/* Returns the first operator of the model that is one of the given names; NULL when there is none.
 */
static const char *random_operator(const char *path, const char *const *names, size_t n_names)
{
    clg_node_info *nodes;
    size_t n;
    const char *found = NULL;
    if (clg_model_file_nodes(path, &nodes, &n) != CLG_OK) return NULL;
    for (size_t i = 0; i < n && !found; i++)
        for (size_t k = 0; k < n_names && !found; k++)
            if (nodes[i].domain[0] == '\0' && strcmp(nodes[i].op_type, names[k]) == 0)
                found = names[k];
    clg_node_list_free(nodes, n);
    return found;
}

/* Skips a case whose outputs are random by definition but have the shapes and dtypes on file: no
 * more can be checked. Dropout may drop nothing: its case is skipped only if the outputs differ. */
static void check_random(test_case *c, const char *path)
{
    static const char *const always[] = {"Bernoulli",    "RandomUniform",    "RandomUniformLike",
                                         "RandomNormal", "RandomNormalLike", "Multinomial"};
    static const char *const at_times[] = {"Dropout"};
    const char *name = random_operator(path, always, sizeof always / sizeof always[0]);
    if (!name && c->result == CASE_FAIL) name = random_operator(path, at_times, 1);
    if (name && (c->result == CASE_PASS || c->differs))
        (void)set_result(c, CASE_SKIP, must_printf("random by definition: %s", name));
}

/* Skips cases of ONNX 1.12 whose expected values contradict their model. */
static void check_wrong(test_case *c)
{
    static const struct {
        const char *name, *reason;
    } wrong[] = {{"test_adam_multiple", "its outputs were made with an epsilon of 0.01, which its "
                                        "model leaves out: the default is 1e-6"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0] && c->differs; i++) {
        if (strcmp(c->name, wrong[i].name) == 0)
            (void)set_result(c, CASE_SKIP, must_copy(wrong[i].reason));
    }
}

/* ---- one set of inputs and outputs ----------------------------------------------------------- */

/* Replaces *value by a value with the same bytes and another dtype of the same size. */
static clg_status reinterpret(clg_value **value, clg_dtype dtype)
{
    clg_value *read;
    clg_status status =
        clg_value_create(dtype, clg_value_rank(*value), clg_value_dims(*value), &read);
    if (status == CLG_OK)
        status = clg_value_write(read, clg_value_data(*value), clg_value_size_bytes(*value));
    if (status != CLG_OK) return status;
    clg_value_free(*value);
    *value = read;
    return CLG_OK;
}

/* Returns whether values of dtype `floats` may be stored as `integers`: NumPy has no bfloat16 and
 * float8, so that test cases store their bits as integers, which ONNX's test runner compares. */
static bool holds_bits(clg_dtype integers, clg_dtype floats)
{
    return (integers == CLG_UINT16 && floats == CLG_BFLOAT16) ||
           (integers == CLG_UINT8 && floats >= CLG_FLOAT8E4M3FN && floats <= CLG_FLOAT8E5M2FNUZ);
}

/* Loads FOLDER/WHAT_i.pb; *out_value is NULL, and the result true, if it does not exist. */
static bool load_pb(test_case *c, const char *folder, const char *what, size_t i,
                    clg_value_kind kind, clg_value **out_value)
{
    char name[64];
    *out_value = NULL;
    (void)snprintf(name, sizeof name, "%s_%zu.pb", what, i);
    char *path = path_join(folder, name);
    clg_status status = path_exists(path) ? clg_value_load_kind(path, kind, out_value) : CLG_OK;
    free(path);
    return status == CLG_OK ? true : set_failed(c, status, name);
}

/* Returns whether a value has the declared shape of its input. If it does not, as in a few of
 * ONNX's cases, skips the case. */
static bool fits_port(test_case *c, const clg_port *port, const clg_value *value)
{
    bool fits = port->kind != CLG_VALUE_TENSOR || port->rank < 0 ||
                (size_t)port->rank == clg_value_rank(value);
    for (int d = 0; fits && port->kind == CLG_VALUE_TENSOR && d < port->rank; d++)
        fits = port->dims[d] < 0 || port->dims[d] == clg_value_dims(value)[d];
    if (fits) return true;
    return set_result(c, CASE_SKIP,
                      must_printf("its input '%s' has shape %s, its model says another",
                                  printable(port->name),
                                  dims_text(clg_value_rank(value), clg_value_dims(value))));
}

static bool set_input(test_case *c, const clg_port *port, clg_session *session, clg_value **value)
{
    clg_status status = CLG_OK;
    if (port->kind == CLG_VALUE_TENSOR && holds_bits(clg_value_dtype(*value), port->dtype))
        status = reinterpret(value, port->dtype);
    if (status == CLG_OK && !fits_port(c, port, *value)) return false;
    if (status == CLG_OK) status = clg_session_set_input(session, port->name, *value);
    return status == CLG_OK ? true : set_failed(c, status, "");
}

static bool set_inputs(test_case *c, const char *folder, const clg_model *model,
                       clg_session *session)
{
    for (size_t i = 0; i < clg_model_n_inputs(model); i++) {
        clg_value *value;
        const clg_port *port = clg_model_input(model, i);
        if (!load_pb(c, folder, "input", i, port->kind, &value)) return false;
        if (!value)
            return set_result(
                c, CASE_FAIL,
                must_printf("there is no file for input '%s'", printable(port->name)));
        bool is_set = set_input(c, port, session, &value);
        clg_value_free(value);
        if (!is_set) return false;
    }
    return true;
}

static bool compare_output(const verification *v, test_case *c, clg_session *session,
                           const char *name, const clg_value *want)
{
    clg_value *got;
    clg_status status = clg_session_get_output(session, name, &got);
    if (status == CLG_OK && clg_value_get_kind(got) == CLG_VALUE_TENSOR &&
        holds_bits(clg_value_dtype(want), clg_value_dtype(got))) {
        status = reinterpret(&got, clg_value_dtype(want));
    }
    if (status != CLG_OK) return set_failed(c, status, "");
    double rtol = v->options->rtol, atol = options_atol(v->options, DEFAULT_ATOL);
    char *key = must_printf("%s/%s", c->name, name);
    json_t *own = json_object_get(v->tolerances, key);
    free(key);
    if (!own) own = json_object_get(v->tolerances, c->name);
    if (!own) own = json_object_get(v->tolerances, "default");
    if (own) {
        rtol = json_number_value(json_array_get(own, 0));
        atol = json_number_value(json_array_get(own, 1));
    }
    comparison difference = compare_values(got, want, rtol, atol);
    clg_value_free(got);
    if (difference.max_abs > c->max_abs) c->max_abs = difference.max_abs;
    if (difference.max_rel > c->max_rel) c->max_rel = difference.max_rel;
    c->n_compared++;
    if (difference.holds) return true;
    c->differs = difference.n_different > 0;
    return set_result(c, CASE_FAIL,
                      must_printf("output '%s': %s", printable(name), difference.text));
}

static bool compare_outputs(const verification *v, test_case *c, const char *folder,
                            const clg_model *model, clg_session *session)
{
    for (size_t i = 0; i < clg_model_n_outputs(model); i++) {
        clg_value *want;
        const clg_port *port = clg_model_output(model, i);
        if (!load_pb(c, folder, "output", i, port->kind, &want)) return false;
        if (!want) continue; /* some cases omit irrelevant outputs */
        bool holds = compare_output(v, c, session, port->name, want);
        clg_value_free(want);
        if (!holds) return false;
    }
    return true;
}

static bool run_set(const verification *v, test_case *c, const char *folder, const clg_model *model,
                    clg_session *session)
{
    if (!set_inputs(c, folder, model, session)) return false;
    interrupt_begin(session);
    clg_status status = clg_session_run(session);
    interrupt_end(session);
    if (status != CLG_OK) return set_failed(c, status, "");
    return compare_outputs(v, c, folder, model, session);
}

/* ---- one case -------------------------------------------------------------------------------- */

static bool run_sets(const verification *v, test_case *c, const clg_model *model,
                     clg_session *session)
{
    size_t n_sets = 0;
    for (size_t i = 0;; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "test_data_set_%zu", i);
        char *folder = path_join(c->path, name);
        bool exists = path_is_folder(folder),
             holds = exists && run_set(v, c, folder, model, session);
        free(folder);
        if (!exists) break;
        if (!holds) return false;
        n_sets++;
    }
    if (n_sets == 0) return set_result(c, CASE_SKIP, must_copy("it has no test_data_set_0"));
    if (c->n_compared == 0)
        return set_result(c, CASE_SKIP, must_copy("it has no outputs to compare with"));
    return set_result(c, CASE_PASS, NULL);
}

static clg_status open_session(const verification *v, clg_model *model, clg_session **out_session)
{
    clg_session_options given = engine_session_options(v->options);
    interrupt_begin_computing();
    clg_status status = clg_session_create(v->context, model, &given, out_session);
    interrupt_end_computing();
    return status;
}

static void run_case(const verification *v, test_case *c)
{
    clg_model *model = NULL;
    clg_session *session = NULL;
    char *path = path_join(c->path, "model.onnx");
    const clg_model_options given = engine_model_options(v->options);
    clg_status status = clg_model_load_file(path, &given, &model);
    if (status != CLG_OK) (void)set_failed(c, status, "");
    if (status == CLG_ERROR_UNSUPPORTED_OPERATOR) check_operators(c, path);
    if (status != CLG_OK) {
        free(path);
        clg_model_free(model);
        return;
    }
    status = open_session(v, model, &session);
    if (status != CLG_OK) {
        (void)set_failed(c, status, "");
    } else {
        (void)run_sets(v, c, model, session);
        if (!v->options->compare_random) check_random(c, path);
        check_wrong(c);
    }
    free(path);
    clg_session_free(session);
    clg_model_free(model);
}

/* ---- tolerances and expected cases ----------------------------------------------------------- */

static int load_tolerances(verification *v)
{
    json_error_t error;
    if (!v->options->tolerance) return CODE_DONE;
    char *text;
    int code = file_read_text(v->options->tolerance, &text);
    if (code != CODE_DONE) return code;
    v->tolerances = json_loads(text, 0, &error);
    free(text);
    if (!v->tolerances)
        return fail_file("'%s', line %d: %s", v->options->tolerance, error.line, error.text);
    const char *name;
    json_t *pair;
    if (!json_is_object(v->tolerances))
        return fail_file("'%s' holds no object", v->options->tolerance);
    json_object_foreach(v->tolerances, name, pair)
    {
        if (json_array_size(pair) == 2 && json_is_number(json_array_get(pair, 0)) &&
            json_is_number(json_array_get(pair, 1))) {
            continue;
        }
        return fail_file("'%s': '%s' must be [rtol, atol]", v->options->tolerance, printable(name));
    }
    return CODE_DONE;
}

/* Reads the names of the cases that must pass: one per line, '#' starts a comment. */
static int load_expected(verification *v)
{
    char *text;
    if (!v->options->expect_pass) return CODE_DONE;
    int code = file_read_text(v->options->expect_pass, &text);
    if (code != CODE_DONE) return code;
    char *rest = text, *line;
    while ((line = split_next(&rest, '\n')) != NULL) {
        line[strcspn(line, "# \t\r")] = '\0';
        if (line[0] == '\0') continue;
        v->expected = must_resize(v->expected, v->n_expected + 1, sizeof *v->expected);
        v->expected[v->n_expected++] = must_copy(line);
    }
    free(text);
    return CODE_DONE;
}

static const test_case *case_named(const verification *v, const char *name)
{
    for (size_t i = 0; i < v->cases.count; i++) {
        if (strcmp(v->cases.items[i].name, name) == 0) return &v->cases.items[i];
    }
    return NULL;
}

static bool is_lost(const verification *v, const char *name)
{
    const test_case *c = case_named(v, name);
    return !c || c->result != CASE_PASS;
}

/* ---- printing -------------------------------------------------------------------------------- */

static const char *const result_names[] = {
    [CASE_OPEN] = "open", [CASE_PASS] = "pass", [CASE_FAIL] = "FAIL", [CASE_SKIP] = "skip"};

static void print_case(const test_case *c)
{
    static const mark marks[] = {[CASE_OPEN] = MARK_NONE,
                                 [CASE_PASS] = MARK_GOOD,
                                 [CASE_FAIL] = MARK_BAD,
                                 [CASE_SKIP] = MARK_DIM};
    output_mark(stdout, marks[c->result], result_names[c->result]);
    (void)printf("  %s", printable(c->name));
    if (c->reason) (void)printf("  %s", c->reason);
    (void)putchar('\n');
    (void)fflush(stdout);
}

static int by_reason(const void *a, const void *b)
{
    const test_case *x = *(const test_case *const *)a, *y = *(const test_case *const *)b;
    int order = strcmp(x->reason, y->reason);
    return order != 0 ? order : strcmp(x->name, y->name);
}

static void print_skipped(const verification *v)
{
    const test_case **skipped = must_alloc(v->n_skipped, sizeof *skipped);
    size_t n = 0;
    for (size_t i = 0; i < v->cases.count; i++) {
        if (v->cases.items[i].result == CASE_SKIP) skipped[n++] = &v->cases.items[i];
    }
    if (n > 0) qsort(skipped, n, sizeof *skipped, by_reason);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(skipped[i]->reason, skipped[i - 1]->reason) != 0)
            (void)printf("\n%s\n ", skipped[i]->reason);
        (void)printf(" %s", printable(skipped[i]->name));
        if (i + 1 == n || strcmp(skipped[i]->reason, skipped[i + 1]->reason) != 0)
            (void)putchar('\n');
    }
    if (n > 0) (void)putchar('\n');
    free(skipped);
}

static int print_json(const verification *v)
{
    json_t *cases = json_array(), *lost = json_array();
    for (size_t i = 0; i < v->cases.count; i++) {
        const test_case *c = &v->cases.items[i];
        json_t *json = json_pack(
            "{s:o, s:s, s:o, s:o}", "name", output_json_text(c->name), "result",
            c->result == CASE_FAIL ? "fail" : result_names[c->result], "reason",
            output_json_text(c->reason ? c->reason : ""), "path", output_json_text(c->path));
        if (c->n_compared > 0) {
            (void)json_object_set_new(json, "max_abs_diff", output_json_real(c->max_abs));
            (void)json_object_set_new(json, "max_rel_diff", output_json_real(c->max_rel));
        }
        (void)json_array_append_new(cases, json);
    }
    for (size_t i = 0; i < v->n_expected; i++) {
        if (is_lost(v, v->expected[i]))
            (void)json_array_append_new(lost, output_json_text(v->expected[i]));
    }
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:O}", "passed", (json_int_t)v->n_passed, "failed",
                  (json_int_t)v->n_failed, "skipped", (json_int_t)v->n_skipped, "cases", cases);
    if (v->options->expect_pass) (void)json_object_set(json, "lost", lost);
    json_decref(cases);
    json_decref(lost);
    return output_json(json);
}

static void print_lost(const verification *v)
{
    for (size_t i = 0; i < v->n_expected; i++) {
        if (!is_lost(v, v->expected[i])) continue;
        const test_case *c = case_named(v, v->expected[i]);
        (void)printf("lost: %s (%s%s%s)\n", printable(v->expected[i]),
                     c ? result_names[c->result] : "no such case", c && c->reason ? ": " : "",
                     c && c->reason ? c->reason : "");
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int prepare(verification *v)
{
    device_choice choice;
    const options *o = v->options;
    int code = engine_check(o);
    for (size_t i = 0; i < o->n_arguments && code == CODE_DONE; i++)
        code = cases_find(o->arguments[i], &v->cases);
    if (code == CODE_DONE && v->cases.count == 0) {
        code = fail_file("there is no test case in '%s'", o->arguments[0]);
        fail_hint("a case is a folder with model.onnx and test_data_set_0; Debian's "
                  "libonnx-testdata has some");
    }
    if (code == CODE_DONE) code = load_tolerances(v);
    if (code == CODE_DONE) code = load_expected(v);
    if (code == CODE_DONE) code = devices_choose(o, NULL, &choice);
    if (code != CODE_DONE) return code;
    code = engine_open_device(o, devices_chosen(&choice, 0), false, &v->context);
    devices_free(&choice);
    return code;
}

static int run_all(verification *v)
{
    for (size_t i = 0; i < v->cases.count; i++) {
        test_case *c = &v->cases.items[i];
        if (v->options->json) output_progress("case", i + 1, v->cases.count);
        run_case(v, c);
        if (interrupt_seen() || c->result == CASE_OPEN) {
            return fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted after %zu of %zu cases",
                        i, v->cases.count);
        }
        v->n_passed += c->result == CASE_PASS;
        v->n_failed += c->result == CASE_FAIL;
        v->n_skipped += c->result == CASE_SKIP;
        if (!v->options->json && (!v->options->quiet || c->result == CASE_FAIL)) print_case(c);
    }
    return CODE_DONE;
}

static void release(verification *v)
{
    cases_free(&v->cases);
    json_decref(v->tolerances);
    for (size_t i = 0; i < v->n_expected; i++) free(v->expected[i]);
    free(v->expected);
    clg_context_free(v->context);
}

int cmd_verify(const options *o)
{
    verification v = {.options = o};
    int code = prepare(&v);
    if (code == CODE_DONE) code = run_all(&v);
    if (code == CODE_DONE && o->json) {
        code = print_json(&v);
    } else if (code == CODE_DONE) {
        if (o->list_skipped) print_skipped(&v);
        print_lost(&v);
        (void)printf("%zu passed, %zu failed, %zu skipped\n", v.n_passed, v.n_failed, v.n_skipped);
    }
    if (code == CODE_DONE && v.n_failed > 0) code = CODE_WORK;
    for (size_t i = 0; i < v.n_expected && code == CODE_DONE; i++) {
        if (is_lost(&v, v.expected[i])) code = CODE_WORK;
    }
    release(&v);
    return code;
}
