/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements scores.h.
 */
#include "scores.h"

#include "names.h"
#include "output.h"
#include "stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- labels ---------------------------------------------------------------------------------- */

int labels_read(const char *path, label_list *out_labels)
{
    char *text;
    *out_labels = (label_list){.path = path};
    if (!path) return CODE_DONE;
    int code = file_read_text(path, &text);
    if (code != CODE_DONE) return code;
    char *rest = text, *line;
    while ((line = split_next(&rest, '\n')) != NULL) {
        size_t n = strlen(line);
        if (n > 0 && line[n - 1] == '\r') line[n - 1] = '\0';
        if (!rest && line[0] == '\0') break; /* after the last line's end */
        out_labels->items =
            must_resize(out_labels->items, out_labels->count + 1, sizeof *out_labels->items);
        out_labels->items[out_labels->count++] = must_copy(line);
    }
    free(text);
    return CODE_DONE;
}

void labels_free(label_list *labels)
{
    for (size_t i = 0; i < labels->count; i++) free(labels->items[i]);
    free(labels->items);
    *labels = (label_list){0};
}

const char *label_at(const label_list *labels, int64_t i)
{
    return i >= 0 && (uint64_t)i < labels->count ? labels->items[i] : "";
}

int labels_check(const label_list *labels, const char *output, size_t n_classes)
{
    if (!labels->path || labels->count == n_classes) return CODE_DONE;
    (void)fail(CODE_USAGE, CLG_ERROR_SHAPE, "'%s' has %zu label%s, output '%s' has %zu class%s",
               labels->path, labels->count, labels->count == 1 ? "" : "s", printable(output),
               n_classes, n_classes == 1 ? "" : "es");
    if (labels->count + 1 == n_classes)
        fail_hint("some models have a class of background first: a line for it is missing then");
    if (labels->count == n_classes + 1)
        fail_hint("the first line may be a heading, or a class of background");
    return CODE_USAGE;
}

/* ---- scores ---------------------------------------------------------------------------------- */

size_t score_classes(clg_dtype dtype, size_t rank, const int64_t *dims, char **out_why)
{
    int64_t n_classes = rank == 1 ? dims[0] : 1;
    size_t n_axes = rank == 1 && dims[0] != 1;
    *out_why = NULL;
    for (size_t d = 1; d < rank; d++) {
        if (dims[d] == 1) continue;
        n_classes = dims[d];
        n_axes++;
    }
    if (!dtype_is_floating(dtype) && dtype != CLG_UINT8 && dtype != CLG_INT8) {
        *out_why = must_printf("its elements are %s", clg_dtype_name(dtype));
    } else if (n_axes == 0) {
        *out_why = must_printf("it has one number %s", rank < 2 ? "alone" : "for each row");
    } else if (n_axes > 1) {
        *out_why =
            must_printf("it has %s for each row, not one vector", dims_text(rank - 1, dims + 1));
    } else if (n_classes <= 0) {
        *out_why = must_printf("it is empty");
    }
    return *out_why ? 0 : (size_t)n_classes;
}

size_t score_search_add(score_search *search, const char *name, const clg_value *output)
{
    char *why = NULL;
    const clg_value_kind kind = clg_value_get_kind(output);
    size_t n_classes = 0;
    if (kind != CLG_VALUE_TENSOR)
        why = must_printf("it is a %s", value_kind_name(kind));
    else
        n_classes = score_classes(clg_value_dtype(output), clg_value_rank(output),
                                  clg_value_dims(output), &why);
    search->n_found += n_classes > 0;
    if (why && !search->problem)
        search->problem =
            must_printf("output '%s' is not scores of classes: %s", printable(name), why);
    free(why);
    return n_classes;
}

int score_search_end(score_search *search, int code)
{
    char *problem = search->problem;
    if (code == CODE_DONE && search->n_found == 0) {
        code = fail_usage("--top: %s", problem ? problem : "the model has no output");
        fail_hint("without --top, a summary of each output");
    } else if (code == CODE_DONE && problem) {
        output_note("%s", problem);
    }
    free(problem);
    search->problem = NULL;
    return code;
}

size_t score_rows(const clg_value *scores)
{
    return clg_value_rank(scores) < 2 ? 1 : (size_t)clg_value_dims(scores)[0];
}

static int largest_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

ranked *rank_row(const clg_value *scores, size_t row, size_t *out_n)
{
    const size_t n_rows = score_rows(scores);
    const size_t n = n_rows > 0 ? (size_t)clg_value_n_elements(scores) / n_rows : 0;
    ranked *list = must_alloc(n, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        const double x = clg_value_get_double(scores, (int64_t)(row * n + i));
        list[i] = (ranked){isnan(x) ? -INFINITY : x, (int64_t)i};
    }
    qsort(list, n, sizeof *list, largest_first);
    *out_n = n;
    return list;
}
