/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates, converts and compares host tensors. Elements are accessed with memcpy, since wrapped
 * memory may be unaligned.
 */
#include "tensor/tensor.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "clgraph keeps elements as files and devices do: little-endian"
#endif

/* ---- creation and release -------------------------------------------------------------------- */

/* Sets *out to a tensor without data, with one reference; computes and checks its sizes. */
static clg_status init_header(clg_dtype dtype, const shape *dims, tensor *out)
{
    const dtype_info *info = dtype_find(dtype);
    if (!info)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "%d is not an element type", (int)dtype);
    char text[SHAPE_TEXT_BYTES];
    if (!shape_is_known(dims)) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "a tensor needs a known shape, not %s",
                         shape_text(dims, text));
    }
    int64_t n;
    size_t size_bytes;
    if (shape_n_elements(dims, &n) != CLG_OK || !dtype_bytes(dtype, n, &size_bytes)) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a %s tensor of shape %s is too large to address", info->name,
                         shape_text(dims, text));
    }
    *out = (tensor){.dtype = dtype, .dims = *dims, .n_elements = n, .size_bytes = size_bytes};
    refcount_init(&out->refs);
    return CLG_OK;
}

/* As init_header, for an allocated tensor. */
static clg_status make_header(clg_dtype dtype, const shape *dims, tensor **out_tensor)
{
    *out_tensor = NULL;
    tensor *t = memory_zalloc(1, sizeof *t);
    if (!t) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = init_header(dtype, dims, t);
    if (status != CLG_OK) {
        memory_free(t);
        return status;
    }
    *out_tensor = t;
    return CLG_OK;
}

/* Frees the data of a tensor that owns it; `user` is the tensor. */
static void release_owned(void *user)
{
    tensor *t = user;
    if (t->dtype == CLG_STRING) {
        for (int64_t i = 0; i < t->n_elements; i++) memory_free(((char **)t->data)[i]);
    }
    memory_free_aligned(t->data);
}

clg_status tensor_create(clg_dtype dtype, const shape *dims, tensor **out_tensor)
{
    tensor *t;
    *out_tensor = NULL;
    CLG_TRY(make_header(dtype, dims, &t));
    t->data = memory_alloc_aligned(t->size_bytes);
    if (!t->data) {
        memory_free(t);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    t->release = release_owned;
    t->user = t;
    *out_tensor = t;
    return CLG_OK;
}

clg_status tensor_wrap(clg_dtype dtype, const shape *dims, void *data, void (*release)(void *),
                       void *user, tensor **out_tensor)
{
    tensor *t;
    *out_tensor = NULL;
    CLG_TRY(make_header(dtype, dims, &t));
    if (!data && t->size_bytes > 0) {
        size_t size_bytes = t->size_bytes;
        memory_free(t);
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the data of a tensor of %zu bytes is NULL",
                         size_bytes);
    }
    t->data = data;
    t->release = release;
    t->user = user;
    *out_tensor = t;
    return CLG_OK;
}

clg_status tensor_borrow(clg_dtype dtype, const shape *dims, const void *data, tensor *out_tensor)
{
    CLG_TRY(init_header(dtype, dims, out_tensor));
    out_tensor->data = (void *)(uintptr_t)data; /* never written to */
    return CLG_OK;
}

bool tensor_bools_are_valid(const void *data, size_t size_bytes)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size_bytes; i++) {
        if (bytes[i] > 1) return false;
    }
    return true;
}

clg_status tensor_from_bytes(clg_dtype dtype, const shape *dims, const void *data,
                             size_t size_bytes, const tensor_owner *owner, tensor **out_tensor)
{
    tensor *t;
    *out_tensor = NULL;
    CLG_TRY(make_header(dtype, dims, &t));
    if (dtype == CLG_STRING || t->size_bytes != size_bytes) {
        size_t expected = t->size_bytes;
        memory_free(t);
        if (dtype == CLG_STRING)
            return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "strings have no plain bytes");
        char text[SHAPE_TEXT_BYTES];
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "%s of shape %s takes %zu bytes, but %zu are given",
                         dtype_find(dtype)->name, shape_text(dims, text), expected, size_bytes);
    }
    bool clean = dtype != CLG_BOOL || tensor_bools_are_valid(data, size_bytes);
    if (owner && clean) {
        owner->retain(owner->user);
        t->data = (void *)(uintptr_t)data; /* never written to */
        t->release = owner->release;
        t->user = owner->user;
        t->unload = owner->unload;
        *out_tensor = t;
        return CLG_OK;
    }
    memory_free(t);
    CLG_TRY(tensor_create(dtype, dims, &t));
    if (size_bytes > 0) memcpy(t->data, data, size_bytes);
    for (size_t i = 0; !clean && i < size_bytes; i++)
        ((uint8_t *)t->data)[i] = ((uint8_t *)t->data)[i] != 0;
    *out_tensor = t;
    return CLG_OK;
}

clg_status tensor_bytes_of(clg_dtype dtype, const shape *dims, size_t *out_bytes)
{
    int64_t n;
    *out_bytes = 0;
    CLG_TRY(shape_n_elements(dims, &n));
    if (n < 0 || !dtype_bytes(dtype, n, out_bytes))
        return error_set(CLG_ERROR_SHAPE, "a tensor is larger than memory can be");
    return CLG_OK;
}

tensor *tensor_retain(tensor *t)
{
    if (t) refcount_retain(&t->refs);
    return t;
}

void tensor_free(tensor *t)
{
    if (!t || !refcount_release(&t->refs)) return;
    if (t->release) t->release(t->user);
    memory_free(t);
}

/* Returns whether data is aligned for access through a pointer of the dtype's C type. */
static bool is_aligned(clg_dtype dtype, const void *data)
{
    const dtype_info *info = dtype_find(dtype);
    size_t size = info->bits / (info->kind == DTYPE_KIND_COMPLEX ? 16u : 8u);
    return size < 2 || (uintptr_t)data % size == 0;
}

clg_status tensor_align(tensor *t, tensor **out_tensor)
{
    *out_tensor = NULL;
    if (t->dtype == CLG_STRING || is_aligned(t->dtype, t->data)) {
        *out_tensor = tensor_retain(t);
        return CLG_OK;
    }
    CLG_TRY(tensor_create(t->dtype, &t->dims, out_tensor));
    if (t->size_bytes > 0) memcpy((*out_tensor)->data, t->data, t->size_bytes);
    return CLG_OK;
}

void tensor_unload(const tensor *t, size_t offset_bytes, size_t size_bytes)
{
    if (t->unload) t->unload(t->user, (const char *)t->data + offset_bytes, size_bytes);
}

/* ---- elements as numbers --------------------------------------------------------------------- */

/* An element of any numeric dtype, as int64, uint64 or double, so that 64-bit integers are
 * converted without rounding. */
typedef struct number {
    enum { IS_SIGNED, IS_UNSIGNED, IS_FLOAT } kind;
    int64_t i;
    uint64_t u;
    double f;
} number;

static number signed_number(int64_t value) { return (number){.kind = IS_SIGNED, .i = value}; }

static number unsigned_number(uint64_t value) { return (number){.kind = IS_UNSIGNED, .u = value}; }

static number float_number(double value) { return (number){.kind = IS_FLOAT, .f = value}; }

static uint64_t low_mask(unsigned bits)
{
    return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* Returns the bits of element i. Sub-byte elements are packed from the low bits of a byte up, as in
 * ONNX. */
static uint64_t load_bits(const tensor *t, int64_t i, unsigned bits)
{
    const uint8_t *data = t->data;
    uint64_t value = 0;
    if (bits < 8) {
        unsigned per_byte = 8 / bits;
        return (uint64_t)data[i / per_byte] >> ((unsigned)(i % per_byte) * bits) & low_mask(bits);
    }
    memcpy(&value, data + (size_t)i * (bits / 8), bits / 8); /* little-endian host, see tensor.h */
    return value;
}

static void store_bits(tensor *t, int64_t i, unsigned bits, uint64_t value)
{
    uint8_t *data = t->data;
    if (bits < 8) {
        unsigned per_byte = 8 / bits, shift = (unsigned)(i % per_byte) * bits;
        uint8_t *byte = &data[i / per_byte];
        *byte = (uint8_t)((*byte & ~(low_mask(bits) << shift)) | (value & low_mask(bits)) << shift);
        return;
    }
    memcpy(data + (size_t)i * (bits / 8), &value, bits / 8);
}

static double float_from_bits(clg_dtype dtype, uint64_t bits)
{
    float single;
    double wide;
    uint32_t low = (uint32_t)bits;
    switch (dtype) {
    case CLG_FLOAT64: memcpy(&wide, &bits, sizeof wide); return wide;
    case CLG_FLOAT32: memcpy(&single, &low, sizeof single); return single;
    case CLG_FLOAT16: return half_to_float((uint16_t)bits);
    case CLG_BFLOAT16: return bfloat16_to_float((uint16_t)bits);
    default: return minifloat_to_float(dtype, (uint8_t)bits);
    }
}

/* Returns element i. */
static number load(const tensor *t, int64_t i)
{
    const dtype_info *info = dtype_find(t->dtype);
    switch (info->kind) {
    case DTYPE_KIND_FLOAT:
        return float_number(float_from_bits(t->dtype, load_bits(t, i, info->bits)));
    case DTYPE_KIND_BOOL: return unsigned_number(load_bits(t, i, info->bits) != 0);
    case DTYPE_KIND_UNSIGNED: return unsigned_number(load_bits(t, i, info->bits));
    case DTYPE_KIND_SIGNED: {
        uint64_t value = load_bits(t, i, info->bits), sign = (uint64_t)1 << (info->bits - 1);
        return signed_number((int64_t)((value ^ sign) - sign)); /* sign-extended */
    }
    default: return signed_number(0);
    }
}

/* Converts an integer to a double that rounds correctly to formats of 16 bits or fewer: the bits
 * that a double cannot hold are combined into a sticky bit. */
static double magnitude_for_narrowing(uint64_t value)
{
    if (value >> 53 == 0) return (double)value;
    return (double)((value | ((value & 0x7ff) ? 0x800 : 0)) & ~(uint64_t)0x7ff);
}

static double number_for_narrowing(number n)
{
    if (n.kind == IS_FLOAT) return n.f;
    if (n.kind == IS_UNSIGNED) return magnitude_for_narrowing(n.u);
    return n.i < 0 ? -magnitude_for_narrowing((uint64_t)0 - (uint64_t)n.i)
                   : magnitude_for_narrowing((uint64_t)n.i);
}

static double to_double(number n)
{
    return n.kind == IS_FLOAT ? n.f : n.kind == IS_SIGNED ? (double)n.i : (double)n.u;
}

static float to_single(number n)
{
    return n.kind == IS_FLOAT ? (float)n.f : n.kind == IS_SIGNED ? (float)n.i : (float)n.u;
}

static uint64_t float_to_bits(clg_dtype dtype, number n)
{
    uint64_t bits = 0;
    if (dtype == CLG_FLOAT64) {
        double wide = to_double(n);
        memcpy(&bits, &wide, sizeof wide);
        return bits;
    }
    if (dtype == CLG_FLOAT32) {
        float single = to_single(n);
        uint32_t low;
        memcpy(&low, &single, sizeof low);
        return low;
    }
    float narrow = float_for_narrowing(number_for_narrowing(n));
    if (dtype == CLG_FLOAT16) return half_from_float(narrow);
    if (dtype == CLG_BFLOAT16) return bfloat16_from_float(narrow);
    return minifloat_from_float(dtype, narrow);
}

/* Truncates and saturates a float to an integer of `bits` bits; for fewer than 8 bits to int32,
 * whose low bits are then stored. NaN gives 0. */
static uint64_t integer_from_float(double value, unsigned bits, bool is_signed)
{
    if (isnan(value)) return 0;
    if (bits < 8) return integer_from_float(value, 32, true);
    double end = ldexp(1.0, (int)(is_signed ? bits - 1 : bits));
    if (value >= end) return low_mask(is_signed ? bits - 1 : bits);
    if (is_signed) return value < -end ? (uint64_t)1 << (bits - 1) : (uint64_t)(int64_t)value;
    return value <= -1.0 ? 0 : (uint64_t)value;
}

/* Sets element i; integers wrap. */
static void store(tensor *t, int64_t i, number n)
{
    const dtype_info *info = dtype_find(t->dtype);
    uint64_t value;
    switch (info->kind) {
    case DTYPE_KIND_FLOAT: value = float_to_bits(t->dtype, n); break;
    case DTYPE_KIND_BOOL:
        value = n.kind == IS_FLOAT ? n.f != 0.0 : n.kind == IS_SIGNED ? n.i != 0 : n.u != 0;
        break;
    case DTYPE_KIND_SIGNED:
    case DTYPE_KIND_UNSIGNED:
        value = n.kind == IS_FLOAT
                    ? integer_from_float(n.f, info->bits, info->kind == DTYPE_KIND_SIGNED)
                : n.kind == IS_SIGNED ? (uint64_t)n.i
                                      : n.u;
        break;
    default: return;
    }
    store_bits(t, i, info->bits, value);
}

int64_t tensor_get_int(const tensor *t, int64_t i)
{
    number n = load(t, i);
    if (n.kind == IS_FLOAT) return (int64_t)integer_from_float(n.f, 64, true);
    return n.kind == IS_SIGNED ? n.i : (int64_t)n.u;
}

double tensor_get_float(const tensor *t, int64_t i) { return to_double(load(t, i)); }

void tensor_set_int(tensor *t, int64_t i, int64_t value) { store(t, i, signed_number(value)); }

void tensor_set_float(tensor *t, int64_t i, double value) { store(t, i, float_number(value)); }

/* ---- strings, casts, comparison -------------------------------------------------------------- */

const char *tensor_get_string(const tensor *t, int64_t i)
{
    const char *string = t->dtype == CLG_STRING ? ((char **)t->data)[i] : NULL;
    return string ? string : "";
}

clg_status tensor_set_string(tensor *t, int64_t i, const char *bytes, size_t n_bytes)
{
    if (t->dtype != CLG_STRING)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the tensor does not hold strings");
    if (n_bytes > 0 && memchr(bytes, '\0', n_bytes)) {
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "a string of a tensor contains a NUL byte, which is not supported");
    }
    char *copy = memory_strndup(bytes, n_bytes);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    char **slot = &((char **)t->data)[i];
    memory_free(*slot);
    *slot = copy;
    return CLG_OK;
}

static bool is_number(clg_dtype dtype)
{
    const dtype_info *info = dtype_find(dtype);
    return info && info->kind != DTYPE_KIND_STRING && info->kind != DTYPE_KIND_COMPLEX;
}

clg_status tensor_cast(const tensor *t, clg_dtype dtype, tensor **out_tensor)
{
    *out_tensor = NULL;
    if (dtype == t->dtype) {
        *out_tensor =
            tensor_retain((tensor *)(uintptr_t)t); /* only the reference count may change here */
        return CLG_OK;
    }
    if (!is_number(t->dtype) || !is_number(dtype)) {
        const dtype_info *to = dtype_find(dtype);
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "%s cannot be cast to %s on the host",
                         dtype_find(t->dtype)->name, to ? to->name : "an unknown dtype");
    }
    tensor *cast;
    CLG_TRY(tensor_create(dtype, &t->dims, &cast));
    for (int64_t i = 0; i < t->n_elements; i++) store(cast, i, load(t, i));
    *out_tensor = cast;
    return CLG_OK;
}

bool tensor_equal(const tensor *a, const tensor *b)
{
    if (a->dtype != b->dtype || !shape_equal(&a->dims, &b->dims)) return false;
    if (a->dtype == CLG_STRING) {
        for (int64_t i = 0; i < a->n_elements; i++) {
            if (strcmp(tensor_get_string(a, i), tensor_get_string(b, i)) != 0) return false;
        }
        return true;
    }
    if (a->size_bytes == 0) return true;
    unsigned bits = dtype_find(a->dtype)->bits;
    if (bits >= 8) return memcmp(a->data, b->data, a->size_bytes) == 0;
    /* The last byte may have padding of any value. */
    if (memcmp(a->data, b->data, a->size_bytes - 1) != 0) return false;
    for (int64_t i = (int64_t)(a->size_bytes - 1) * (8 / bits); i < a->n_elements; i++) {
        if (load_bits(a, i, bits) != load_bits(b, i, bits)) return false;
    }
    return true;
}

static bool same_number(number a, number b)
{
    if (a.kind == IS_FLOAT && b.kind == IS_FLOAT) return a.f == b.f || (isnan(a.f) && isnan(b.f));
    if (a.kind == IS_FLOAT) return same_number(b, a);
    /* Here a is an integer: an integral float in its range is compared as an integer, so that
     * neither is rounded. */
    if (b.kind == IS_FLOAT) {
        if (isnan(b.f) || b.f != trunc(b.f)) return false;
        if (a.kind == IS_SIGNED) return b.f >= -0x1p63 && b.f < 0x1p63 && (int64_t)b.f == a.i;
        return b.f >= 0.0 && b.f < 0x1p64 && (uint64_t)b.f == a.u;
    }
    if (a.kind == IS_SIGNED && b.kind == IS_SIGNED) return a.i == b.i;
    if (a.kind == IS_SIGNED) return a.i >= 0 && (uint64_t)a.i == b.u;
    if (b.kind == IS_SIGNED) return b.i >= 0 && (uint64_t)b.i == a.u;
    return a.u == b.u;
}

bool tensor_equal_numbers(const tensor *a, const tensor *b)
{
    if (!is_number(a->dtype) || !is_number(b->dtype) || !shape_equal(&a->dims, &b->dims))
        return false;
    for (int64_t i = 0; i < a->n_elements; i++) {
        if (!same_number(load(a, i), load(b, i))) return false;
    }
    return true;
}
