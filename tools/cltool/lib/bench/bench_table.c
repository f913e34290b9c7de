/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes results of `cltool bench` as a table of text, Markdown and CSV: one list of columns for
 * all. See bench_result.h.
 */
#include "bench_result.h"

#include "names.h"
#include "text_buffer.h"
#include "tool_commit.h"

#include <stdlib.h>
#include <string.h>

typedef enum figure {
    FIGURE_BATCH,
    FIGURE_RUNS,
    FIGURE_P50,
    FIGURE_P90,
    FIGURE_P99,
    FIGURE_DEVICE_MS,
    FIGURE_THROUGHPUT,
    FIGURE_FLOPS,
    FIGURE_GFLOPS,
    FIGURE_SHARE,
    FIGURE_FIRST_RUN,
    FIGURE_MEMORY
} figure;

/* A column of numbers. In a table they are multiplied by `scale` and have this many significant
 * digits, 0: of whole numbers; CSV has them as they are, in the units of its header. */
static const struct column {
    const char *title, *csv;
    figure figure;
    double scale;
    int digits;
    const char *unit;
} columns[] = {
    {"batch", "batch", FIGURE_BATCH, 1, 0, ""},
    {"runs", "runs", FIGURE_RUNS, 1, 0, ""},
    {"p50 ms", "p50_ms", FIGURE_P50, 1, 4, ""},
    {"p90 ms", "p90_ms", FIGURE_P90, 1, 4, ""},
    {"p99 ms", "p99_ms", FIGURE_P99, 1, 4, ""},
    {"on device ms", "device_p50_ms", FIGURE_DEVICE_MS, 1, 4, ""},
    {"a second", "rows_per_s", FIGURE_THROUGHPUT, 1, 4, ""},
    {"GFLOP", "flops", FIGURE_FLOPS, 1e-9, 3, ""},
    {"GFLOP/s", "gflops_per_s", FIGURE_GFLOPS, 1, 3, ""},
    {"of peak", "of_peak", FIGURE_SHARE, 100, 3, "%"},
    {"first run ms", "first_run_ms", FIGURE_FIRST_RUN, 1, 4, ""},
    {"memory MB", "device_bytes", FIGURE_MEMORY, 1e-6, 4, ""},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

/* Returns a figure of a result; 0: it has none. */
static double figure_of(const bench_result *r, figure f)
{
    switch (f) {
    case FIGURE_BATCH: return (double)r->batch;
    case FIGURE_RUNS: return (double)r->runs;
    case FIGURE_P50: return r->latency.median;
    case FIGURE_P90: return r->latency.p90;
    case FIGURE_P99: return r->latency.p99;
    case FIGURE_DEVICE_MS: return r->has_device_time ? r->device_time.median : 0;
    case FIGURE_THROUGHPUT: return r->throughput;
    case FIGURE_FLOPS: return r->flops;
    case FIGURE_GFLOPS: return bench_result_gflops(r);
    case FIGURE_SHARE: return bench_result_share(r);
    case FIGURE_FIRST_RUN: return r->first_run_ms;
    case FIGURE_MEMORY: return (double)r->device_bytes;
    }
    return 0;
}

/* Returns a cell of a table, "" for a figure that there is not; free(). */
static char *cell_text(const bench_result *r, const struct column *c)
{
    const double number = figure_of(r, c->figure);
    if (number == 0 || (r->left_out && c->figure != FIGURE_BATCH)) return must_copy("");
    const double shown = number * c->scale;
    return c->digits == 0 || shown >= 1000 ? must_printf("%.0f%s", shown, c->unit)
                                           : must_printf("%.*g%s", c->digits, shown, c->unit);
}

/* Return whether results differ in their model or device, which then have a column. */
static bool has_models(const bench_results *r)
{
    if (r->names_models) return true;
    for (size_t i = 1; i < r->count; i++)
        if (strcmp(r->items[i].model, r->items[0].model) != 0) return true;
    return false;
}

static bool has_devices(const bench_results *r)
{
    for (size_t i = 1; i < r->count; i++)
        if (strcmp(r->items[i].selector, r->items[0].selector) != 0) return true;
    return false;
}

static bool has_column(const bench_results *r, const struct column *c)
{
    for (size_t i = 0; i < r->count; i++)
        if (figure_of(&r->items[i], c->figure) != 0) return true;
    return false;
}

static char *left_out_text(const bench_result *r)
{
    return must_printf("%s with batch %zu on device %s was left out: %s", printable(r->model),
                       r->batch, r->selector, r->left_out);
}

/* ---- text ------------------------------------------------------------------------------------ */

static char *version_text(void)
{
    return must_printf("clgraph %s%s%s", clg_version(), tool_commit[0] ? ", commit " : "",
                       tool_commit);
}

static char *device_text(const bench_device *d)
{
    return must_printf("device %s, %s (%s), driver %s, %s, %s", d->selector, printable(d->name),
                       printable(d->platform), printable(d->driver), printable(d->opencl),
                       bytes_text((double)d->memory_bytes));
}

/* Returns the measured peaks; free(). */
static char *peaks_text(const bench_device *d)
{
    char half[48] = "";
    if (d->peaks.fp16_gflops > 0)
        (void)snprintf(half, sizeof half, ", fp16 %.0f GFLOP/s", d->peaks.fp16_gflops);
    return must_printf("peak of %s: fp32 %.0f GFLOP/s%s, memory %.1f GB/s, a launch in %.1f us",
                       d->selector, d->peaks.fp32_gflops, half, d->peaks.memory_gbytes_per_s,
                       d->peaks.launch_us);
}

/* Calls `line` with each line that says what the results were measured with. */
static void each_line(const bench_results *r, void (*line)(void *user, const char *text),
                      void *user)
{
    char *text = version_text();
    line(user, text);
    free(text);
    for (size_t i = 0; i < r->n_devices; i++) {
        text = device_text(&r->devices[i]);
        line(user, text);
        free(text);
        if (!r->devices[i].is_measured) continue;
        text = peaks_text(&r->devices[i]);
        line(user, text);
        free(text);
    }
    if (r->count == 0) return;
    text = must_printf("precision %s", r->items[0].precision);
    line(user, text);
    free(text);
}

static void print_line(void *user, const char *text)
{
    (void)user;
    (void)printf("%s\n", text);
}

void bench_print_environment(const bench_results *r) { each_line(r, print_line, NULL); }

void bench_print_table(const bench_results *r)
{
    const char *headers[N_COLUMNS + 2] = {"device", "model"};
    char *titles[N_COLUMNS];
    const bool shows_model = has_models(r);
    table t;
    for (size_t c = 0; c < N_COLUMNS; c++)
        headers[c + 2] = titles[c] = must_printf(">%s", columns[c].title);
    table_begin(&t, N_COLUMNS + 2, headers);
    for (size_t i = 0; i < r->count; i++) {
        const bench_result *one = &r->items[i];
        table_cell(&t, MARK_NONE, "%s", has_devices(r) || !shows_model ? one->selector : "");
        table_cell(&t, MARK_NONE, "%s", shows_model ? printable(one->model) : "");
        for (size_t c = 0; c < N_COLUMNS; c++) {
            char *text = cell_text(one, &columns[c]);
            table_cell(&t, MARK_NONE, "%s", text);
            free(text);
        }
    }
    table_print(&t, stdout, 0);
    for (size_t c = 0; c < N_COLUMNS; c++) free(titles[c]);
    for (size_t i = 0; i < r->count; i++) {
        if (!r->items[i].left_out) continue;
        char *text = left_out_text(&r->items[i]);
        (void)printf("%s\n", text);
        free(text);
    }
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* Appends text without control characters so that Markdown shows it as it is: its special
 * characters are escaped. */
static void add_markdown(text_buffer *b, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (strchr("\\`*_[]<>#|~&", *c)) text_buffer_add(b, "\\");
        text_buffer_add_bytes(b, c, 1);
    }
}

static void add_list_line(void *user, const char *text)
{
    text_buffer_add(user, "- ");
    add_markdown(user, text);
    text_buffer_add(user, "\n");
}

static char *markdown(const bench_results *r)
{
    text_buffer b = {0};
    each_line(r, add_list_line, &b);
    text_buffer_add(&b, has_devices(r) ? "\n| device | model |" : "\n| model |");
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (has_column(r, &columns[c])) text_buffer_printf(&b, " %s |", columns[c].title);
    text_buffer_add(&b, has_devices(r) ? "\n|---|---|" : "\n|---|");
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (has_column(r, &columns[c])) text_buffer_add(&b, "--:|");
    for (size_t i = 0; i < r->count; i++) {
        text_buffer_add(&b, "\n| ");
        if (has_devices(r)) text_buffer_printf(&b, "%s | ", r->items[i].selector);
        add_markdown(&b, printable(r->items[i].model));
        text_buffer_add(&b, " |");
        for (size_t c = 0; c < N_COLUMNS; c++) {
            if (!has_column(r, &columns[c])) continue;
            char *text = cell_text(&r->items[i], &columns[c]);
            text_buffer_printf(&b, " %s |", text);
            free(text);
        }
    }
    text_buffer_add(&b, "\n");
    for (size_t i = 0; i < r->count; i++) {
        if (!r->items[i].left_out) continue;
        char *text = left_out_text(&r->items[i]);
        text_buffer_add(&b, "\n");
        add_list_line(&b, text);
        free(text);
    }
    return text_buffer_take(&b);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* Appends a cell in quotes, whose own quotes are doubled (RFC 4180). */
static void add_quoted(text_buffer *b, const char *text)
{
    text_buffer_add(b, "\"");
    for (const char *c = printable(text); *c; c++) {
        if (*c == '"') text_buffer_add(b, "\"");
        text_buffer_add_bytes(b, c, 1);
    }
    text_buffer_add(b, "\"");
}

static char *csv(const bench_results *r)
{
    text_buffer b = {0};
    text_buffer_add(&b, "version,commit,device,driver,model,precision");
    for (size_t c = 0; c < N_COLUMNS; c++) text_buffer_printf(&b, ",%s", columns[c].csv);
    text_buffer_add(&b, ",left_out\n");
    for (size_t i = 0; i < r->count; i++) {
        const bench_result *one = &r->items[i];
        const bench_device *d = NULL;
        for (size_t k = 0; k < r->n_devices && !d; k++)
            if (strcmp(r->devices[k].selector, one->selector) == 0) d = &r->devices[k];
        text_buffer_printf(&b, "%s,%s,", clg_version(), tool_commit);
        add_quoted(&b, d ? d->name : one->selector);
        text_buffer_add(&b, ",");
        add_quoted(&b, d ? d->driver : "");
        text_buffer_add(&b, ",");
        add_quoted(&b, one->model);
        text_buffer_printf(&b, ",%s", one->precision);
        for (size_t c = 0; c < N_COLUMNS; c++) {
            const double number = figure_of(one, columns[c].figure);
            text_buffer_add(&b, ",");
            if (number != 0) text_buffer_printf(&b, "%.9g", number);
        }
        text_buffer_add(&b, ",");
        if (one->left_out) add_quoted(&b, one->left_out);
        text_buffer_add(&b, "\n");
    }
    return text_buffer_take(&b);
}

/* ---- files ----------------------------------------------------------------------------------- */

int bench_file_check(const char *path, bool force)
{
    if (!path_ends_in(path, ".md") && !path_ends_in(path, ".csv") && !path_ends_in(path, ".json"))
        return fail_usage("-o writes .md, .csv or .json, not '%s'", printable(path));
    return file_may_be_written(path, force);
}

int bench_file_write(const char *path, const bench_results *r, const json_t *document)
{
    char *text = path_ends_in(path, ".md") ? markdown(r)
                 : path_ends_in(path, ".csv")
                     ? csv(r)
                     : json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!text) return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for JSON");
    const int code = output_write(path, text, strlen(text));
    free(text);
    return code;
}
