/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements datasets from .npy, .csv and IDX files, images, and one repeated row. Each kind reads
 * rows in the dtype of its source; if the input's dtype differs, they are cast to it.
 */
#include "dataset.h"

#include "csv.h"
#include "host.h"
#include "idx.h"
#include "image.h"
#include "image_folder.h"
#include "names.h"
#include "output.h"
#include "stats.h"
#include "values.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DECODERS 16

struct dataset {
    const clg_port *port;
    const char *from; /* borrowed */
    int64_t n_rows;
    clg_dtype dtype; /* of the source */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
    bool allow_cast;
    int (*read)(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes);

    clg_npy_reader *npy;
    idx_reader idx;
    unsigned char *bytes; /* of one row, of images in IDX files */
    dataset_image image;  /* black is NULL where rows are not images */
    csv_reader csv;
    size_t first_column, n_columns;
    double *cells;    /* of one line */
    input_item item;  /* images */
    image_recipe how; /* for images */
    /* Decodes images as float32; rows NULL: `first` and those that follow. */
    int (*decode)(dataset *d, const int64_t *rows, int64_t first, size_t n, float *to);
    char **problems;  /* for each image, why it could not be loaded; NULL if it was */
    int64_t *classes; /* of images, for the rows of a target */
    clg_value *row;   /* to be repeated */
};

static dataset *make(const options *o, const clg_port *port, const char *from)
{
    dataset *d = must_alloc(1, sizeof *d);
    d->port = port;
    d->from = from;
    d->n_rows = -1;
    d->allow_cast = o && o->cast;
    return d;
}

/* Returns `code`, and d in *out_dataset; if the code is an error, frees d and returns NULL in its
 * place. */
static int give(int code, dataset *d, dataset **out_dataset)
{
    if (code != CODE_DONE) {
        dataset_free(d);
        d = NULL;
    }
    *out_dataset = d;
    return code;
}

void dataset_free(dataset *d)
{
    if (!d) return;
    clg_npy_reader_free(d->npy);
    idx_close(&d->idx);
    free(d->bytes);
    free(d->image.black);
    free(d->classes);
    csv_close(&d->csv);
    clg_value_free(d->row);
    for (size_t i = 0; d->problems && i < d->item.n_images; i++) free(d->problems[i]);
    free(d->problems);
    free(d->cells);
    free(d);
}

bool dataset_may_fail(const dataset *d) { return d->problems != NULL; }

const char *dataset_problem(const dataset *d, int64_t row)
{
    return d->problems ? d->problems[row] : NULL;
}

int64_t dataset_rows(const dataset *d) { return d->n_rows; }

size_t dataset_rank(const dataset *d) { return d->rank; }

const int64_t *dataset_dims(const dataset *d) { return d->dims; }

/* ---- dtypes ---------------------------------------------------------------------------------- */

static bool is_cast(const dataset *d)
{
    return d->port->dtype != CLG_DTYPE_NONE && d->dtype != d->port->dtype;
}

static int make_rows(const dataset *d, clg_dtype dtype, size_t n, clg_value **out_value)
{
    int64_t dims[CLG_MAX_RANK];
    memcpy(dims, d->dims, sizeof dims);
    dims[0] = (int64_t)n;
    clg_status status = clg_value_create(dtype, d->rank, dims, out_value);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, "'%s'", d->from);
}

/* Casts a value of zero rows, which reports a dtype that cannot be cast, and prints the note about
 * a cast. */
static int check_dtype(const dataset *d, bool quiet)
{
    clg_value *none;
    if (!is_cast(d)) return CODE_DONE;
    int code = make_rows(d, d->dtype, 0, &none);
    if (code != CODE_DONE) return code;
    code = value_fit_dtype(d->port, d->from, d->allow_cast, quiet, &none);
    clg_value_free(none);
    return code;
}

static int read_cast(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    clg_value *rows;
    int code = make_rows(d, d->dtype, n, &rows);
    if (code != CODE_DONE) return code;
    code = d->read(d, first, n, clg_value_data(rows), clg_value_size_bytes(rows));
    if (code == CODE_DONE) code = value_fit_dtype(d->port, d->from, d->allow_cast, true, &rows);
    if (code == CODE_DONE) {
        clg_status status = clg_value_read(rows, to, size_bytes);
        if (status != CLG_OK) code = fail_status(status, STAGE_INPUT, "'%s'", d->from);
    }
    clg_value_free(rows);
    return code;
}

int dataset_read(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    return is_cast(d) ? read_cast(d, first, n, to, size_bytes)
                      : d->read(d, first, n, to, size_bytes);
}

/* ---- images in general ----------------------------------------------------------------------- */

const dataset_image *dataset_image_of(const dataset *d)
{
    return d->image.black ? &d->image : NULL;
}

/* Makes the element that a black pixel has in each channel. */
static int make_black(const image_recipe *how, bool has_pixels, dataset *d)
{
    const int64_t n = (int64_t)d->image.channels;
    const size_t size_bytes = d->image.channels * clg_dtype_size(d->port->dtype);
    clg_value *floats, *cast = NULL;
    clg_status status = clg_value_create(CLG_FLOAT32, 1, &n, &floats);
    if (status != CLG_OK) return fail_status(status, STAGE_INPUT, "'%s'", d->from);
    float *black = clg_value_data(floats);
    for (size_t c = 0; c < d->image.channels; c++)
        black[c] = has_pixels ? (float)(-how->mean[c] / how->std[c]) : 0.0f;
    d->image.black = must_alloc(size_bytes, 1);
    status = clg_value_cast(floats, d->port->dtype, &cast, NULL);
    if (status == CLG_OK) status = clg_value_read(cast, d->image.black, size_bytes);
    clg_value_free(cast);
    clg_value_free(floats);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, "'%s'", d->from);
}

/* Sets the shape of images from the axes of the rows. has_pixels: the recipe converted them. */
static int set_image(const image_recipe *how, bool has_pixels, dataset *d)
{
    if (how->height_axis < 1 || d->port->dtype == CLG_DTYPE_NONE) return CODE_DONE;
    d->image.height = (size_t)d->dims[how->height_axis];
    d->image.width = (size_t)d->dims[how->height_axis + 1];
    d->image.channels = how->channel_axis < 0 ? 1 : (size_t)d->dims[how->channel_axis];
    d->image.is_nchw = how->is_nchw;
    const bool is_empty = d->image.height == 0 || d->image.width == 0 || d->image.channels == 0;
    return is_empty ? CODE_DONE : make_black(how, has_pixels, d);
}

/* Sets the shape of images in arrays of numbers, where their axes can be those of images. */
static int find_image(const options *o, dataset *d)
{
    image_recipe how;
    if (!o || d->rank < 3 || d->rank > 4 || !dtype_is_numeric(d->port->dtype)) return CODE_DONE;
    const int code = image_axes(o, d->port, d->rank, d->dims, &how);
    return code == CODE_DONE ? set_image(&how, false, d) : code;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/* Decodes the rows that d->decode takes, and casts them without a note where the input is not
 * float32. */
static int decode_rows(dataset *d, const int64_t *rows, int64_t first, size_t n, void *to,
                       size_t size_bytes)
{
    clg_value *floats, *cast = NULL;
    if (d->dtype == CLG_FLOAT32) return d->decode(d, rows, first, n, to);
    int code = make_rows(d, CLG_FLOAT32, n, &floats);
    if (code != CODE_DONE) return code;
    code = d->decode(d, rows, first, n, clg_value_data(floats));
    if (code == CODE_DONE) {
        clg_status status = clg_value_cast(floats, d->port->dtype, &cast, NULL);
        if (status == CLG_OK) status = clg_value_read(cast, to, size_bytes);
        if (status != CLG_OK)
            code = fail_status(status, STAGE_INPUT, "input '%s'", printable(d->port->name));
    }
    clg_value_free(cast);
    clg_value_free(floats);
    return code;
}

static int read_pixels(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    return decode_rows(d, NULL, first, n, to, size_bytes);
}

/* ---- .npy ------------------------------------------------------------------------------------ */

static int read_npy(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    clg_status status = clg_npy_reader_read(d->npy, first, n, to, size_bytes);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

int dataset_open_npy(const options *o, const clg_port *port, const char *path,
                     dataset **out_dataset)
{
    dataset *d = make(o, port, path);
    clg_status status = clg_npy_reader_open(path, &d->npy);
    int code = status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
    if (code == CODE_DONE) {
        d->read = read_npy;
        d->dtype = clg_npy_reader_dtype(d->npy);
        d->rank = clg_npy_reader_rank(d->npy);
        memcpy(d->dims, clg_npy_reader_dims(d->npy), sizeof d->dims);
        d->n_rows = d->dims[0];
        code = check_dtype(d, false);
        if (code == CODE_DONE) code = find_image(o, d);
    }
    return give(code, d, out_dataset);
}

/* ---- .csv ------------------------------------------------------------------------------------ */

static int read_csv(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    double *numbers = to;
    (void)size_bytes;
    int code = d->csv.next_row == first ? CODE_DONE : csv_seek(&d->csv, first);
    for (size_t i = 0; i < n && code == CODE_DONE; i++, numbers += d->n_columns) {
        bool is_row;
        code = csv_next(&d->csv, d->cells, &is_row);
        if (code == CODE_DONE && !is_row)
            code = fail_file("'%s' has become shorter while it was read", d->from);
        if (code == CODE_DONE)
            memcpy(numbers, d->cells + d->first_column, d->n_columns * sizeof *numbers);
    }
    return code;
}

int dataset_open_csv(const options *o, const clg_port *port, const char *path, size_t first,
                     size_t n, bool says_header, dataset **out_dataset)
{
    dataset *d = make(o, port, path);
    csv_header header;
    int code = csv_header_option(o->header, &header);
    if (code == CODE_DONE) code = csv_open(path, header, says_header, &d->csv);
    if (code == CODE_DONE) code = csv_count(&d->csv, &d->n_rows);
    if (code == CODE_DONE) {
        d->read = read_csv;
        d->dtype = CLG_FLOAT64;
        d->first_column = first;
        d->n_columns = n > 0 ? n : d->csv.n_columns;
        d->cells = must_alloc(d->csv.n_columns, sizeof *d->cells);
        csv_shape(d->n_rows, d->n_columns, port, &d->rank, d->dims);
        code = check_dtype(d, true);
    }
    return give(code, d, out_dataset);
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static int read_idx(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    (void)size_bytes;
    return idx_read(&d->idx, first, n, to);
}

static int decode_idx(dataset *d, const int64_t *rows, int64_t first, size_t n, float *to)
{
    const size_t n_elems = d->idx.row_elems;
    int code = CODE_DONE;
    for (size_t i = 0; i < n && code == CODE_DONE; i++, to += n_elems) {
        code = idx_read(&d->idx, rows ? rows[i] : first + (int64_t)i, 1, d->bytes);
        if (code == CODE_DONE && n_elems > 0) image_bytes(&d->how, d->bytes, n_elems, to);
    }
    return code;
}

/* Sets the shape of the rows: that of the file; the input's, if it has another rank and as many
 * elements; or gray images of an input of four axes. */
static void set_idx_shape(dataset *d, const idx_reader *idx)
{
    const clg_port *port = d->port;
    const int64_t *dims = idx->dims;
    uint64_t n = 1;
    d->n_rows = dims[0];
    d->rank = idx->rank;
    memcpy(d->dims, dims, sizeof d->dims);
    if (port->rank < 1 || (size_t)port->rank == d->rank) return;
    for (int k = 1; k < port->rank && n <= idx->row_elems; k++)
        n = port->dims[k] < 0 ? UINT64_MAX : n * (uint64_t)port->dims[k];
    if (n == idx->row_elems) {
        d->rank = (size_t)port->rank;
        memcpy(d->dims + 1, port->dims + 1, (d->rank - 1) * sizeof *d->dims);
    } else if (port->rank == 4 && d->rank == 3) {
        const bool is_last = port->dims[3] == 1 && port->dims[1] != 1;
        d->rank = 4;
        d->dims[1] = is_last ? dims[1] : 1;
        d->dims[2] = is_last ? dims[2] : dims[1];
        d->dims[3] = is_last ? 1 : dims[2];
    }
}

/* Refuses rows that the input does not take. */
static int accept_idx(void *user, const idx_reader *idx)
{
    dataset *d = user;
    const clg_port *port = d->port;
    set_idx_shape(d, idx);
    bool fits = port->rank < 0 || (size_t)port->rank == d->rank;
    for (int k = 1; fits && k < port->rank; k++)
        fits = port->dims[k] < 0 || port->dims[k] == d->dims[k];
    if (fits) return CODE_DONE;
    return fail(CODE_USAGE, CLG_ERROR_SHAPE, "input '%s' takes %s, '%s' has shape %s",
                printable(port->name), dims_text((size_t)port->rank, port->dims), d->from,
                dims_text(idx->rank, idx->dims));
}

/* Sets the shape of images: the input's axes, or the file's where the input has one for a row. */
static int set_idx_image(dataset *d)
{
    image_recipe how = d->how;
    if (d->rank == 2 && d->idx.rank != 3) return CODE_DONE; /* channels first or last? */
    const int code = set_image(&how, true, d);
    if (code != CODE_DONE || d->rank != 2 || d->idx.row_elems == 0) return code;
    d->image = (dataset_image){1, (size_t)d->idx.dims[1], (size_t)d->idx.dims[2], true, NULL};
    return make_black(&how, true, d);
}

int dataset_open_idx(const options *o, const clg_port *port, const char *path,
                     dataset **out_dataset)
{
    dataset *d = make(o, port, path);
    int code = idx_open(path, accept_idx, d, &d->idx);
    if (code != CODE_DONE) return give(code, d, out_dataset);
    if (d->idx.dtype == CLG_UINT8 && d->idx.rank >= 3) {
        code = image_bytes_begin(o, port, d->rank, d->dims, &d->how);
        d->dtype = port->dtype;
        d->decode = decode_idx;
        d->read = read_pixels;
        d->bytes = must_alloc(d->idx.row_elems, 1);
        if (code == CODE_DONE) code = set_idx_image(d);
    } else {
        d->dtype = d->idx.dtype;
        d->read = read_idx;
        code = check_dtype(d, false);
        if (code == CODE_DONE) code = find_image(o, d);
    }
    return give(code, d, out_dataset);
}

/* ---- images ---------------------------------------------------------------------------------- */

/* The part of a batch's images that one thread decodes. */
typedef struct decoding {
    const dataset *dataset;
    const int64_t *rows; /* NULL: first and those that follow */
    size_t first, n;     /* first: of `rows`, where that is not NULL */
    float *to;
    pthread_t thread;
    bool is_started;
} decoding;

/* Loads one image. One that cannot be loaded becomes zeros, and is not tried again. */
static void decode_row(const dataset *d, size_t row, float *to, size_t n_elems)
{
    failure_record why;
    if (!d->problems[row] && image_row(&d->how, &d->item, row, to, NULL) == CODE_DONE) return;
    memset(to, 0, n_elems * sizeof *to);
    if (d->problems[row]) return;
    failure_take(&why);
    d->problems[row] = must_printf("%s%s%s%s", why.text, why.hint[0] ? " (" : "", why.hint,
                                   why.hint[0] ? ")" : "");
}

static void *decode(void *argument)
{
    const decoding *part = argument;
    const size_t n_elems = image_row_elems(&part->dataset->how, &part->dataset->item);
    for (size_t i = 0; i < part->n; i++) {
        const size_t at = part->first + i, row = part->rows ? (size_t)part->rows[at] : at;
        decode_row(part->dataset, row, part->to + i * n_elems, n_elems);
    }
    return NULL;
}

static size_t count_decoders(size_t n)
{
    const size_t n_cpus = host_n_processors(), max = n_cpus > MAX_DECODERS ? MAX_DECODERS : n_cpus;
    return n < max ? n : max;
}

/* Decodes images on up to MAX_DECODERS threads: decoding takes longer than most predictions. */
static void decode_all(const dataset *d, const int64_t *rows, size_t first, size_t n, float *to)
{
    const size_t n_parts = count_decoders(n), n_elems = image_row_elems(&d->how, &d->item);
    size_t n_before = 0;
    decoding *parts = must_alloc(n_parts, sizeof *parts);
    for (size_t i = 0; i < n_parts; i++) {
        decoding *part = &parts[i];
        part->dataset = d;
        part->rows = rows;
        part->first = first + n_before;
        part->n = n / n_parts + (i < n % n_parts);
        part->to = to + n_before * n_elems;
        n_before += part->n;
        part->is_started =
            i + 1 < n_parts && pthread_create(&part->thread, NULL, decode, part) == 0;
        if (!part->is_started) (void)decode(part);
    }
    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i].is_started) (void)pthread_join(parts[i].thread, NULL);
    }
    free(parts);
}

static int decode_images(dataset *d, const int64_t *rows, int64_t first, size_t n, float *to)
{
    decode_all(d, rows, (size_t)first, n, to);
    return CODE_DONE;
}

int dataset_open_images(const options *o, input_item *item, dataset **out_dataset)
{
    dataset *d = make(o, item->port, item->from);
    int code = image_begin(o, item, true, &d->how);
    if (code == CODE_DONE && d->how.batch_axis != 0) {
        code = fail(CODE_USAGE, CLG_ERROR_SHAPE,
                    "input '%s' takes one image a run: it has no rows to stream",
                    printable(item->port->name));
    }
    if (code == CODE_DONE) {
        image_note(o, item, &d->how);
        d->dtype = item->port->dtype;
        d->decode = decode_images;
        d->read = read_pixels;
        d->item = *item;
        d->rank = item->rank;
        memcpy(d->dims, item->dims, sizeof d->dims);
        d->n_rows = (int64_t)item->n_images;
        d->problems = must_alloc(item->n_images, sizeof *d->problems);
        code = set_image(&d->how, true, d);
    }
    return give(code, d, out_dataset);
}

int dataset_read_rows(dataset *d, const int64_t *rows, size_t n, void *to, size_t size_bytes)
{
    const size_t row_bytes = n > 0 ? size_bytes / n : 0;
    char *at = to;
    int code = CODE_DONE;
    if (d->decode) return decode_rows(d, rows, 0, n, to, size_bytes);
    for (size_t i = 0; i < n && code == CODE_DONE; i++, at += row_bytes)
        code = dataset_read(d, rows[i], 1, at, row_bytes);
    return code;
}

/* ---- classes of images ----------------------------------------------------------------------- */

static int read_classes(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    (void)n;
    memcpy(to, d->classes + first, size_bytes);
    return CODE_DONE;
}

int dataset_open_classes(const options *o, const clg_port *port, const char *folder,
                         dataset **out_dataset)
{
    dataset *d = make(o, port, folder);
    image_folder list;
    int code = image_folder_list(folder, &list);
    if (code != CODE_DONE) return give(code, d, out_dataset);
    if (list.n_classes > 0) {
        d->classes = list.classes;
        list.classes = NULL;
        d->n_rows = (int64_t)list.n_files;
        d->read = read_classes;
        d->dtype = CLG_INT64;
        d->rank = 1;
        d->dims[0] = d->n_rows;
        code = check_dtype(d, true);
    } else {
        code = fail_usage("input '%s' takes classes: '%s' has no subfolder for each",
                          printable(port->name), folder);
    }
    image_folder_free(&list);
    return give(code, d, out_dataset);
}

/* ---- repeated rows --------------------------------------------------------------------------- */

static int read_repeated(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes)
{
    const size_t row_bytes = clg_value_size_bytes(d->row);
    char *rows = to;
    (void)first;
    (void)size_bytes;
    for (size_t i = 0; i < n && row_bytes > 0; i++)
        memcpy(rows + i * row_bytes, clg_value_data(d->row), row_bytes);
    return CODE_DONE;
}

dataset *dataset_repeat(const clg_port *port, clg_value *row)
{
    dataset *d = make(NULL, port, "");
    d->read = read_repeated;
    d->row = clg_value_retain(row);
    d->dtype = clg_value_dtype(row);
    d->rank = clg_value_rank(row);
    memcpy(d->dims, clg_value_dims(row), d->rank * sizeof *d->dims);
    return d;
}
