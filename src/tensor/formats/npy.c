/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses, converts and writes .npy files as numpy/lib/format.py defines them: "\x93NUMPY", version,
 * header length, a Python dictionary with three keys, data. The dictionary's parser supports only
 * strings, booleans and tuples of integers.
 */
#include "tensor/formats/npy.h"

#include "base/checked.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct kind_row {
    char text[3]; /* type without byte order */
    clg_dtype dtype;
} kinds[] = {
    {"f2", CLG_FLOAT16}, {"f4", CLG_FLOAT32}, {"f8", CLG_FLOAT64}, {"i1", CLG_INT8},
    {"i2", CLG_INT16},   {"i4", CLG_INT32},   {"i8", CLG_INT64},   {"u1", CLG_UINT8},
    {"u2", CLG_UINT16},  {"u4", CLG_UINT32},  {"u8", CLG_UINT64},  {"b1", CLG_BOOL},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static clg_status damaged(const char *what)
{
    return error_set(CLG_ERROR_IO, "no valid .npy file: %s", what);
}

/* ---- the header's dictionary ----------------------------------------------------------------- */

typedef struct parser {
    const char *at, *end;
} parser;

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* Skips blanks, and consumes the character c if it is next. */
static bool accept(parser *p, char c)
{
    skip_blanks(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool accept_word(parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

/* Parses a quoted string; escapes are not supported, since no key or dtype has any. */
static bool parse_string(parser *p, const char **out_string, size_t *out_n)
{
    skip_blanks(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
    char quote = *p->at++;
    const char *close = memchr(p->at, quote, (size_t)(p->end - p->at));
    if (!close) return false;
    *out_string = p->at;
    *out_n = (size_t)(close - p->at);
    p->at = close + 1;
    return true;
}

static bool parse_dim(parser *p, int64_t *out_dim)
{
    skip_blanks(p);
    const char *first = p->at;
    int64_t value = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        if (!checked_mul_i64(value, 10, &value) || !checked_add_i64(value, *p->at - '0', &value))
            return false;
    }
    if (p->at == first) return false;
    (void)accept(p, 'L'); /* a long integer of Python 2 */
    *out_dim = value;
    return true;
}

static clg_status parse_shape(parser *p, shape *out_dims)
{
    *out_dims = shape_scalar();
    if (!accept(p, '(')) return damaged("the shape is not a tuple");
    while (!accept(p, ')')) {
        int64_t dim;
        if (!parse_dim(p, &dim)) return damaged("a dimension is not a number");
        if (out_dims->rank == CLG_MAX_RANK) {
            return error_set(CLG_ERROR_IO, "the rank is above the largest supported, %d",
                             CLG_MAX_RANK);
        }
        out_dims->dims[out_dims->rank++] = dim;
        if (!accept(p, ',')) {
            if (accept(p, ')')) break;
            return damaged("the shape does not end");
        }
    }
    return CLG_OK;
}

static clg_status unsupported(const char *descr, size_t n)
{
    int shown = n < 40 ? (int)n : 40;
    error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
              "the element type '%.*s' of an .npy file is not supported", shown, descr);
    if (n == 3 && descr[1] == 'V') {
        error_hint("bfloat16 and other types of ml_dtypes lose their name in .npy: save the array "
                   "as float32");
    } else {
        error_hint("supported are bool, integers and floats: convert the array with astype");
    }
    return CLG_ERROR_UNSUPPORTED_DTYPE;
}

static clg_status parse_descr(parser *p, npy_info *info)
{
    const char *descr;
    size_t n;
    skip_blanks(p);
    if (p->at < p->end && *p->at == '[') {
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "the .npy file holds records, not plain numbers");
    }
    if (!parse_string(p, &descr, &n)) return damaged("the element type is not a string");
    const char *kind = descr;
    size_t n_kind = n;
    if (n > 0 && memchr("<>=|", descr[0], 4)) {
        kind++;
        n_kind--;
    }
    for (size_t i = 0; i < N_KINDS; i++) {
        if (n_kind != 2 || memcmp(kind, kinds[i].text, 2) != 0) continue;
        info->dtype = kinds[i].dtype;
        info->swapped = descr[0] == '>' && dtype_find(info->dtype)->bits > 8;
        return CLG_OK;
    }
    return unsupported(descr, n);
}

static clg_status parse_dictionary(parser *p, npy_info *info)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    if (!accept(p, '{')) return damaged("the header is not a dictionary");
    while (!accept(p, '}')) {
        const char *key;
        size_t n;
        if (!parse_string(p, &key, &n) || !accept(p, ':'))
            return damaged("the header's dictionary is broken");
        if (n == 5 && memcmp(key, "descr", n) == 0) {
            seen |= DESCR;
            CLG_TRY(parse_descr(p, info));
        } else if (n == 13 && memcmp(key, "fortran_order", n) == 0) {
            seen |= ORDER;
            info->fortran_order = accept_word(p, "True");
            if (!info->fortran_order && !accept_word(p, "False"))
                return damaged("fortran_order is not a boolean");
        } else if (n == 5 && memcmp(key, "shape", n) == 0) {
            seen |= SHAPE;
            CLG_TRY(parse_shape(p, &info->dims));
        } else {
            return damaged("the header has a key that is not known");
        }
        if (!accept(p, ',')) {
            if (accept(p, '}')) break;
            return damaged("the header's dictionary does not end");
        }
    }
    skip_blanks(p);
    if (seen != (DESCR | ORDER | SHAPE)) return damaged("the header lacks a key");
    return p->at == p->end ? CLG_OK : damaged("something follows the header's dictionary");
}

clg_status npy_header_length(const void *start, size_t size_bytes, size_t *out_header_bytes)
{
    *out_header_bytes = 0;
    const uint8_t *bytes = start;
    if (size_bytes < NPY_PREAMBLE_BYTES) return damaged("it is too short");
    if (memcmp(bytes, "\x93NUMPY", 6) != 0) return damaged("it does not begin as one");
    if (bytes[6] < 1 || bytes[6] > 3) {
        return error_set(CLG_ERROR_IO, "version %d.%d of .npy is not known", bytes[6], bytes[7]);
    }
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > NPY_MAX_HEADER_BYTES) return damaged("the header is too long");
    *out_header_bytes = length + (bytes[6] > 1 ? 12 : 10);
    return CLG_OK;
}

clg_status npy_parse_header(const void *start, size_t size_bytes, npy_info *out_info)
{
    npy_info info = {.dtype = CLG_DTYPE_NONE};
    *out_info = info;
    CLG_TRY(npy_header_length(start, size_bytes, &info.header_bytes));
    if (info.header_bytes > size_bytes) return damaged("the header is truncated");
    const char *text = start;
    parser p = {.at = text + (text[6] > 1 ? 12 : 10), .end = text + info.header_bytes};
    CLG_TRY(parse_dictionary(&p, &info));
    int64_t n;
    if (shape_n_elements(&info.dims, &n) != CLG_OK ||
        !dtype_bytes(info.dtype, n, &info.data_bytes)) {
        return damaged("the shape is too large to address");
    }
    *out_info = info;
    return CLG_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void swap_elements(uint8_t *data, size_t size_bytes, size_t element_bytes)
{
    for (size_t start = 0; start < size_bytes; start += element_bytes) {
        for (size_t i = 0; i < element_bytes / 2; i++) {
            uint8_t *a = &data[start + i], *b = &data[start + element_bytes - 1 - i];
            uint8_t kept = *a;
            *a = *b;
            *b = kept;
        }
    }
}

/* Fills t in C order from raw, which is in Fortran order. raw has all rows of info->dims. */
static void gather_fortran(const npy_info *info, const uint8_t *raw, int64_t first_row, tensor *t,
                           size_t element_bytes)
{
    int64_t strides[CLG_MAX_RANK] = {0}, index[CLG_MAX_RANK] = {0}, stride = 1;
    int rank = t->dims.rank;
    for (int i = 0; i < rank; i++) {
        strides[i] = stride;
        stride *= info->dims.dims[i];
    }
    uint8_t *out = t->data;
    int64_t from = first_row;
    for (int64_t n = 0; n < t->n_elements; n++, out += element_bytes) {
        memcpy(out, raw + (size_t)from * element_bytes, element_bytes);
        for (int i = rank - 1; i >= 0; i--) {
            from += strides[i];
            if (++index[i] < t->dims.dims[i]) break;
            from -= strides[i] * index[i];
            index[i] = 0;
        }
    }
}

void npy_convert(const npy_info *info, const void *raw, int64_t first_row, tensor *t)
{
    if (t->size_bytes == 0) return;
    size_t element_bytes = dtype_find(info->dtype)->bits / 8u;
    if (info->fortran_order && info->dims.rank > 1) {
        gather_fortran(info, raw, first_row, t, element_bytes);
    } else if (raw != t->data) {
        size_t row_bytes = t->dims.rank > 0 ? t->size_bytes / (size_t)t->dims.dims[0] : 0;
        memcpy(t->data, (const uint8_t *)raw + (size_t)first_row * row_bytes, t->size_bytes);
    }
    uint8_t *data = t->data;
    if (info->swapped) swap_elements(data, t->size_bytes, element_bytes);
    for (size_t i = 0; info->dtype == CLG_BOOL && i < t->size_bytes; i++) data[i] = data[i] != 0;
}

clg_status npy_check_size(const npy_info *info, uint64_t file_bytes)
{
    uint64_t rest = file_bytes - info->header_bytes;
    if (rest == info->data_bytes) return CLG_OK;
    return error_set(CLG_ERROR_IO,
                     "no valid .npy file: its header announces %zu bytes of data, but there are "
                     "%" PRIu64,
                     info->data_bytes, rest);
}

clg_status npy_from_memory(const void *data, size_t size_bytes, const tensor_owner *owner,
                           tensor **out_tensor)
{
    npy_info info;
    *out_tensor = NULL;
    CLG_TRY(npy_parse_header(data, size_bytes, &info));
    CLG_TRY(npy_check_size(&info, size_bytes));
    const uint8_t *raw = (const uint8_t *)data + info.header_bytes;
    if (owner && !info.swapped && (!info.fortran_order || info.dims.rank < 2)) {
        return tensor_from_bytes(info.dtype, &info.dims, raw, info.data_bytes, owner, out_tensor);
    }
    CLG_TRY(tensor_create(info.dtype, &info.dims, out_tensor));
    npy_convert(&info, raw, 0, *out_tensor);
    return CLG_OK;
}

clg_status npy_load(const char *path, tensor **out_tensor)
{
    file_view view;
    *out_tensor = NULL;
    CLG_TRY(file_view_open(path, 0, &view));
    clg_status status = npy_from_memory(view.data, view.size_bytes, NULL, out_tensor);
    file_view_close(&view);
    return status == CLG_OK ? status : error_prefix(status, "'%s'", path);
}

/* ---- writing --------------------------------------------------------------------------------- */

clg_status npy_format_header(clg_dtype dtype, const shape *dims, size_t min_bytes,
                             char out_header[NPY_HEADER_TEXT_BYTES], size_t *out_header_bytes)
{
    *out_header_bytes = 0;
    const char *kind = NULL;
    for (size_t i = 0; i < N_KINDS; i++) {
        if (kinds[i].dtype == dtype) kind = kinds[i].text;
    }
    if (!kind) {
        const dtype_info *info = dtype_find(dtype);
        error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s cannot be stored in an .npy file",
                  info ? info->name : "an unknown dtype");
        error_hint("cast it to float32, or write a .pb file");
        return CLG_ERROR_UNSUPPORTED_DTYPE;
    }
    char order = dtype_find(dtype)->bits > 8 ? '<' : '|', *text = out_header + 10;
    /* enough for eight dimensions of 19 digits and the fixed text */
    size_t room = NPY_HEADER_TEXT_BYTES - 10;
    int used =
        snprintf(text, room, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, kind);
    for (int i = 0; i < dims->rank; i++) {
        const char *comma = i > 0 ? ", " : "";
        used += snprintf(text + used, room - (size_t)used, "%s%" PRId64, comma, dims->dims[i]);
    }
    used += snprintf(text + used, room - (size_t)used, "%s), }", dims->rank == 1 ? "," : "");
    size_t total = 10 + (size_t)used + 1;
    total = (total + 63) / 64 * 64;
    if (total < min_bytes) total = min_bytes;
    memset(out_header + 10 + used, ' ', total - 10 - (size_t)used);
    out_header[total - 1] = '\n';
    memcpy(out_header, "\x93NUMPY\x01\x00", 8);
    out_header[8] = (char)((total - 10) & 0xff);
    out_header[9] = (char)((total - 10) >> 8);
    *out_header_bytes = total;
    return CLG_OK;
}

clg_status npy_save(const char *path, const tensor *t)
{
    char header[NPY_HEADER_TEXT_BYTES];
    size_t header_bytes;
    file_writer writer;
    CLG_TRY(npy_format_header(t->dtype, &t->dims, 0, header, &header_bytes));
    CLG_TRY(file_writer_open(path, &writer));
    clg_status status = file_writer_append(&writer, header, header_bytes);
    if (status == CLG_OK) status = file_writer_append(&writer, t->data, t->size_bytes);
    if (status == CLG_OK) return file_writer_commit(&writer);
    file_writer_abandon(&writer);
    return status;
}
