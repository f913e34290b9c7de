/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses devices, opens contexts, models and sessions, and runs sessions.
 */
#include "engine.h"

#include "host.h"
#include "interrupt.h"
#include "output.h"
#include "suggestion.h"

#include <clgraph/multi.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int devices_choose(const options *o, const char *selector, device_choice *out_choice)
{
    *out_choice = (device_choice){0};
    clg_status status = clg_device_list(&out_choice->devices, &out_choice->n_devices);
    if (status == CLG_OK) {
        status = clg_device_select(selector ? selector : o->device, o->fallback,
                                   &out_choice->chosen, &out_choice->n_chosen);
    }
    if (status == CLG_OK) return CODE_DONE;
    int code = fail_status(status, STAGE_WORK, NULL);
    devices_free(out_choice);
    return code;
}

const clg_device_info *devices_chosen(const device_choice *choice, size_t i)
{
    return &choice->devices[choice->chosen[i]];
}

void devices_free(device_choice *choice)
{
    clg_indices_free(choice->chosen);
    clg_device_list_free(choice->devices, choice->n_devices);
    *choice = (device_choice){0};
}

bool engine_selects_auto(const options *o)
{
    const char *selector = o->device ? o->device : getenv("CLG_DEVICE");
    return !selector || selector[0] == '\0' || strcmp(selector, "auto") == 0;
}

static int read_launch_limit(const char *word, uint32_t *out_ms)
{
    size_t ms = UINT32_MAX;
    *out_ms = 0;
    if (!word) return CODE_DONE;
    if (strcmp(word, "none") != 0) {
        const int code = option_size("--max-launch-ms", word, 1, &ms);
        if (code != CODE_DONE) return code;
        if (ms >= UINT32_MAX) return fail_usage("--max-launch-ms is too large");
    }
    *out_ms = (uint32_t)ms;
    return CODE_DONE;
}

static int context_options(const options *o, bool profiling, clg_context_options *out_options)
{
    *out_options = (clg_context_options)CLG_CONTEXT_OPTIONS_INIT;
    out_options->cpu_threads = (uint32_t)o->cpu_threads;
    out_options->profiling = profiling;
    if (!o->shows_early && !getenv("CLG_COMPILATION"))
        out_options->compilation = CLG_COMPILATION_OPTIMIZED;
    if (o->cpu_threads > UINT32_MAX) return fail_usage("--cpu-threads is too large");
    return read_launch_limit(o->max_launch_ms, &out_options->max_launch_ms);
}

int engine_open_context(const options *o, const clg_device_info *device, bool profiling,
                        clg_context **out_context)
{
    clg_context_options given;
    const int code = context_options(o, profiling, &given);
    if (code != CODE_DONE) return code;
    clg_status status = clg_context_create(device->selector, &given, out_context);
    return status == CLG_OK ? CODE_DONE
                            : fail_status(status, STAGE_WORK, "device %s", device->selector);
}

/* Prints the device's name, once where the program opens it again. */
static void note_device(const options *o, const clg_device_info *device)
{
    static char noted[32][64];
    static size_t n_noted;
    for (size_t i = 0; i < n_noted; i++)
        if (strcmp(noted[i], device->selector) == 0) return;
    if (n_noted < sizeof noted / sizeof *noted)
        (void)snprintf(noted[n_noted++], sizeof *noted, "%s", device->selector);
    output_note("device %s, %s (%s)", device->selector, printable(device->name),
                printable(device->platform));
    if (device->kind == CLG_DEVICE_CPU && engine_selects_auto(o) && host_has_gpu()) {
        output_note(
            "this is a CPU although the system shows a GPU: see 'cltool devices --diagnose'");
    }
}

int engine_open_device(const options *o, const clg_device_info *device, bool profiling,
                       clg_context **out_context)
{
    const int code = engine_open_context(o, device, profiling, out_context);
    if (code == CODE_DONE) note_device(o, device);
    return code;
}

int engine_open_all(const options *o, bool profiling, clg_context ***out_contexts, size_t *out_n)
{
    clg_context_options given;
    *out_contexts = NULL;
    *out_n = 0;
    const int code = context_options(o, profiling, &given);
    if (code != CODE_DONE) return code;
    given.fallback = o->fallback;
    const clg_status status = clg_context_create_list(o->device, &given, out_contexts, out_n);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    for (size_t i = 0; i < *out_n; i++) note_device(o, clg_context_device((*out_contexts)[i]));
    return CODE_DONE;
}

static const char *const precisions[] = {[CLG_PRECISION_FP32] = "fp32",
                                         [CLG_PRECISION_FP16] = "fp16",
                                         [CLG_PRECISION_AUTO] = "auto",
                                         NULL};

static int read_precision(const char *word, clg_precision *out_precision)
{
    size_t i = CLG_PRECISION_FP32;
    const int code =
        word ? option_word("--precision", word, precisions, sizeof *precisions, &i) : CODE_DONE;
    *out_precision = (clg_precision)i;
    return code;
}

const char *engine_precision(const clg_session *session)
{
    return precisions[clg_session_precision(session)];
}

int engine_kernels(const options *o, clg_kernel_class *out_class)
{
    static const char *const words[] = {"simd", "simt", NULL};
    static const clg_kernel_class classes[] = {CLG_KERNELS_SIMD, CLG_KERNELS_SIMT};
    size_t i;
    *out_class = CLG_KERNELS_AUTO;
    if (!o->kernels) return CODE_DONE;
    const int code = option_word("--kernels", o->kernels, words, sizeof *words, &i);
    if (code == CODE_DONE) *out_class = classes[i];
    return code;
}

bool engine_splits_layers(const options *o) { return o->split && strcmp(o->split, "layers") == 0; }

/* Checks that operators have the implementations that --prefer names. */
static int check_preferred(const options *o)
{
    for (size_t i = 0; i < o->preferred_impls.count; i++) {
        const char *wanted = o->preferred_impls.items[i], *name;
        suggestion s;
        suggestion_begin(&s, wanted);
        size_t k = 0;
        while ((name = clg_implementation_name(k++)) != NULL && strcmp(name, wanted) != 0)
            suggestion_offer(&s, name);
        if (name) continue;
        (void)fail_usage("--prefer: no operator has an implementation '%s'", printable(wanted));
        if (!suggestion_hint(&s))
            fail_hint("'cltool inspect MODEL --plan' names the implementations of its nodes");
        return CODE_USAGE;
    }
    return CODE_DONE;
}

int engine_check(const options *o)
{
    clg_context_options device;
    clg_precision precision;
    clg_kernel_class kernels;
    int code = context_options(o, false, &device);
    if (code == CODE_DONE) code = read_precision(o->precision, &precision);
    if (code == CODE_DONE) code = engine_kernels(o, &kernels);
    if (code == CODE_DONE) code = check_preferred(o);
    return code;
}

clg_model_options engine_model_options(const options *o)
{
    clg_model_options given = CLG_MODEL_OPTIONS_INIT;
    given.read_files = o->read_files;
    given.limits = o->limits.struct_size ? &o->limits : NULL;
    given.cancel = interrupt_token();
    return given;
}

int engine_load_model(const options *o, const char *path, clg_model **out_model)
{
    const clg_model_options given = engine_model_options(o);
    interrupt_begin_computing();
    clg_status status = clg_model_load_file(path, &given, out_model);
    interrupt_end_computing();
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

clg_session_options engine_session_options(const options *o)
{
    clg_session_options given = CLG_SESSION_OPTIONS_INIT;
    (void)engine_kernels(o, &given.kernels); /* checked by engine_check */
    given.no_blas = o->no_blas;
    given.strict = o->strict;
    given.disabled_passes = o->disabled_passes.items;
    given.n_disabled_passes = o->disabled_passes.count;
    given.preferred_impls = o->preferred_impls.items;
    given.n_preferred_impls = o->preferred_impls.count;
    (void)read_precision(o->precision, &given.precision); /* checked by engine_check */
    given.keep_fp32 = o->keep_fp32.items;
    given.n_keep_fp32 = o->keep_fp32.count;
    given.cancel = interrupt_token();
    given.limits = o->limits.struct_size ? &o->limits : NULL;
    return given;
}

/* Creates a session on the first context or, with `multi`, over all of them; the status is
 * CANCELLED after Ctrl-C. */
static clg_status begin_session(const options *o, clg_context *const *contexts, size_t n,
                                const clg_multi_options *multi, clg_model *model,
                                clg_session **out_session)
{
    clg_session_options given = engine_session_options(o);
    given.progress = output_progress_callback;
    interrupt_begin_computing();
    const clg_status status =
        multi ? clg_session_create_multi(contexts, n, model, &given, multi, out_session)
              : clg_session_create(contexts[0], model, &given, out_session);
    interrupt_end_computing();
    output_progress_clear();
    return interrupt_seen() ? CLG_ERROR_CANCELLED : status;
}

int engine_create_session(const options *o, clg_context *context, clg_model *model,
                          clg_session **out_session)
{
    const clg_status status = begin_session(o, &context, 1, NULL, model, out_session);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    if (engine_session_options(o).precision == CLG_PRECISION_AUTO)
        output_note("precision %s", engine_precision(*out_session));
    return CODE_DONE;
}

int engine_open(const options *o, bool profiling, clg_context **out_context)
{
    device_choice choice;
    int code = devices_choose(o, NULL, &choice);
    if (code != CODE_DONE) return code;
    if (choice.n_chosen > 1) {
        output_note("one device serves: the first of the %zu that are selected", choice.n_chosen);
    }
    code = engine_open_device(o, devices_chosen(&choice, 0), profiling, out_context);
    devices_free(&choice);
    return code;
}

int engine_load(const options *o, const char *model_path, engine *out_engine)
{
    *out_engine = (engine){.model_path = model_path};
    int code = engine_check(o);
    double start = now_ms();
    if (code == CODE_DONE) code = engine_load_model(o, model_path, &out_engine->model);
    out_engine->load_ms = now_ms() - start;
    return code;
}

int engine_create_layers(const options *o, clg_context *const *contexts, size_t n, clg_model *model,
                         clg_session **out_session)
{
    clg_multi_options multi = CLG_MULTI_OPTIONS_INIT;
    multi.split = CLG_SPLIT_LAYERS;
    const clg_status status = begin_session(o, contexts, n, &multi, model, out_session);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

/* Creates the session over all devices. Where the model does not allow that, says why, and creates
 * it on the first. */
static int create_session(const options *o, engine *e)
{
    if (engine_splits_layers(o))
        return engine_create_layers(o, e->contexts, e->n_contexts, e->model, &e->session);
    if (e->n_contexts == 1) return engine_create_session(o, e->context, e->model, &e->session);
    const clg_multi_options multi = CLG_MULTI_OPTIONS_INIT;
    const clg_status status =
        begin_session(o, e->contexts, e->n_contexts, &multi, e->model, &e->session);
    if (status == CLG_OK) return CODE_DONE;
    if (status != CLG_ERROR_UNSUPPORTED_OPERATOR && status != CLG_ERROR_INVALID_ARGUMENT)
        return fail_status(status, STAGE_READ, NULL);
    output_note("one device serves, the first of the %zu that are selected: %s", e->n_contexts,
                printable(clg_last_error()));
    return engine_create_session(o, e->context, e->model, &e->session);
}

int engine_start(const options *o, bool profiling, engine *e)
{
    int code = engine_open(o, profiling, &e->context);
    if (code != CODE_DONE) return code;
    double start = now_ms();
    code = engine_create_session(o, e->context, e->model, &e->session);
    e->load_ms += now_ms() - start;
    return code;
}

int engine_start_all(const options *o, bool profiling, engine *e)
{
    int code = engine_open_all(o, profiling, &e->contexts, &e->n_contexts);
    if (code != CODE_DONE) return code;
    e->context = e->contexts[0];
    double start = now_ms();
    code = create_session(o, e);
    e->load_ms += now_ms() - start;
    return code;
}

static void note_rows(const clg_session_part *part)
{
    output_note("device %s: %" PRIu64 " rows, %.0f%% of the time idle%s", part->device->selector,
                part->rows, 100 * part->idle_share, part->is_lost ? ", lost" : "");
}

static void note_layers(const clg_session_part *part)
{
    const char *lost = part->is_lost ? ", lost" : "";
    if (part->n_nodes == 0)
        output_note("device %s: no nodes%s", part->device->selector, lost);
    else
        output_note("device %s: %zu nodes, '%s' to '%s', weights %s, %.0f%% of the time, gets %s%s",
                    part->device->selector, part->n_nodes, printable(part->first_node),
                    printable(part->last_node), bytes_text((double)part->weight_bytes),
                    100 * part->share, bytes_text((double)part->crossing_bytes), lost);
}

void engine_note_parts(const options *o, clg_session *session)
{
    clg_session_part *parts;
    size_t n;
    if (clg_session_parts(session, &parts, &n) != CLG_OK) return;
    for (size_t i = 0; i < n; i++) {
        if (engine_splits_layers(o))
            note_layers(&parts[i]);
        else if (n > 1)
            note_rows(&parts[i]);
    }
    clg_session_parts_free(parts, n);
}

void engine_close(engine *e)
{
    (void)fflush(stdout); /* before the context stores programs, so that results appear first */
    clg_session_free(e->session);
    clg_model_free(e->model);
    if (e->contexts)
        clg_context_list_free(e->contexts, e->n_contexts);
    else
        clg_context_free(e->context);
    *e = (engine){0};
}

int engine_run(clg_session *session)
{
    interrupt_begin(session);
    clg_status status = clg_session_run(session);
    interrupt_end(session);
    if (interrupt_seen()) status = CLG_ERROR_CANCELLED;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

int engine_prepare(clg_session *session)
{
    interrupt_begin(session);
    clg_status status = clg_session_prepare(session, output_progress_callback, NULL);
    interrupt_end(session);
    output_progress_clear();
    if (interrupt_seen()) status = CLG_ERROR_CANCELLED;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

const char *engine_device_id(const engine *e) { return clg_context_device(e->context)->id; }
