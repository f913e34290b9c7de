/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses and writes ONNX's TensorProto (IR versions 3 to 13). raw_data is little-endian by
 * definition, and so is the host (tensor.h): its bytes are the tensor's memory. The typed repeated
 * fields (float_data, ...) hold one number per element, except for complex dtypes (two), 16-bit and
 * 8-bit floats (their bits in an int32) and sub-byte dtypes (a packed byte in an int32).
 */
#include "tensor/formats/tensor_proto.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "tensor/formats/tensor_fields.h"

#include <inttypes.h>
#include <string.h>

static const char *storage_name(unsigned field)
{
    switch (field) {
    case FLOAT_DATA: return "float_data";
    case INT32_DATA: return "int32_data";
    case STRING_DATA: return "string_data";
    case INT64_DATA: return "int64_data";
    case RAW_DATA: return "raw_data";
    case DOUBLE_DATA: return "double_data";
    case UINT64_DATA: return "uint64_data";
    default: return "no data field";
    }
}

/* Returns the typed field that stores a dtype. */
static unsigned storage_of(clg_dtype dtype)
{
    switch (dtype) {
    case CLG_FLOAT32:
    case CLG_COMPLEX64: return FLOAT_DATA;
    case CLG_FLOAT64:
    case CLG_COMPLEX128: return DOUBLE_DATA;
    case CLG_INT64: return INT64_DATA;
    case CLG_UINT32:
    case CLG_UINT64: return UINT64_DATA;
    case CLG_STRING: return STRING_DATA;
    default: return INT32_DATA;
    }
}

/* Prepends the tensor's name to the error. */
clg_status tensor_proto_error(const tensor_proto *proto, clg_status status)
{
    if (status == CLG_OK) return status;
    size_t n = proto->name.size_bytes < 200 ? proto->name.size_bytes : 200;
    if (n == 0) return error_prefix(status, "a tensor without a name");
    return error_prefix(status, "tensor '%.*s'", (int)n, proto->name.data);
}

/* ---- parsing --------------------------------------------------------------------------------- */

static clg_status parse_dims(const wire_cursor *c, const wire_field *field, shape *dims)
{
    wire_cursor elements;
    CLG_TRY(wire_get_elements(c, field, WIRE_VARINT, &elements));
    while (!wire_at_end(&elements)) {
        uint64_t value;
        CLG_TRY(wire_next_varint(&elements, &value));
        if (value > INT64_MAX) {
            return error_set(CLG_ERROR_INVALID_MODEL, "dimension %d is negative: %" PRId64,
                             dims->rank, (int64_t)value);
        }
        if (dims->rank == CLG_MAX_RANK) {
            return error_set(CLG_ERROR_INVALID_MODEL, "the rank is above the largest supported, %d",
                             CLG_MAX_RANK);
        }
        dims->dims[dims->rank++] = (int64_t)value;
    }
    return CLG_OK;
}

static clg_status parse_number(wire_bytes digits, const char *key, uint64_t *out_value)
{
    uint64_t value = 0;
    bool good = digits.size_bytes > 0 && digits.size_bytes <= 19; /* so below 2^64 */
    for (size_t i = 0; good && i < digits.size_bytes; i++) {
        good = digits.data[i] >= '0' && digits.data[i] <= '9';
        value = value * 10 + (uint64_t)(digits.data[i] - '0');
    }
    if (!good)
        return error_set(CLG_ERROR_INVALID_MODEL, "%s of external data is not a number", key);
    *out_value = value;
    return CLG_OK;
}

/* Parses one entry of external_data, a StringStringEntryProto (field 1: key, 2: value). Unknown
 * keys, such as checksum, are skipped. */
static clg_status parse_external(const wire_cursor *c, const wire_field *field, tensor_proto *proto)
{
    wire_cursor entry;
    wire_bytes key = {.data = ""}, value = {.data = ""};
    CLG_TRY(wire_get_message(c, field, &entry));
    while (!wire_at_end(&entry)) {
        wire_field part;
        CLG_TRY(wire_next(&entry, &part));
        if (part.number == 1) CLG_TRY(wire_get_bytes(&part, &key));
        if (part.number == 2) CLG_TRY(wire_get_bytes(&part, &value));
    }
    if (wire_bytes_equal(key, "location")) proto->location = value;
    if (wire_bytes_equal(key, "offset"))
        return parse_number(value, "the offset", &proto->external_offset);
    if (wire_bytes_equal(key, "length"))
        return parse_number(value, "the length", &proto->external_length);
    return CLG_OK;
}

static clg_status parse_field(const wire_cursor *c, const wire_field *field, tensor_proto *proto)
{
    int64_t value;
    switch (field->number) {
    case DIMS: return parse_dims(c, field, &proto->dims);
    case DATA_TYPE:
        CLG_TRY(wire_get_int(field, &value));
        proto->dtype = value > 0 && value < INT16_MAX ? (clg_dtype)value : CLG_DTYPE_NONE;
        return CLG_OK;
    case SEGMENT:
        return error_set(CLG_ERROR_INVALID_MODEL, "tensors in segments are not supported");
    case NAME: return wire_get_bytes(field, &proto->name);
    case RAW_DATA:
        CLG_TRY(wire_get_bytes(field, &proto->raw));
        if (proto->raw.size_bytes > 0) proto->storages |= 1u << RAW_DATA;
        return CLG_OK;
    case STRING_DATA: proto->storages |= 1u << STRING_DATA; return CLG_OK;
    case FLOAT_DATA:
    case INT32_DATA:
    case INT64_DATA:
    case DOUBLE_DATA:
    case UINT64_DATA:
        if (field->size_bytes > 0) proto->storages |= 1u << field->number;
        return CLG_OK;
    case EXTERNAL_DATA: return parse_external(c, field, proto);
    case DATA_LOCATION:
        CLG_TRY(wire_get_int(field, &value));
        if (value < 0 || value > 1) {
            return error_set(CLG_ERROR_INVALID_MODEL, "data_location %" PRId64 " is not known",
                             value);
        }
        proto->is_external = value == 1;
        return CLG_OK;
    default: return CLG_OK; /* doc_string, metadata, fields of later versions */
    }
}

static clg_status check(const tensor_proto *proto)
{
    if (!dtype_find(proto->dtype)) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the element type is missing or not known");
    }
    int64_t n;
    size_t size_bytes;
    if (shape_n_elements(&proto->dims, &n) != CLG_OK ||
        !dtype_bytes(proto->dtype, n, &size_bytes)) {
        char words[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_MODEL, "shape %s is too large to address",
                         shape_text(&proto->dims, words));
    }
    if (!proto->is_external) return CLG_OK;
    if (proto->dtype == CLG_STRING)
        return error_set(CLG_ERROR_INVALID_MODEL, "strings cannot be external data");
    if (proto->location.size_bytes == 0 ||
        memchr(proto->location.data, '\0', proto->location.size_bytes)) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "the location of external data is missing or not a file name");
    }
    return CLG_OK;
}

/* Returns the tensor's name, which is found first so that all errors can include it. */
static wire_bytes find_name(const wire_cursor *message)
{
    wire_cursor c = *message;
    wire_bytes name = {.data = ""};
    wire_field field;
    while (!wire_at_end(&c) && wire_next(&c, &field) == CLG_OK)
        if (field.number == NAME && wire_get_bytes(&field, &name) != CLG_OK) break;
    return name;
}

clg_status tensor_proto_parse(const wire_cursor *message, tensor_proto *out_proto)
{
    *out_proto = (tensor_proto){.message = *message,
                                .name = find_name(message),
                                .dims = {.rank = 0},
                                .raw = {.data = ""},
                                .location = {.data = ""},
                                .external_length = TENSOR_PROTO_NO_LENGTH};
    wire_cursor c = *message;
    clg_status status = CLG_OK;
    while (status == CLG_OK && !wire_at_end(&c)) {
        wire_field field;
        status = wire_next(&c, &field);
        if (status == CLG_OK) status = parse_field(&c, &field, out_proto);
    }
    if (status == CLG_OK) status = check(out_proto);
    return tensor_proto_error(out_proto, status);
}

/* ---- filling from repeated fields ------------------------------------------------------------ */

static wire_type element_type(unsigned storage)
{
    return storage == FLOAT_DATA    ? WIRE_FIXED32
           : storage == DOUBLE_DATA ? WIRE_FIXED64
                                    : WIRE_VARINT;
}

/* Computes how many numbers the typed field must hold: one or two per element, or one per byte of
 * packed elements. Returns false on overflow. */
static bool numbers_needed(const tensor_proto *proto, int64_t n_elements, size_t *out_n)
{
    const dtype_info *info = dtype_find(proto->dtype);
    if (info->kind == DTYPE_KIND_COMPLEX) return checked_mul_size((size_t)n_elements, 2, out_n);
    if (info->bits < 8 && info->kind != DTYPE_KIND_STRING)
        return dtype_bytes(proto->dtype, n_elements, out_n);
    *out_n = (size_t)n_elements;
    return true;
}

/* Processes the numbers of one occurrence of a repeated field; called for every occurrence of field
 * `storage`, in order. */
typedef clg_status (*element_sink)(void *user, const wire_field *field, wire_cursor *elements);

static clg_status each_field(const tensor_proto *proto, unsigned storage, element_sink sink,
                             void *user)
{
    wire_cursor c = proto->message;
    while (!wire_at_end(&c)) {
        wire_field field;
        wire_cursor elements = c;
        CLG_TRY(wire_next(&c, &field));
        if (field.number != storage) continue;
        if (storage != STRING_DATA)
            CLG_TRY(wire_get_elements(&c, &field, element_type(storage), &elements));
        CLG_TRY(sink(user, &field, &elements));
    }
    return CLG_OK;
}

/* The state of filling a tensor from a typed field. */
typedef struct filling {
    unsigned storage;
    size_t n_found, n_needed;
    size_t n_fields;
    wire_cursor last; /* numbers of the last occurrence */
    tensor *tensor;
    size_t number_bytes; /* of one number in the tensor's memory */
    clg_dtype dtype;
} filling;

static clg_status count_scalars(void *user, const wire_field *field, wire_cursor *elements)
{
    filling *f = user;
    (void)field;
    size_t n = f->storage == STRING_DATA ? 1 : wire_n_elements(elements, element_type(f->storage));
    /* The sum cannot overflow: it is less than the file's size. */
    f->n_found += n;
    f->n_fields++;
    f->last = *elements;
    return CLG_OK;
}

/* Returns whether an integer of int32_data or uint64_data is valid for the dtype: by its value or,
 * for signed and sub-byte dtypes, also as unsigned bits. */
static bool fits(clg_dtype dtype, int64_t value)
{
    const dtype_info *info = dtype_find(dtype);
    unsigned bits = info->bits < 8 ? 8 : info->bits;
    if (info->kind == DTYPE_KIND_BOOL) return value == 0 || value == 1;
    if (bits == 64) return true;
    int64_t end = (int64_t)1 << bits;
    bool is_signed = info->kind == DTYPE_KIND_SIGNED || info->bits < 8;
    return value < end && value >= (is_signed ? -end / 2 : 0);
}

static clg_status fill_number(filling *f, wire_cursor *elements)
{
    uint64_t value;
    uint32_t low = 0;
    switch (element_type(f->storage)) {
    case WIRE_FIXED32:
        CLG_TRY(wire_next_fixed32(elements, &low));
        value = low;
        break;
    case WIRE_FIXED64: CLG_TRY(wire_next_fixed64(elements, &value)); break;
    default:
        CLG_TRY(wire_next_varint(elements, &value));
        if (!fits(f->dtype, (int64_t)value)) {
            return error_set(CLG_ERROR_INVALID_MODEL,
                             "number %zu in %s, %" PRId64 ", does not fit %s", f->n_found,
                             storage_name(f->storage), (int64_t)value, dtype_find(f->dtype)->name);
        }
        break;
    }
    memcpy((uint8_t *)f->tensor->data + f->n_found * f->number_bytes, &value, f->number_bytes);
    return CLG_OK;
}

static clg_status fill_field(void *user, const wire_field *field, wire_cursor *elements)
{
    filling *f = user;
    if (f->storage == STRING_DATA) {
        wire_bytes string;
        CLG_TRY(wire_get_bytes(field, &string));
        clg_status status =
            tensor_set_string(f->tensor, (int64_t)f->n_found++, string.data, string.size_bytes);
        return status == CLG_ERROR_INVALID_ARGUMENT ? CLG_ERROR_INVALID_MODEL : status;
    }
    while (!wire_at_end(elements)) {
        CLG_TRY(fill_number(f, elements));
        f->n_found++;
    }
    return CLG_OK;
}

/* Returns whether the field's bytes are those of the tensor: fixed-width numbers, in one packed
 * occurrence. */
static bool is_plain(const filling *f, size_t tensor_bytes)
{
    return (f->storage == FLOAT_DATA || f->storage == DOUBLE_DATA) && f->n_fields == 1 &&
           (size_t)(f->last.end - f->last.at) == tensor_bytes;
}

static clg_status from_fields(const tensor_proto *proto, int64_t n_elements,
                              const tensor_owner *owner, tensor **out_tensor)
{
    filling f = {.storage = storage_of(proto->dtype), .dtype = proto->dtype};
    if (!numbers_needed(proto, n_elements, &f.n_needed)) f.n_needed = SIZE_MAX;
    CLG_TRY(each_field(proto, f.storage, count_scalars, &f));
    if (f.n_found != f.n_needed) {
        char words[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "%s of shape %s needs %zu numbers in %s, which has %zu",
                         dtype_find(proto->dtype)->name, shape_text(&proto->dims, words),
                         f.n_needed, storage_name(f.storage), f.n_found);
    }
    size_t size_bytes;
    if (dtype_bytes(proto->dtype, n_elements, &size_bytes) && is_plain(&f, size_bytes))
        return tensor_from_bytes(proto->dtype, &proto->dims, f.last.at, size_bytes, owner,
                                 out_tensor);
    CLG_TRY(tensor_create(proto->dtype, &proto->dims, &f.tensor));
    f.number_bytes = f.n_needed > 0 ? f.tensor->size_bytes / f.n_needed : 0;
    f.n_found = 0;
    clg_status status = each_field(proto, f.storage, fill_field, &f);
    if (status == CLG_OK) {
        *out_tensor = f.tensor;
    } else {
        tensor_free(f.tensor);
    }
    return status;
}

/* ---- the tensor ------------------------------------------------------------------------------ */

/* Creates a tensor from raw bytes; INVALID_MODEL if their count does not match dtype and shape. */
static clg_status from_raw(const tensor_proto *proto, const void *data, size_t size_bytes,
                           const tensor_owner *owner, tensor **out_tensor)
{
    int64_t n;
    size_t expected;
    CLG_TRY(shape_n_elements(&proto->dims, &n));
    if (proto->dtype == CLG_STRING)
        return error_set(CLG_ERROR_INVALID_MODEL, "strings cannot be raw data");
    if (!dtype_bytes(proto->dtype, n, &expected) || expected != size_bytes) {
        char words[SHAPE_TEXT_BYTES];
        return error_set(
            CLG_ERROR_INVALID_MODEL, "%s of shape %s takes %zu bytes, but its data has %zu",
            dtype_find(proto->dtype)->name, shape_text(&proto->dims, words), expected, size_bytes);
    }
    return tensor_from_bytes(proto->dtype, &proto->dims, data, size_bytes, owner, out_tensor);
}

static clg_status to_tensor(const tensor_proto *proto, const tensor_owner *owner,
                            tensor **out_tensor)
{
    if (proto->is_external)
        return error_set(CLG_ERROR_INVALID_MODEL, "the data is in another file");
    int64_t n;
    CLG_TRY(shape_n_elements(&proto->dims, &n));
    unsigned own = 1u << storage_of(proto->dtype), raw = 1u << RAW_DATA;
    if (proto->storages == 0) {
        if (n == 0) return tensor_create(proto->dtype, &proto->dims, out_tensor);
        return error_set(CLG_ERROR_INVALID_MODEL, "there is no data");
    }
    if (proto->storages == raw)
        return from_raw(proto, proto->raw.data, proto->raw.size_bytes, owner, out_tensor);
    if (proto->storages == own) return from_fields(proto, n, owner, out_tensor);
    for (unsigned field = FLOAT_DATA; field <= UINT64_DATA; field++) {
        unsigned bit = 1u << field;
        if ((proto->storages & bit) && bit != own && bit != raw) {
            return error_set(CLG_ERROR_INVALID_MODEL, "%s cannot be in %s",
                             dtype_find(proto->dtype)->name, storage_name(field));
        }
    }
    return error_set(CLG_ERROR_INVALID_MODEL, "there is data in raw_data and in %s",
                     storage_name(storage_of(proto->dtype)));
}

clg_status tensor_proto_to_tensor(const tensor_proto *proto, const tensor_owner *owner,
                                  tensor **out_tensor)
{
    *out_tensor = NULL;
    return tensor_proto_error(proto, to_tensor(proto, owner, out_tensor));
}

static clg_status external_bytes(const tensor_proto *proto, size_t *out_size_bytes)
{
    int64_t n;
    uint64_t end;
    *out_size_bytes = 0;
    if (!proto->is_external)
        return error_set(CLG_ERROR_INVALID_MODEL, "the data is not in another file");
    CLG_TRY(shape_n_elements(&proto->dims, &n));
    if (!dtype_bytes(proto->dtype, n, out_size_bytes)) return error_no_memory(SIZE_MAX);
    const size_t size_bytes = *out_size_bytes;
    if (proto->external_length != TENSOR_PROTO_NO_LENGTH && proto->external_length != size_bytes) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "external data of %" PRIu64 " bytes for a tensor of %zu",
                         proto->external_length, size_bytes);
    }
    if (!checked_add_u64(proto->external_offset, size_bytes, &end)) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "external data of %zu bytes at offset %" PRIu64 " ends beyond 2^64",
                         size_bytes, proto->external_offset);
    }
    return CLG_OK;
}

clg_status tensor_proto_external_bytes(const tensor_proto *proto, size_t *out_size_bytes)
{
    return tensor_proto_error(proto, external_bytes(proto, out_size_bytes));
}

clg_status tensor_proto_from_external(const tensor_proto *proto, const void *data,
                                      const tensor_owner *owner, tensor **out_tensor)
{
    size_t size_bytes;
    *out_tensor = NULL;
    clg_status status = external_bytes(proto, &size_bytes);
    if (status == CLG_OK) status = from_raw(proto, data, size_bytes, owner, out_tensor);
    return tensor_proto_error(proto, status);
}

/* Creates a tensor from a file of external data. */
static clg_status resolve(const tensor_proto *proto, const void *file_data, size_t file_size_bytes,
                          const tensor_owner *owner, tensor **out_tensor)
{
    size_t size_bytes;
    CLG_TRY(external_bytes(proto, &size_bytes));
    const uint64_t offset = proto->external_offset;
    if (offset > file_size_bytes || size_bytes > file_size_bytes - offset) {
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "external data of %zu bytes at offset %" PRIu64
                         " ends beyond its file of %zu bytes",
                         size_bytes, offset, file_size_bytes);
    }
    const uint8_t *data = size_bytes > 0 ? (const uint8_t *)file_data + offset : NULL;
    return from_raw(proto, data, size_bytes, owner, out_tensor);
}

clg_status tensor_proto_resolve(const tensor_proto *proto, const void *file_data,
                                size_t file_size_bytes, const tensor_owner *owner,
                                tensor **out_tensor)
{
    *out_tensor = NULL;
    return tensor_proto_error(proto, resolve(proto, file_data, file_size_bytes, owner, out_tensor));
}

/* ---- files ----------------------------------------------------------------------------------- */

clg_status tensor_proto_load(const char *path, char **out_name, tensor **out_tensor)
{
    clg_status status;
    file_view view;
    tensor_proto proto;
    *out_tensor = NULL;
    if (out_name) *out_name = NULL;
    CLG_TRY(file_view_open(path, 0, &view));
    wire_cursor message = wire_open(view.data, view.size_bytes);
    CLG_TRY_GOTO(tensor_proto_parse(&message, &proto), done);
    CLG_TRY_GOTO(tensor_proto_to_tensor(&proto, NULL, out_tensor), done);
    if (out_name) {
        *out_name = memory_strndup(proto.name.data, proto.name.size_bytes);
        if (!*out_name) {
            tensor_free(*out_tensor);
            *out_tensor = NULL;
            status = CLG_ERROR_OUT_OF_HOST_MEMORY;
        }
    }
done:
    file_view_close(&view);
    return status == CLG_OK ? status : error_prefix(status, "'%s'", path);
}
