/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures built-in models. See bench_suite.h.
 */
#include "bench_suite.h"

#include "bench_run.h"
#include "host.h"
#include "interrupt.h"
#include "suite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MODELS 16
#define SEED 0 /* of weights */

static const size_t default_batches[] = {1, 16};

typedef struct suite {
    const options *options;
    const suite_model *models[MAX_MODELS];
    size_t n_models;
    size_t *batches, n_batches;
    device_choice choice;
    size_t n_devices;
    bench_results *results;
    failure_record first; /* failure, other than memory */
    int code;             /* its code; CODE_DONE: there was none */
} suite;

/* ---- which models ---------------------------------------------------------------------------- */

static int add_model(suite *s, const char *name)
{
    const char *words[MAX_MODELS + 1] = {NULL};
    size_t n = 0, index;
    for (; suite_models[n]; n++) words[n] = suite_models[n]->name;
    const int code = option_word("--suite", name, words, sizeof *words, &index);
    if (code != CODE_DONE) return code;
    for (size_t i = 0; i < s->n_models; i++)
        if (s->models[i] == suite_models[index])
            return fail_usage("--suite: '%s' is given twice", name);
    s->models[s->n_models++] = suite_models[index];
    return CODE_DONE;
}

static int add_models(suite *s, const char *list)
{
    char *copy = must_copy(list), *rest = copy, *name;
    int code = CODE_DONE;
    while (code == CODE_DONE && (name = split_next(&rest, ',')) != NULL) code = add_model(s, name);
    free(copy);
    return code;
}

static int check_options(const options *o)
{
    if (o->inputs.count || o->images.count || o->fills.count || o->shapes.count || o->dims.count)
        return fail_usage("--suite makes the inputs of its models itself: it takes no -i, --image, "
                          "--fill, --shape and --dim");
    if (o->compare) return fail_usage("--compare takes a model, not --suite");
    if (o->split) return fail_usage("--split takes a model, not --suite");
    return engine_check(o);
}

static int choose_models(suite *s, const char *const *names, size_t n)
{
    int code = check_options(s->options);
    for (size_t i = 0; suite_models[i] && n == 0; i++) s->models[s->n_models++] = suite_models[i];
    for (size_t i = 0; i < n && code == CODE_DONE; i++) code = add_models(s, names[i]);
    return code;
}

int bench_suite_check(const options *o, const char *const *names, size_t n)
{
    suite s = {.options = o};
    return choose_models(&s, names, n);
}

static int prepare(suite *s, const char *const *names, size_t n)
{
    const options *o = s->options;
    int code = choose_models(s, names, n);
    if (code == CODE_DONE && o->batch)
        code = option_sizes("--batch", o->batch, &s->batches, &s->n_batches);
    if (code == CODE_DONE && !o->batch) {
        s->n_batches = sizeof default_batches / sizeof *default_batches;
        s->batches = must_alloc(s->n_batches, sizeof *s->batches);
        memcpy(s->batches, default_batches, sizeof default_batches);
    }
    if (code == CODE_DONE)
        code = devices_choose(o, o->each && !o->device ? "all" : NULL, &s->choice);
    s->n_devices = o->each ? s->choice.n_chosen : 1;
    return code;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Returns how the inputs of a model are filled, as --fill takes it: with tokens of the whole
 * vocabulary, all of one sequence, or with random numbers. free() each and the list. */
static char **fills_of(const suite_model *m, const clg_model *model, size_t *out_n)
{
    char *tokens = must_printf("random:0:0:%" PRId64, m->n_tokens - 1);
    const struct {
        const char *name, *how;
    } kinds[] = {{"input_ids", tokens}, {"attention_mask", "ones"}, {"token_type_ids", "zeros"}};
    const size_t n = *out_n = clg_model_n_inputs(model);
    char **fills = must_alloc(n, sizeof *fills);
    for (size_t i = 0; i < n; i++) {
        const char *name = clg_model_input(model, i)->name, *how = "random:0";
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (strcmp(kinds[k].name, name) == 0) how = kinds[k].how;
        fills[i] = must_printf("%s=%s", name, how);
    }
    free(tokens);
    return fills;
}

/* Gathers inputs of one row, which refer to `fills`. */
static int gather_inputs(const suite *s, char **fills, size_t n, const clg_model *model,
                         input_set *out_inputs)
{
    options o = *s->options;
    const char *one_row = "batch=1";
    o.fills = (text_list){.items = (const char **)fills, .count = n};
    o.dims = (text_list){.items = &one_row, .count = 1};
    return inputs_gather(&o, model, INPUTS_REQUIRED, out_inputs);
}

/* Returns why a device cannot hold a model with inputs of a batch; NULL if it can, or it is not
 * known. free() */
static char *too_large(const clg_model *model, const input_set *inputs, size_t batch,
                       const clg_device_info *device)
{
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    input_set rows;
    size_t n;
    if (inputs_with_batch(inputs, batch, &rows) != CODE_DONE) return NULL;
    clg_shape_override *shapes = inputs_shapes(&rows, &n);
    const clg_status status = clg_model_memory(model, shapes, n, &memory);
    free(shapes);
    inputs_free(&rows);
    const uint64_t bytes = memory.weight_bytes + memory.slab_bytes + memory.io_bytes;
    if (status != CLG_OK || bytes <= device->global_mem_bytes) return NULL;
    return must_printf("it needs %s at least, and the device has %s", bytes_text((double)bytes),
                       bytes_text((double)device->global_mem_bytes));
}

static bool is_memory(clg_status status)
{
    return status == CLG_ERROR_OUT_OF_DEVICE_MEMORY || status == CLG_ERROR_OUT_OF_HOST_MEMORY ||
           status == CLG_ERROR_LIMIT;
}

/* Takes the recorded failure as the reason why a result is left out; returns CODE_DONE, so that
 * others are measured, except after Ctrl-C. */
static int leave_out(suite *s, int code, bench_result *r)
{
    failure_record record;
    if (code == CODE_INTERRUPTED) return code;
    r->left_out = must_copy(printable(failure_text()));
    failure_take(&record);
    if (is_memory(record.status) || s->code != CODE_DONE) return CODE_DONE;
    s->first = record;
    s->code = code;
    return CODE_DONE;
}

/* Records why all batches of a model are left out on a device. */
static int leave_out_all(suite *s, int code, const clg_device_info *device, const suite_model *m)
{
    if (code == CODE_INTERRUPTED) return code;
    const char *precision = s->options->precision ? s->options->precision : "fp32";
    for (size_t i = 0; i < s->n_batches; i++) {
        bench_result r = {.device = must_copy(device->id),
                          .selector = must_copy(device->selector),
                          .model = m->title,
                          .batch = s->batches[i],
                          .precision = precision};
        if (i == 0)
            (void)leave_out(s, code, &r);
        else
            r.left_out = must_copy(s->results->items[s->results->count - 1].left_out);
        (void)bench_results_add(s->results, r);
    }
    return CODE_DONE;
}

static int measure_batch(suite *s, engine *e, const suite_model *m, const input_set *inputs,
                         size_t batch, const bench_device *device)
{
    const clg_device_info *info = clg_context_device(e->context);
    bench_result r;
    char *reason = too_large(e->model, inputs, batch, info);
    int code = CODE_DONE;
    if (reason) {
        r = (bench_result){.device = must_copy(info->id),
                           .selector = must_copy(info->selector),
                           .model = m->title,
                           .batch = batch,
                           .precision = engine_precision(e->session),
                           .left_out = reason};
    } else {
        code = bench_measure(s->options, e, m->title, inputs, batch, &r);
        r.peak_gflops = bench_device_peak(device, r.precision);
        if (code != CODE_DONE) code = leave_out(s, code, &r);
    }
    (void)bench_results_add(s->results, r);
    return code;
}

/* Measures all batches of a model, in a context of its own, whose peak of memory is that of this
 * model. */
static int measure_model(suite *s, const suite_model *m, clg_model *model,
                         const clg_device_info *device, const bench_device *described)
{
    engine e = {.model = model};
    input_set inputs = {0};
    size_t n_fills;
    char **fills = fills_of(m, model, &n_fills);
    int code = engine_open_context(s->options, device, false, &e.context);
    const double start = now_ms();
    if (code == CODE_DONE) code = engine_create_session(s->options, e.context, model, &e.session);
    e.load_ms = now_ms() - start;
    if (code == CODE_DONE) code = gather_inputs(s, fills, n_fills, model, &inputs);
    if (code != CODE_DONE) code = leave_out_all(s, code, device, m);
    for (size_t i = 0; e.session && i < s->n_batches && code == CODE_DONE; i++)
        code = measure_batch(s, &e, m, &inputs, s->batches[i], described);
    inputs_free(&inputs);
    for (size_t i = 0; i < n_fills; i++) free(fills[i]);
    free(fills);
    e.model = NULL; /* the caller's */
    engine_close(&e);
    return code;
}

/* Prints a note of each device, and measures the peaks of each with --measure. */
static int describe_devices(suite *s)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < s->n_devices && code == CODE_DONE; i++) {
        const clg_device_info *device = devices_chosen(&s->choice, i);
        clg_context *context = NULL;
        bench_device *d = bench_results_add_device(s->results, device);
        code = engine_open_device(s->options, device, false, &context);
        if (code == CODE_DONE && s->options->measure) code = bench_device_measure(d, context);
        clg_context_free(context);
    }
    return code;
}

static int measure_all(suite *s)
{
    int code = describe_devices(s);
    for (size_t i = 0; i < s->n_models && code == CODE_DONE; i++) {
        const suite_model *m = s->models[i];
        clg_model *model;
        output_progress(m->title, i + 1, s->n_models);
        code = suite_build(m, SEED, 1, &model, NULL);
        for (size_t d = 0; d < s->n_devices && code == CODE_DONE; d++)
            code =
                measure_model(s, m, model, devices_chosen(&s->choice, d), &s->results->devices[d]);
        clg_model_free(model);
        if (code == CODE_DONE && interrupt_seen())
            code = fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted");
    }
    output_progress_clear();
    return code;
}

int bench_suite(const options *o, const char *const *names, size_t n, bench_results *out_results)
{
    suite s = {.options = o, .results = out_results};
    out_results->names_models = true;
    int code = prepare(&s, names, n);
    if (code == CODE_DONE) code = measure_all(&s);
    if (code == CODE_DONE && s.code != CODE_DONE) {
        failure_put(&s.first);
        code = s.code;
    }
    free(s.batches);
    devices_free(&s.choice);
    return code;
}

json_t *bench_suite_json(const bench_results *r)
{
    json_t *json = bench_environment_json(r), *list = json_array();
    for (size_t i = 0; i < r->count; i++)
        (void)json_array_append_new(list, bench_result_json(&r->items[i]));
    if (json) (void)json_object_set_new(json, "results", list);
    return json;
}
