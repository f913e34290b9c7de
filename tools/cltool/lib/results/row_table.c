/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements row_table.h.
 */
#include "row_table.h"

#include "host.h"
#include "names.h"
#include "output.h"
#include "predict_rows.h"
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct row_table {
    char *path, *part; /* part: where it is written until it is complete; NULL: a stream */
    row_source source;
    FILE *stream;
    bool is_csv, has_images, has_header;
    int64_t n_rows; /* written so far */
    size_t n_elems; /* of a row */
};

bool row_table_is_path(const char *path)
{
    return path_ends_in(path, ".csv") || path_ends_in(path, ".jsonl");
}

const char *row_image(const input_set *inputs, int64_t row)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const input_item *item = &inputs->items[i];
        if (row >= 0 && (uint64_t)row < item->n_images) return item->images[row];
    }
    return NULL;
}

static int fail_write(const row_table *t)
{
    return fail(CODE_WORK, CLG_ERROR_IO, "'%s' cannot be written: %s", t->path, strerror(errno));
}

int row_table_open(const char *path, FILE *stream, const row_source *source, row_table **out_table)
{
    row_table *t = must_alloc(1, sizeof *t);
    t->path = must_copy(stream ? "standard output" : path);
    t->part = stream ? NULL : must_printf("%s.part", path);
    t->source = *source;
    t->is_csv = path_ends_in(path, ".csv");
    t->has_images = row_image(source->inputs, source->first_row) != NULL;
    t->stream = stream ? stream : host_open(t->part, "wb");
    const int code = t->stream ? CODE_DONE : fail_write(t);
    if (code != CODE_DONE) {
        row_table_free(t);
        t = NULL;
    }
    *out_table = t;
    return code;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* Writes a cell, in quotes where it needs them (RFC 4180). */
static void put_cell(FILE *stream, const char *text)
{
    if (!text[strcspn(text, "\",\r\n")]) {
        (void)fputs(text, stream);
        return;
    }
    (void)fputc('"', stream);
    for (; *text; text++) {
        if (*text == '"') (void)fputc('"', stream);
        (void)fputc(*text, stream);
    }
    (void)fputc('"', stream);
}

static void put_number(FILE *stream, const clg_value *v, int64_t i)
{
    const void *data = clg_value_data(v);
    const double x = clg_value_get_double(v, i);
    switch (clg_value_dtype(v)) {
    case CLG_INT64: (void)fprintf(stream, "%" PRId64, ((const int64_t *)data)[i]); break;
    case CLG_UINT64: (void)fprintf(stream, "%" PRIu64, ((const uint64_t *)data)[i]); break;
    case CLG_FLOAT64: (void)fprintf(stream, isnan(x) ? "nan" : "%.17g", x); break;
    default: (void)fprintf(stream, isnan(x) ? "nan" : "%.9g", x);
    }
}

/* Returns how many columns there are beside those of every table. */
static size_t n_columns(const row_table *t)
{
    const size_t top = t->source.top;
    return top == 0 || t->n_elems < top ? t->n_elems : top;
}

static bool has_labels(const row_table *t) { return t->source.labels->count > 0; }

static void put_header(const row_table *t, const char *output)
{
    FILE *s = t->stream;
    (void)fputs(t->has_images ? "row,file" : "row", s);
    for (size_t i = 0; i < n_columns(t); i++) {
        char *name = t->n_elems == 1 ? must_copy(output) : must_printf("%s_%zu", output, i);
        (void)fputc(',', s);
        if (t->source.top == 0)
            put_cell(s, name);
        else
            (void)fprintf(s,
                          has_labels(t) ? "class_%zu,label_%zu,score_%zu" : "class_%zu,score_%zu",
                          i + 1, i + 1, i + 1);
        free(name);
    }
    (void)fputs(t->has_images ? ",error\n" : "\n", s);
}

static void put_class(const row_table *t, const ranked *r)
{
    (void)fprintf(t->stream, ",%" PRId64 ",", r->index);
    if (has_labels(t)) {
        put_cell(t->stream, label_at(t->source.labels, r->index));
        (void)fputc(',', t->stream);
    }
    (void)fprintf(t->stream, "%.9g", r->value);
}

/* problem: why the row has no results; NULL: it has. */
static void put_csv_row(const row_table *t, const clg_value *rows, size_t row, const char *problem)
{
    FILE *s = t->stream;
    const row_source *source = &t->source;
    const char *image = row_image(source->inputs, source->first_row + t->n_rows);
    size_t n = 0;
    (void)fprintf(s, "%" PRId64, source->first_row + t->n_rows);
    if (t->has_images) (void)fputc(',', s);
    if (image) put_cell(s, path_base(image));
    if (source->top > 0 && !problem) {
        ranked *list = rank_row(rows, row, &n);
        for (size_t i = 0; i < n_columns(t); i++) put_class(t, &list[i]);
        free(list);
    }
    for (size_t i = 0; i < t->n_elems && source->top == 0; i++) {
        (void)fputc(',', s);
        if (!problem) put_number(s, rows, (int64_t)(row * t->n_elems + i));
    }
    const size_t n_empty = source->top > 0 && problem ? n_columns(t) * (has_labels(t) ? 3 : 2) : 0;
    for (size_t i = 0; i < n_empty; i++) (void)fputc(',', s);
    if (t->has_images) (void)fputc(',', s);
    if (t->has_images && problem) put_cell(s, problem);
    (void)fputc('\n', s);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *number_json(const clg_value *v, int64_t i)
{
    const clg_dtype dtype = clg_value_dtype(v);
    if (dtype == CLG_INT64) return json_integer(((const int64_t *)clg_value_data(v))[i]);
    if (dtype == CLG_BOOL) return json_boolean(clg_value_get_double(v, i) != 0);
    if (dtype_is_integral(dtype) && dtype != CLG_UINT64)
        return json_integer((json_int_t)clg_value_get_double(v, i));
    return output_json_real(clg_value_get_double(v, i));
}

static json_t *results_json(const row_table *t, const clg_value *rows, size_t row)
{
    json_t *list = json_array();
    size_t n;
    if (t->source.top == 0) {
        for (size_t i = 0; i < t->n_elems; i++)
            (void)json_array_append_new(list, number_json(rows, (int64_t)(row * t->n_elems + i)));
        return list;
    }
    ranked *best = rank_row(rows, row, &n);
    for (size_t i = 0; i < n_columns(t); i++) {
        const char *label = label_at(t->source.labels, best[i].index);
        (void)json_array_append_new(
            list, json_pack("{s:I, s:o, s:o}", "index", (json_int_t)best[i].index, "label",
                            output_json_text(label), "value", output_json_real(best[i].value)));
    }
    free(best);
    return list;
}

static int put_json_row(const row_table *t, const clg_value *rows, size_t row, const char *problem)
{
    const row_source *source = &t->source;
    const char *image = row_image(source->inputs, source->first_row + t->n_rows);
    json_t *line = json_object();
    (void)json_object_set_new(line, "row", json_integer(source->first_row + t->n_rows));
    if (image) (void)json_object_set_new(line, "file", output_json_text(path_base(image)));
    if (problem) (void)json_object_set_new(line, "error", output_json_text(problem));
    if (!problem)
        (void)json_object_set_new(line, source->top > 0 ? "top" : "values",
                                  results_json(t, rows, row));
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(line);
    if (!text) return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "out of host memory for JSON");
    (void)fprintf(t->stream, "%s\n", text);
    free(text);
    return CODE_DONE;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Checks the shape of the rows before the first one, and writes the header. */
static int begin(row_table *t, const char *output, const clg_value *rows)
{
    char *why = NULL;
    const size_t rank = clg_value_rank(rows);
    const int64_t *dims = clg_value_dims(rows);
    size_t n_classes = 0;
    t->n_elems = 1;
    for (size_t d = 1; d < rank; d++) t->n_elems *= (size_t)dims[d];
    t->has_header = true;
    if (t->source.top > 0) {
        if (rank < 2) why = must_copy("it has one number for each row");
        if (!why) n_classes = score_classes(clg_value_dtype(rows), rank, dims, &why);
        int code = why ? fail_usage("--top: output '%s' is not scores of classes: %s",
                                    printable(output), why)
                       : labels_check(t->source.labels, output, n_classes);
        free(why);
        if (code != CODE_DONE) return code;
    }
    if (t->is_csv) put_header(t, output);
    return CODE_DONE;
}

int row_table_append(row_table *t, const char *output, const clg_value *rows)
{
    int code = t->has_header ? CODE_DONE : begin(t, output, rows);
    const size_t n = (size_t)clg_value_dims(rows)[0];
    for (size_t i = 0; i < n && code == CODE_DONE; i++, t->n_rows++) {
        const char *problem = row_problem(t->source.inputs, t->source.first_row + t->n_rows);
        if (t->is_csv)
            put_csv_row(t, rows, i, problem);
        else
            code = put_json_row(t, rows, i, problem);
    }
    return code == CODE_DONE && ferror(t->stream) ? fail_write(t) : code;
}

int row_table_commit(row_table *t)
{
    const bool is_written = fflush(t->stream) == 0 && !ferror(t->stream);
    const int code = is_written ? CODE_DONE : fail_write(t);
    if (!t->part) return code;
    const int closed = fclose(t->stream);
    t->stream = NULL;
    if (code != CODE_DONE) return code;
    const int failed = closed == 0 ? host_rename(t->part, t->path) : errno;
    if (failed != 0) {
        errno = failed;
        return fail_write(t);
    }
    free(t->part);
    t->part = NULL;
    return CODE_DONE;
}

void row_table_free(row_table *t)
{
    if (!t) return;
    if (t->stream && t->part) (void)fclose(t->stream);
    if (t->part) (void)host_remove(t->part);
    free(t->part);
    free(t->path);
    free(t);
}

int row_table_print(FILE *stream, const row_source *source, const char *output,
                    const clg_value *rows)
{
    row_table *t;
    if (clg_value_get_kind(rows) != CLG_VALUE_TENSOR || clg_value_rank(rows) == 0 ||
        !dtype_is_numeric(clg_value_dtype(rows)))
        return fail_usage("output '%s' is not a tensor of numbers whose first axis counts rows",
                          printable(output));
    int code = row_table_open("standard output.jsonl", stream, source, &t);
    if (code == CODE_DONE) code = row_table_append(t, output, rows);
    if (code == CODE_DONE) code = row_table_commit(t);
    row_table_free(t);
    return code;
}
