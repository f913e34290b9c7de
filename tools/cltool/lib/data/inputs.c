/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns options to inputs, and derives shapes. The size of a symbol (named free dimension) is
 * that of --dim, else that in the shapes of given inputs, else 1.
 */
#include "inputs.h"
#include "inputs_symbols.h"

#include "csv.h"
#include "dataset.h"
#include "idx.h"
#include "image.h"
#include "image_folder.h"
#include "names.h"
#include "output.h"
#include "presets.h"
#include "standard_streams.h"
#include "stats.h"
#include "suggestion.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

static int unknown_input(const input_set *set, const char *option, const char *name)
{
    char *names = inputs_names(set->model);
    int code = set->count == 0 ? fail_usage("%s: the model has no inputs", option)
                               : fail_usage("%s: the model has no input '%s'; its inputs are %s",
                                            option, printable(name), names);
    free(names);
    suggestion s;
    suggestion_begin(&s, name);
    suggestion_offer_inputs(&s, set->model);
    (void)suggestion_hint(&s);
    return code;
}

/* Returns the input of "NAME=REST" or, with a single input, "REST"; NULL, with a message, for wrong
 * usage. An input's name may contain '='. */
static input_item *find_item(input_set *set, const char *option, const char *text,
                             const char **out_rest)
{
    *out_rest = text;
    for (size_t i = 0; i < set->count; i++) {
        size_t n = strlen(set->items[i].port->name);
        if (strncmp(text, set->items[i].port->name, n) != 0 || text[n] != '=') continue;
        *out_rest = text + n + 1;
        return &set->items[i];
    }
    char *name;
    const char *rest;
    bool is_pair = option_pair(text, &name, &rest) && !path_exists(text);
    if (is_pair) (void)unknown_input(set, option, name);
    free(name);
    if (is_pair) return NULL;
    if (set->count == 1) return &set->items[0];
    if (set->count == 0) {
        (void)fail_usage("%s: the model has no inputs", option);
        return NULL;
    }
    char *names = inputs_names(set->model);
    (void)fail_usage("%s %s: which input? The model has %s", option, text, names);
    fail_hint("%s NAME=%s", option, text);
    free(names);
    return NULL;
}

static int check_first(const input_item *item)
{
    if (!item->from) return CODE_DONE;
    return fail_usage("input '%s' is given twice", printable(item->port->name));
}

/* ---- options to items ------------------------------------------------------------------------ */

static int read_shapes(const options *o, input_set *set)
{
    for (size_t i = 0; i < o->shapes.count; i++) {
        const char *text;
        input_item *item = find_item(set, "--shape", o->shapes.items[i], &text);
        if (!item) return CODE_USAGE;
        int code = option_dims("--shape", text, &item->rank, item->dims);
        if (code == CODE_DONE && item->has_dims)
            code = fail_usage("--shape: '%s' is given twice", printable(item->port->name));
        if (code == CODE_DONE) code = symbols_bind(set, item);
        if (code != CODE_DONE) return code;
        item->has_dims = true;
    }
    return CODE_DONE;
}

/* Sets the value of an input; takes ownership. */
static int give_value(const options *o, input_set *set, input_item *item, const char *from,
                      clg_value *value)
{
    size_t rank = clg_value_rank(value);
    const int64_t *dims = clg_value_dims(value);
    int code = check_first(item);
    if (code == CODE_DONE && item->has_dims &&
        (rank != item->rank || memcmp(dims, item->dims, rank * sizeof *dims) != 0)) {
        code = fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s': '%s' has shape %s, --shape says %s",
                    printable(item->port->name), from, dims_text(rank, dims),
                    dims_text(item->rank, item->dims));
    }
    if (code == CODE_DONE)
        code = value_fit_dtype(item->port, from, o->cast, path_ends_in(from, ".csv"), &value);
    if (code != CODE_DONE) {
        clg_value_free(value);
        return code;
    }
    item->from = from;
    item->value = value;
    item->rank = rank;
    memcpy(item->dims, clg_value_dims(value), rank * sizeof *item->dims);
    item->has_dims = true;
    return symbols_bind(set, item);
}

static input_item *item_named(input_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->items[i].port->name, name) == 0) return &set->items[i];
    }
    return NULL;
}

/* Checks the shape of an array that is not unpacked yet against the model and --shape: a small file
 * can hold an array of any size. */
static int check_header(const clg_npz_reader *reader, size_t i, const input_item *item,
                        const char *path)
{
    const clg_port *port = item->port;
    clg_dtype dtype;
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
    clg_status status = clg_npz_reader_header(reader, i, &dtype, &rank, dims);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "'%s'", path);
    bool fits = port->rank < 0 || (size_t)port->rank == rank;
    for (int d = 0; fits && d < port->rank; d++)
        fits = port->dims[d] < 0 || dims[d] == port->dims[d];
    const bool fits_given = !item->has_dims || (rank == item->rank &&
                                                memcmp(dims, item->dims, rank * sizeof *dims) == 0);
    if (fits && fits_given) return CODE_DONE;
    return fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s': array '%s' of '%s' has shape %s, %s %s",
                printable(port->name), printable(clg_npz_reader_name(reader, i)), path,
                dims_text(rank, dims), fits ? "--shape says" : "the model takes",
                fits ? dims_text(item->rank, item->dims)
                     : dims_text((size_t)port->rank, port->dims));
}

static int take_array(const options *o, input_set *set, input_item *item,
                      const clg_npz_reader *reader, size_t i, const char *path)
{
    clg_value *value;
    int code = check_first(item);
    if (code == CODE_DONE) code = check_header(reader, i, item, path);
    if (code != CODE_DONE) return code;
    clg_status status = clg_npz_reader_read(reader, i, &value);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, "'%s'", path);
    return give_value(o, set, item, path, value);
}

/* Reads an .npz: each array is the input of its name; item, when not NULL, gets the array of its
 * name or the only one. Arrays that no input takes are not unpacked. */
static int read_npz(const options *o, input_set *set, input_item *item, const char *path)
{
    clg_npz_reader *reader;
    clg_status status = clg_npz_reader_open(path, &reader);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    const size_t n = clg_npz_reader_n_arrays(reader);
    if (!item && set->count == 1 && n == 1) item = &set->items[0];
    size_t n_taken = 0;
    int code = CODE_DONE;
    for (size_t i = 0; i < n && code == CODE_DONE; i++) {
        const char *name = clg_npz_reader_name(reader, i);
        input_item *to = item ? item : item_named(set, name);
        if (item && n > 1 && strcmp(name, item->port->name) != 0) continue;
        code = to ? take_array(o, set, to, reader, i, path) : unknown_input(set, path, name);
        n_taken++;
    }
    if (code == CODE_DONE && item && n_taken == 0) {
        code = fail_usage("'%s' holds %zu arrays, none of them is called '%s'", path, n,
                          printable(item->port->name));
    }
    clg_npz_reader_free(reader);
    return code;
}

/* Reads a CSV table: its columns together are the selected input, or each column is the input of
 * its name. */
static int read_csv(const options *o, input_set *set, input_item *item, const char *path)
{
    csv_table table;
    clg_value *value;
    csv_header header;
    int code = csv_header_option(o->header, &header);
    if (code == CODE_DONE) code = csv_load(path, header, &table);
    if (code != CODE_DONE) return code;
    if (!item) code = csv_check_names(path, table.has_header);
    size_t step = item ? table.n_columns : 1;
    for (size_t i = 0; i < table.n_columns && code == CODE_DONE; i += step) {
        input_item *to = item ? item : item_named(set, table.names[i]);
        if (!to) {
            code = unknown_input(set, path, table.names[i]);
            break;
        }
        code = csv_value(&table, i, step, to->port, path, &value);
        if (code == CODE_DONE) code = give_value(o, set, to, path, value);
    }
    csv_free(&table);
    return code;
}

/* ---- datasets -------------------------------------------------------------------------------- */

/* Returns the input whose first axis is the batch: the first one where it is free, else the first
 * with axes. */
static const clg_port *batch_port(const input_set *set)
{
    const clg_port *fixed = NULL;
    for (size_t i = 0; i < set->count; i++) {
        const clg_port *port = set->items[i].port;
        if (port->kind != CLG_VALUE_TENSOR) continue;
        if (port->rank < 0 || (port->rank > 0 && port->dims[0] < 0)) return port;
        if (!fixed && port->rank > 0) fixed = port;
    }
    return fixed;
}

/* Returns whether the input is read by rows: for INPUTS_STREAM, if its first axis has the name or
 * the fixed size of the batch. */
static bool is_streamed(const input_set *set, const clg_port *port)
{
    const clg_port *first = batch_port(set);
    if (set->need != INPUTS_STREAM || port->kind != CLG_VALUE_TENSOR || port->rank == 0)
        return false;
    if (port->rank < 0 || first->rank < 0) return true;
    return port->dims[0] < 0
               ? first->dims[0] < 0 && strcmp(port->dim_names[0], first->dim_names[0]) == 0
               : port->dims[0] == first->dims[0];
}

/* Sets the dataset of an input; takes ownership. */
static int give_rows(input_set *set, input_item *item, const char *from, dataset *rows)
{
    size_t rank = dataset_rank(rows);
    const int64_t *dims = dataset_dims(rows);
    bool fits = !item->has_dims || rank == item->rank;
    for (size_t d = 1; fits && item->has_dims && d < rank; d++) fits = dims[d] == item->dims[d];
    int code = check_first(item);
    if (code == CODE_DONE && !fits) {
        code = fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s': '%s' has shape %s, --shape says %s",
                    printable(item->port->name), from, dims_text(rank, dims),
                    dims_text(item->rank, item->dims));
    }
    if (code != CODE_DONE) {
        dataset_free(rows);
        return code;
    }
    item->from = from;
    item->rows = rows;
    item->rank = rank;
    memcpy(item->dims, dims, rank * sizeof *dims);
    item->dims[0] = -1; /* the batch, not determined yet */
    item->has_dims = true;
    return symbols_bind(set, item);
}

/* Opens a table, each column of which is the input of its name. */
static int open_columns(const options *o, input_set *set, const char *path)
{
    csv_reader names = {0};
    csv_header header;
    int code = csv_header_option(o->header, &header);
    if (code == CODE_DONE) code = csv_open(path, header, true, &names);
    if (code == CODE_DONE) code = csv_check_names(path, names.has_header);
    for (size_t i = 0; code == CODE_DONE && i < names.n_columns; i++) {
        dataset *rows = NULL;
        input_item *to = item_named(set, names.names[i]);
        if (!to) {
            code = unknown_input(set, path, names.names[i]);
            break;
        }
        code = dataset_open_csv(o, to->port, path, i, 1, false, &rows);
        if (code == CODE_DONE) code = give_rows(set, to, path, rows);
    }
    csv_close(&names);
    return code;
}

static int open_folder(input_item *item, const char *path)
{
    int code = item->n_images == 0 ? check_first(item) : CODE_DONE;
    if (code == CODE_DONE && item->n_images > 0)
        code = fail_usage("input '%s' is given twice", printable(item->port->name));
    if (code != CODE_DONE) return code;
    item->folder = must_alloc(1, sizeof *item->folder);
    code = image_folder_list(path, item->folder);
    item->images = item->folder->files;
    item->n_images = item->folder->n_files;
    item->from = path;
    return code;
}

/* Returns whether a folder of images gives the input their classes: it cannot take images. */
static bool takes_classes(const clg_port *port)
{
    return port->rank == 1 && dtype_is_integral(port->dtype);
}

static int open_rows(const options *o, input_set *set, input_item *item, const char *path)
{
    dataset *rows = NULL;
    int code;
    const bool is_folder = path_is_folder(path);
    if (is_folder && !takes_classes(item->port)) return open_folder(item, path);
    if (is_folder) {
        code = dataset_open_classes(o, item->port, path, &rows);
    } else if (path_ends_in(path, ".npy")) {
        code = dataset_open_npy(o, item->port, path, &rows);
    } else if (path_ends_in(path, ".csv")) {
        code = dataset_open_csv(o, item->port, path, 0, 0, true, &rows);
    } else if (idx_is_name(path)) {
        code = dataset_open_idx(o, item->port, path, &rows);
    } else {
        return fail_usage("input '%s': rows are read from .npy, .csv, IDX files or a folder of "
                          "images, not from '%s'",
                          printable(item->port->name), path);
    }
    return code == CODE_DONE ? give_rows(set, item, path, rows) : code;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Reads an input that is not a tensor, which is neither cast nor shaped. */
static int read_kind(input_item *item, const char *path)
{
    int code = check_first(item);
    if (code != CODE_DONE) return code;
    clg_status status = clg_value_load_kind(path, item->port->kind, &item->value);
    item->from = path;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

static int read_file(const options *o, input_set *set, const char *text)
{
    clg_value *value;
    int code = is_standard(text) ? standard_input(&text) : CODE_DONE;
    if (code != CODE_DONE) return code;
    const char *path = text;
    bool is_whole_set = (path_ends_in(text, ".npz") || path_ends_in(text, ".csv")) &&
                        set->count != 1 && path_exists(text);
    input_item *item = is_whole_set ? NULL : find_item(set, "-i", text, &path);
    if (!is_whole_set && !item) return CODE_USAGE;
    if (is_standard(path)) code = standard_input(&path);
    if (code != CODE_DONE) return code;
    const bool is_npz = path_ends_in(path, ".npz"), is_csv = path_ends_in(path, ".csv");
    if (!item && set->need == INPUTS_STREAM && is_csv) return open_columns(o, set, path);
    if (!item) return is_npz ? read_npz(o, set, NULL, path) : read_csv(o, set, NULL, path);
    if (is_streamed(set, item->port)) return open_rows(o, set, item, path);
    if (is_npz) return read_npz(o, set, item, path);
    if (is_csv) return read_csv(o, set, item, path);
    if (item->port->kind != CLG_VALUE_TENSOR) return read_kind(item, path);
    if (idx_is_name(path)) {
        (void)fail_usage("input '%s': '%s' is read by rows, which this input does not have here",
                         printable(item->port->name), path);
        fail_hint("'cltool predict' and 'cltool train' read IDX files");
        return CODE_USAGE;
    }
    code = value_load(path, &value);
    return code == CODE_DONE ? give_value(o, set, item, path, value) : code;
}

static int read_given(const options *o, input_set *set)
{
    csv_header header; /* checked also where no table is read */
    int code = csv_header_option(o->header, &header);
    for (size_t i = 0; i < o->inputs.count && code == CODE_DONE; i++) {
        code = read_file(o, set, o->inputs.items[i]);
    }
    for (size_t i = 0; i < o->images.count && code == CODE_DONE; i++) {
        const char *file;
        input_item *item = find_item(set, "--image", o->images.items[i], &file);
        if (!item) return CODE_USAGE;
        if (item->n_images == 0 || item->folder) code = check_first(item);
        item->from = file;
        item->images = must_resize(item->images, item->n_images + 1, sizeof *item->images);
        item->images[item->n_images++] = file;
    }
    return code;
}

/* Parses --fill: "NAME=KIND", or "KIND" for all remaining inputs, returned in *out_rest_kind. */
static int read_fills(const options *o, input_set *set, const char **out_rest_kind)
{
    *out_rest_kind = NULL;
    for (size_t i = 0; i < o->fills.count; i++) {
        const char *kind = o->fills.items[i];
        bool for_all = !strchr(kind, '=');
        input_item *item = for_all ? NULL : find_item(set, "--fill", kind, &kind);
        if (!for_all && !item) return CODE_USAGE;
        int code = value_check_fill(kind);
        if (code == CODE_DONE && item) code = check_first(item);
        if (code != CODE_DONE) return code;
        if (item) {
            item->from = item->fill = kind;
        } else {
            *out_rest_kind = kind;
        }
    }
    return CODE_DONE;
}

/* ---- remaining inputs ------------------------------------------------------------------------ */

/* Sets the dims of an item to the declared shape with the sizes of symbols; free dimensions are -1.
 */
static int declared_dims(const input_set *set, input_item *item)
{
    const clg_port *port = item->port;
    if (item->has_dims) return CODE_DONE;
    if (port->rank < 0) {
        (void)fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s' has no declared shape",
                   printable(port->name));
        fail_hint("--shape %s=AxBxC says it", printable(port->name));
        return CODE_USAGE;
    }
    item->rank = (size_t)port->rank;
    for (int d = 0; d < port->rank; d++) {
        const input_symbol *symbol =
            symbols_is_free(port, d) ? symbols_find(set, port->dim_names[d]) : NULL;
        item->dims[d] = symbol ? symbol->size : port->dims[d] < 0 ? -1 : port->dims[d];
    }
    return CODE_DONE;
}

static bool is_batch(const input_set *set, const char *symbol)
{
    for (size_t i = 0; i < set->count; i++) {
        if (symbols_is_free(set->items[i].port, 0)) {
            return strcmp(set->items[i].port->dim_names[0], symbol) == 0;
        }
    }
    return false;
}

/* Sets undecided symbols to 1. --batch decides the batch later. */
static void settle_symbols(const options *o, input_need need, input_set *set)
{
    for (size_t i = 0; i < set->n_symbols; i++) {
        if (set->symbols[i].size >= 0) continue;
        set->symbols[i].size = 1;
        bool is_open = o->batch || need == INPUTS_STREAM;
        if (need == INPUTS_LOOK || (is_open && is_batch(set, set->symbols[i].name))) continue;
        output_note("dimension '%s' is 1 (--dim %s=N for another size)",
                    printable(set->symbols[i].name), printable(set->symbols[i].name));
    }
}

static void settle_dims(input_item *item)
{
    bool is_free = false;
    for (size_t d = 0; d < item->rank; d++) {
        if (item->dims[d] >= 0) continue;
        item->dims[d] = 1;
        is_free = true;
    }
    if (is_free) {
        output_note("input '%s': free dimensions are 1, its shape is %s (--shape for another)",
                    printable(item->port->name), dims_text(item->rank, item->dims));
    }
    item->has_dims = true;
}

static int load_images(const options *o, input_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        input_item *item = &set->items[i];
        if (item->n_images == 0) continue;
        int code = declared_dims(set, item);
        if (code != CODE_DONE) return code;
        if (is_streamed(set, item->port)) {
            dataset *rows = NULL;
            /* with three axes, a first axis of at most 4 is that of channels */
            if (item->rank == 4 || item->dims[0] > 4) item->dims[0] = -1;
            code = dataset_open_images(o, item, &rows);
            const char *from = item->folder ? item->from : item->images[0];
            item->from = NULL; /* otherwise give_rows would report an input that is given twice */
            if (code == CODE_DONE) code = give_rows(set, item, from, rows);
        } else {
            code = image_load(o, item);
            item->has_dims = true;
            if (code == CODE_DONE) code = symbols_bind(set, item);
        }
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

static int missing_input(const input_item *item)
{
    const char *name = printable(item->port->name);
    (void)fail(CODE_USAGE, CLG_ERROR_NOT_FOUND, "input '%s' is not given", name);
    if (item->port->kind == CLG_VALUE_TENSOR)
        fail_hint("-i '%s=FILE.npy', --image '%s=FILE.png' or --fill '%s=random:0'", name, name,
                  name);
    else
        fail_hint("-i '%s=FILE.pb'", name);
    return CODE_USAGE;
}

static int fill_rest(input_set *set, input_need need, const char *rest_kind)
{
    for (size_t i = 0; i < set->count; i++) {
        input_item *item = &set->items[i];
        if (item->value || item->rows) continue;
        if (!item->fill && rest_kind) item->fill = rest_kind;
        bool is_required = need == INPUTS_REQUIRED || need == INPUTS_STREAM;
        if (!item->fill && is_required) return missing_input(item);
        bool has_shape = item->has_dims || item->port->rank >= 0;
        bool is_tensor = item->port->kind == CLG_VALUE_TENSOR;
        if (!has_shape && !item->fill &&
            (need == INPUTS_LOOK || (!is_tensor && need == INPUTS_SHAPES)))
            continue;
        if (!is_tensor) return missing_input(item);
        int code = declared_dims(set, item);
        if (code != CODE_DONE) return code;
        if (is_streamed(set, item->port) && item->rank > 0) item->dims[0] = 1;
        settle_dims(item);
        if (!item->fill && need == INPUTS_FILL) {
            item->fill = "random:0";
            output_note("input '%s' is filled with %s", printable(item->port->name), item->fill);
        }
        if (item->fill && need != INPUTS_SHAPES && need != INPUTS_LOOK) {
            code = value_fill(item->fill, i, item->port, item->rank, item->dims, &item->value);
        }
        if (code != CODE_DONE) return code;
        item->from = item->fill;
        if (is_streamed(set, item->port)) {
            item->rows = dataset_repeat(item->port, item->value);
            clg_value_free(item->value);
            item->value = NULL;
        }
    }
    return CODE_DONE;
}

int inputs_gather(const options *given, const clg_model *model, input_need need, input_set *out_set)
{
    options with_preset;
    const options *o = &with_preset;
    size_t n = clg_model_n_inputs(model);
    *out_set = (input_set){
        .model = model, .need = need, .items = must_alloc(n, sizeof(input_item)), .count = n};
    for (size_t i = 0; i < n; i++) out_set->items[i].port = clg_model_input(model, i);
    symbols_collect(out_set);
    const char *rest_kind = NULL;
    int code = preset_apply(given, &with_preset);
    if (code == CODE_DONE) code = symbols_read(o, out_set);
    if (code == CODE_DONE) code = read_shapes(o, out_set);
    if (code == CODE_DONE) code = read_given(o, out_set);
    if (code == CODE_DONE) code = read_fills(o, out_set, &rest_kind);
    if (code == CODE_DONE) code = load_images(o, out_set);
    if (code == CODE_DONE) {
        bool is_open = (need != INPUTS_REQUIRED && need != INPUTS_STREAM) || rest_kind;
        for (size_t i = 0; i < n && !is_open; i++) is_open = out_set->items[i].fill != NULL;
        if (is_open) settle_symbols(o, need, out_set);
        code = fill_rest(out_set, need, rest_kind);
    }
    if (code != CODE_DONE) inputs_free(out_set);
    return code;
}

void inputs_free(input_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        input_item *item = &set->items[i];
        clg_value_free(item->value);
        dataset_free(item->rows);
        if (item->folder) image_folder_free(item->folder);
        if (!item->folder) free(item->images);
        free(item->folder);
        free(item->places);
    }
    free(set->items);
    free(set->symbols);
    *set = (input_set){0};
}
