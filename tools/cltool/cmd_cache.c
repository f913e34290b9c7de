/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool cache: lists, prunes, clears, warms, packs and unpacks the cache of compiled programs.
 */
#include "cltool.h"

#include "engine.h"
#include "inputs.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int library_fault(clg_status status) { return fail_status(status, STAGE_WORK, NULL); }

static int print_path(const options *o)
{
    char *path;
    clg_status status = clg_cache_path(NULL, &path);
    if (status != CLG_OK) return library_fault(status);
    int code = CODE_DONE;
    if (o->json) {
        code = output_json(json_pack("{s:o}", "path", output_json_text(path)));
    } else {
        (void)printf("%s\n", path);
    }
    clg_text_free(path);
    return code;
}

static void print_entries(const char *path, const clg_cache_entry *entries, size_t n,
                          uint64_t bytes)
{
    static const char *const headers[] = {"used", ">size", "what"};
    table t;
    table_begin(&t, 3, headers);
    for (size_t i = 0; i < n; i++) {
        time_t used = (time_t)entries[i].used_seconds;
        const struct tm *parts = localtime(&used); /* only one thread prints */
        char day[32] = "";
        if (parts) (void)strftime(day, sizeof day, "%Y-%m-%d %H:%M", parts);
        table_cell(&t, MARK_DIM, "%s", day);
        table_cell(&t, MARK_NONE, "%s", bytes_text((double)entries[i].size_bytes));
        table_cell(&t, MARK_NONE, "%s", printable(entries[i].what));
    }
    if (n > 0) table_print(&t, stdout, 0);
    table_free(&t);
    (void)printf("%zu entr%s, %s in %s\n", n, n == 1 ? "y" : "ies", bytes_text((double)bytes),
                 path);
}

static int entries_json(const char *path, const clg_cache_entry *entries, size_t n, uint64_t bytes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o, s:I, s:I}", "name", output_json_text(entries[i].name),
                            "what", output_json_text(entries[i].what), "size_bytes",
                            (json_int_t)entries[i].size_bytes, "used_seconds",
                            (json_int_t)entries[i].used_seconds));
    }
    return output_json(json_pack("{s:o, s:I, s:o}", "path", output_json_text(path), "size_bytes",
                                 (json_int_t)bytes, "entries", list));
}

static int list_entries(const options *o)
{
    char *path;
    clg_cache_entry *entries = NULL;
    size_t n = 0;
    uint64_t bytes = 0;
    clg_status status = clg_cache_path(NULL, &path);
    if (status != CLG_OK) return library_fault(status);
    int code = CODE_DONE;
    status = clg_cache_list(NULL, &entries, &n);
    if (status != CLG_OK) code = library_fault(status);
    for (size_t i = 0; i < n; i++) bytes += entries[i].size_bytes;
    if (code == CODE_DONE && o->json) {
        code = entries_json(path, entries, n, bytes);
    } else if (code == CODE_DONE) {
        print_entries(path, entries, n, bytes);
    }
    clg_cache_list_free(entries, n);
    clg_text_free(path);
    return code;
}

/* Prints what was done, such as "removed", and to how many entries. */
static int report(const options *o, const char *done, size_t n)
{
    if (o->json) return output_json(json_pack("{s:I}", done, (json_int_t)n));
    (void)printf("%zu entr%s %s\n", n, n == 1 ? "y" : "ies", done);
    return CODE_DONE;
}

static int clear(const options *o)
{
    size_t n;
    clg_status status =
        o->crashes ? clg_cache_remove(NULL, "*: compiler crash*", &n) : clg_cache_clear(NULL, &n);
    return status == CLG_OK ? report(o, "removed", n) : library_fault(status);
}

static int prune(const options *o)
{
    uint64_t max_bytes = 0;
    size_t n;
    int code = o->max_size ? option_bytes("--max-size", o->max_size, &max_bytes) : CODE_DONE;
    if (code != CODE_DONE) return code;
    clg_status status = clg_cache_prune(NULL, max_bytes, &n);
    return status == CLG_OK ? report(o, "removed", n) : library_fault(status);
}

static int warm(const options *o)
{
    engine e;
    input_set inputs = {0};
    clg_counters counters = {.struct_size = sizeof counters};
    int code = engine_load(o, o->arguments[1], &e);
    if (code == CODE_DONE) code = inputs_gather(o, e.model, INPUTS_SHAPES, &inputs);
    if (code == CODE_DONE) code = engine_start(o, false, &e);
    if (code == CODE_DONE) code = inputs_give(&inputs, e.session);
    if (code == CODE_DONE) code = engine_prepare(e.session);
    if (code == CODE_DONE) {
        clg_status status = clg_context_counters(e.context, &counters);
        if (status != CLG_OK) code = library_fault(status);
    }
    if (code == CODE_DONE && o->json) {
        code =
            output_json(json_pack("{s:I, s:I}", "compiled", (json_int_t)counters.programs_compiled,
                                  "present", (json_int_t)counters.programs_loaded));
    } else if (code == CODE_DONE) {
        (void)printf("%" PRIu64 " programs compiled, %" PRIu64 " were there\n",
                     counters.programs_compiled, counters.programs_loaded);
    }
    inputs_free(&inputs);
    engine_close(&e);
    return code;
}

static int pack(const options *o)
{
    const char *file = o->arguments[1];
    int code = file_may_be_written(file, o->force);
    if (code != CODE_DONE) return code;
    interrupt_begin(NULL);
    clg_status status = clg_cache_pack(NULL, file);
    interrupt_end(NULL);
    if (status != CLG_OK) return library_fault(status);
    return o->json ? output_json(json_pack("{s:o}", "file", output_json_text(file))) : CODE_DONE;
}

static int unpack(const options *o)
{
    size_t n;
    interrupt_begin(NULL);
    clg_status status = clg_cache_unpack(NULL, o->arguments[1], &n);
    interrupt_end(NULL);
    return status == CLG_OK ? report(o, "added", n) : fail_status(status, STAGE_READ, NULL);
}

int cmd_cache(const options *o)
{
    static const struct {
        const char *name;
        const char *argument; /* NULL: none */
        int (*run)(const options *o);
    } actions[] = {{"path", NULL, print_path}, {"list", NULL, list_entries},
                   {"clear", NULL, clear},     {"prune", NULL, prune},
                   {"warm", "MODEL", warm},    {"pack", "FILE", pack},
                   {"unpack", "FILE", unpack}, {NULL, NULL, NULL}};
    const bool has_argument = o->n_arguments > 1;
    size_t i;
    const int code =
        option_word("'cltool cache'", o->arguments[0], &actions->name, sizeof *actions, &i);
    if (code != CODE_DONE) return code;
    if (actions[i].argument && !has_argument)
        return fail_usage("'cltool cache %s' needs %s", actions[i].name, actions[i].argument);
    if (!actions[i].argument && has_argument)
        return fail_usage("'cltool cache %s' does not know what to do with '%s'", actions[i].name,
                          o->arguments[1]);
    return actions[i].run(o);
}
