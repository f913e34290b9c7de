/* SPDX-License-Identifier: Apache-2.0
 *
 * Records trace events and writes them as JSON.
 */
#include "trace.h"

#include "names.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_HOST = 1, ROW_DEVICE = 2 };

static void name_row(trace *t, int row, const char *name)
{
    (void)json_array_append_new(t->events,
                                json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name",
                                          "ph", "M", "pid", 1, "tid", row, "args", "name", name));
}

void trace_begin(trace *t, bool on)
{
    t->events = on ? json_array() : NULL;
    if (!on) return;
    name_row(t, ROW_HOST, "host");
    name_row(t, ROW_DEVICE, "device");
}

void trace_host(trace *t, const char *name, double start_us, double duration_us)
{
    if (!t->events) return;
    (void)json_array_append_new(t->events, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "name", name,
                                                     "ph", "X", "pid", 1, "tid", ROW_HOST, "ts",
                                                     start_us, "dur", duration_us));
}

void trace_device(trace *t, const char *name, const char *node, const char *op_type,
                  double start_us, double duration_us)
{
    if (!t->events) return;
    (void)json_array_append_new(
        t->events,
        json_pack("{s:o, s:s, s:i, s:i, s:f, s:f, s:{s:o, s:o}}", "name", output_json_text(name),
                  "ph", "X", "pid", 1, "tid", ROW_DEVICE, "ts", start_us, "dur", duration_us,
                  "args", "node", output_json_text(node), "operator", output_json_text(op_type)));
}

int trace_write(const trace *t, const char *path)
{
    json_t *document = json_pack("{s:O, s:s}", "traceEvents", t->events, "displayTimeUnit", "ms");
    char *text = document ? json_dumps(document, JSON_INDENT(0) | JSON_REAL_PRECISION(15)) : NULL;
    int code =
        text ? output_write(path, text, strlen(text))
             : fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for the trace");
    free(text);
    json_decref(document);
    if (code == CODE_DONE)
        output_note("trace written to '%s': open it in ui.perfetto.dev or chrome://tracing", path);
    return code;
}

void trace_free(trace *t)
{
    json_decref(t->events);
    t->events = NULL;
}
