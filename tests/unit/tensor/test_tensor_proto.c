/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests reading TensorProto: every storage field, external data, damaged messages, files. The
 * hexadecimal messages were written by onnx.helper.make_tensor, so that reader and test do not
 * share an error.
 */
#include "support/unit.h"

#include "support/bytes.h"
#include "support/fakes/failing_alloc.h"
#include "support/scratch.h"

#include "base/files.h"
#include "base/memory.h"
#include "tensor/formats/tensor_proto.h"

#include <stdlib.h>
#include <string.h>

/* Parses a TensorProto and makes a tensor of it. */
static clg_status from_bytes(const void *bytes, size_t n, const tensor_owner *owner,
                             tensor **out_tensor)
{
    tensor_proto proto;
    wire_cursor message = wire_open(bytes, n);
    *out_tensor = NULL;
    CLG_TRY(tensor_proto_parse(&message, &proto));
    return tensor_proto_to_tensor(&proto, owner, out_tensor);
}

static clg_status from_hex(const char *hex, tensor **out_tensor)
{
    size_t n;
    uint8_t *bytes = bytes_from_hex(hex, &n);
    clg_status status = from_bytes(bytes, n, NULL, out_tensor);
    free(bytes);
    return status;
}

TEST(proto__reads_what_onnx_wrote)
{
    static const struct row {
        const char *hex;
        clg_dtype dtype;
        int64_t n;
        double values[5];
    } rows[] = {
        {"0803100a2a0780788080038070420177", CLG_FLOAT16, 3, {1.0, -2.0, 0.5}},
        {"080510162a0478f10103420171", CLG_INT4, 5, {-8, 7, 1, -1, 3}},
        {"080210032a0bfdffffffffffffffff0104420169", CLG_INT8, 2, {-3, 4}},
        {"080210102a06c08003808101420162", CLG_BFLOAT16, 2, {-3, 4}},
        {"080210112a03c4014842026638", CLG_FLOAT8E4M3FN, 2, {-3, 4}},
        {"080310092a030100014202626f", CLG_BOOL, 3, {1, 0, 1}},
        {"0802100d4201755a0b01ffffffffffffffffff01", CLG_UINT64, 2, {1, 0x1p64}},
        {"0802080110014201724a080000c03f000000c0", CLG_FLOAT32, 2, {1.5, -2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tensor *t;
        assert_ok(from_hex(rows[i].hex, &t));
        assert_int_equal(t->dtype, rows[i].dtype);
        assert_int_equal(t->n_elements, rows[i].n);
        for (int64_t e = 0; e < rows[i].n; e++) {
            if (tensor_get_float(t, e) != rows[i].values[e])
                fail_msg("row %zu element %d", i, (int)e);
        }
        tensor_free(t);
    }
    tensor *t;
    assert_ok(from_hex("08021008320261623200420173", &t));
    assert_string_equal(tensor_get_string(t, 0), "ab");
    assert_string_equal(tensor_get_string(t, 1), "");
    tensor_free(t);
    assert_ok(from_hex("0802100e22100000803f0000004000004040000080bf420163", &t));
    assert_int_equal(t->dtype, CLG_COMPLEX64);
    assert_memory_equal(t->data, "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\xbf", 16);
    tensor_free(t);
}

/* ---- messages put together by hand ----------------------------------------------------------- */

#define F32 "\x10\x01"
#define I32 "\x10\x06"
#define I64 "\x10\x07"
#define F64 "\x10\x0b"
#define U32 "\x10\x0c"
#define MESSAGE(bytes) bytes, sizeof(bytes) - 1, NULL

TEST(proto__reads_fields_packed_and_scattered)
{
    tensor *t;
    /* float_data one by one; the first dimension packed, the second alone. */
    assert_ok(from_bytes(MESSAGE("\x25\0\0\x80\x3f" F32 "\x0a\x01\x01\x08\x02\x25\0\0\0\x40"), &t));
    assert_int_equal(t->dims.rank, 2);
    assert_true(tensor_get_float(t, 0) == 1.0 && tensor_get_float(t, 1) == 2.0);
    tensor_free(t);
    /* int64_data: 1 packed, -1 alone; double_data; uint32 in uint64_data. */
    assert_ok(from_bytes(
        MESSAGE("\x08\x02" I64 "\x3a\x01\x01\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &t));
    assert_int_equal(tensor_get_int(t, 1), -1);
    tensor_free(t);
    assert_ok(from_bytes(MESSAGE(F64 "\x51\0\0\0\0\0\0\xf8\x3f"), &t));
    assert_true(tensor_get_float(t, 0) == 1.5);
    assert_int_equal(t->dims.rank, 0);
    tensor_free(t);
    assert_ok(from_bytes(MESSAGE("\x08\x01" U32 "\x5a\x05\xff\xff\xff\xff\x0f"), &t));
    assert_true(tensor_get_int(t, 0) == 4294967295);
    tensor_free(t);
    /* A tensor without elements needs no data; unknown fields and doc_string are skipped. */
    assert_ok(from_bytes(MESSAGE("\x08\x00" F32 "\x62\x03"
                                 "doc"
                                 "\xfa\x01\x01z"),
                         &t));
    assert_int_equal(t->n_elements, 0);
    tensor_free(t);
}

static const struct refused {
    const char *bytes;
    size_t n;
    const char *words;
} refused_messages[] = {
#define ROW(bytes, words)                                                                          \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, words                                                            \
    }
    ROW("", "element type"),
    ROW("\x10\x00", "element type"),
    ROW("\x10\x7f", "element type"),
    ROW(F32, "a tensor without a name: there is no data"),
    ROW("\x42\x03"
        "abc" F32,
        "tensor 'abc': there is no data"),
    ROW("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" F32, "dimension 0 is negative: -1"),
    ROW("\x0a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01" F32, "rank"),
    ROW("\x0a\x0f\xff\xff\xff\xff\xff\xff\xff\x7f\x80\x80\x80\x80\x80\x80\x01" F32, "too large"),
    ROW("\x08\x00\x0a\x0a\xff\xff\xff\xff\x0f\xff\xff\xff\xff\x0f\x08\x80\x08" F32, "too large"),
    ROW("\x08\x02" F32 "\x4a\x04\0\0\0\0", "[2] takes 8 bytes, but its data has 4"),
    ROW("\x08\x01" F32 "\x4a\x08\0\0\0\0\0\0\0\0", "takes 4 bytes"),
    ROW("\x08\x02" F32 "\x22\x04\0\0\0\0", "needs 2 numbers in float_data, which has 1"),
    ROW("\x08\x01" F32 "\x22\x08\0\0\0\0\0\0\0\0", "needs 1 numbers"),
    ROW("\x08\x01" F32 "\x22\x05\0\0\0\0\0", "truncated"),
    ROW("\x08\x00" F32 "\x22\x04\0\0\0\0", "needs 0 numbers"),
    ROW("\x08\x01" F32 "\x3a\x01\x01", "float32 cannot be in int64_data"),
    ROW("\x08\x01" F32 "\x22\x04\0\0\0\0\x4a\x04\0\0\0\0", "raw_data and in float_data"),
    ROW("\x08\x01"
        "\x10\x03"
        "\x2a\x02\x80\x02",
        "does not fit int8"),
    ROW("\x08\x01"
        "\x10\x09"
        "\x2a\x01\x02",
        "does not fit bool"),
    ROW("\x08\x01"
        "\x10\x02"
        "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        "does not fit uint8"),
    ROW("\x08\x01" U32 "\x5a\x06\x80\x80\x80\x80\x80\x01", "does not fit uint32"),
    ROW("\x08\x01" I32 "\x2a\x06\x80\x80\x80\x80\x80\x01", "does not fit int32"),
    ROW("\x08\x01"
        "\x10\x08"
        "\x4a\x01z",
        "strings cannot be raw"),
    ROW("\x08\x01"
        "\x10\x08"
        "\x32\x02z\0",
        "NUL"),
    ROW("\x08\x02"
        "\x10\x08"
        "\x32\x01z",
        "needs 2 numbers in string_data"),
    ROW(F32 "\x1a\x00", "segments"),
    ROW(F32 "\x70\x02", "data_location 2"),
    ROW(F32 "\x70\x01", "location of external data"),
    ROW("\x22\x00" F32 "\x20\x01", "wire type"),
    ROW("\x08\x01" F32 "\x25\0\0", "truncated"),
#undef ROW
};

TEST(proto__refuses)
{
    for (size_t i = 0; i < sizeof refused_messages / sizeof refused_messages[0]; i++) {
        tensor *t;
        clg_status status = from_bytes(refused_messages[i].bytes, refused_messages[i].n, NULL, &t);
        if (status != CLG_ERROR_INVALID_MODEL)
            fail_msg("row %zu gave %s: %s", i, status_name(status), error_text());
        if (!strstr(error_text(), refused_messages[i].words))
            fail_msg("row %zu says: %s", i, error_text());
        assert_null(t);
    }
}

static int n_retained;
static void retain(void *user) { n_retained += *(int *)user; }
static void release(void *user) { n_retained -= *(int *)user; }

/* Checks at every alignment that the tensor shares the last bytes of the message, which has dims
 * [1] and the element 1. */
static void check_shared(const char *message, size_t n_bytes)
{
    _Alignas(8) char block[32];
    int one = 1;
    tensor_owner owner = {.retain = retain, .release = release, .user = &one};
    for (size_t offset = 0; offset < 8; offset++) {
        tensor *t;
        memcpy(block + offset, message, n_bytes);
        assert_ok(from_bytes(block + offset, n_bytes, &owner, &t));
        assert_int_equal(n_retained, 1);
        assert_ptr_equal((char *)t->data, block + offset + n_bytes - t->size_bytes);
        assert_true(tensor_get_float(t, 0) == 1.0);
        tensor_free(t);
        assert_int_equal(n_retained, 0);
    }
}

TEST(proto__shares_data_stored_as_in_a_tensor)
{
    static const char raw[] = "\x08\x01" F32 "\x4a\x04\0\0\x80\x3f";
    static const char packed[] = "\x08\x01" F32 "\x22\x04\0\0\x80\x3f";
    static const char single[] = "\x08\x01" F32 "\x25\0\0\x80\x3f";
    static const char wide[] = "\x08\x01\x10\x0b\x52\x08\0\0\0\0\0\0\xf0\x3f";
    static const char pieces[] = "\x08\x02" F32 "\x25\0\0\x80\x3f\x25\0\0\0\x40";
    int one = 1;
    tensor_owner owner = {.retain = retain, .release = release, .user = &one};
    tensor *t;
    check_shared(raw, sizeof raw - 1);
    check_shared(packed, sizeof packed - 1);
    check_shared(single, sizeof single - 1);
    check_shared(wide, sizeof wide - 1);
    assert_ok(from_bytes(pieces, sizeof pieces - 1, &owner, &t));
    assert_int_equal(n_retained, 0);
    assert_true(tensor_get_float(t, 0) == 1.0 && tensor_get_float(t, 1) == 2.0);
    tensor_free(t);
}

/* ---- external data --------------------------------------------------------------------------- */

/* The bytes of a TensorProto with dims [2], float32, location "w.bin" and one more entry. */
#define EXTERNAL(entry) "\x08\x02" F32 "\x70\x01\x6a\x11\x0a\x08location\x12\x05w.bin" entry

static clg_status parse(const char *bytes, size_t n, tensor_proto *out_proto)
{
    wire_cursor message = wire_open(bytes, n);
    return tensor_proto_parse(&message, out_proto);
}

TEST(external__is_a_view_to_resolve)
{
    static const char bytes[] = EXTERNAL("\x6a\x0b\x0a\x06offset\x12\x01"
                                         "4"
                                         "\x6a\x0b\x0a\x06length\x12\x01"
                                         "8"
                                         "\x6a\x09\x0a\x04hash\x12\x01z");
    static const _Alignas(8) uint8_t file[12] = {9, 9, 9, 9, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    tensor_proto p;
    tensor *t;
    int one = 1;
    tensor_owner owner = {.retain = retain, .release = release, .user = &one};
    assert_ok(parse(bytes, sizeof bytes - 1, &p));
    assert_true(p.is_external);
    assert_true(wire_bytes_equal(p.location, "w.bin"));
    assert_int_equal(p.external_offset, 4);
    assert_int_equal(p.external_length, 8);
    assert_error(tensor_proto_to_tensor(&p, NULL, &t), CLG_ERROR_INVALID_MODEL, "another file");
    assert_ok(tensor_proto_resolve(&p, file, sizeof file, &owner, &t));
    assert_ptr_equal(t->data, file + 4);
    assert_true(tensor_get_float(t, 1) == 2.0);
    tensor_free(t);
    assert_error(tensor_proto_resolve(&p, file, 11, NULL, &t), CLG_ERROR_INVALID_MODEL,
                 "beyond its file of 11");
    assert_error(tensor_proto_resolve(&p, file, 3, NULL, &t), CLG_ERROR_INVALID_MODEL, "beyond");
    p.external_length = 4;
    assert_error(tensor_proto_resolve(&p, file, 12, NULL, &t), CLG_ERROR_INVALID_MODEL,
                 "4 bytes for a tensor of 8");
    p.external_offset = UINT64_MAX - 3;
    p.external_length = TENSOR_PROTO_NO_LENGTH;
    assert_error(tensor_proto_resolve(&p, file, 12, NULL, &t), CLG_ERROR_INVALID_MODEL, "beyond");
    p.is_external = false;
    assert_error(tensor_proto_resolve(&p, file, 12, NULL, &t), CLG_ERROR_INVALID_MODEL,
                 "not in another file");
}

TEST(external__refuses)
{
    static const char *const offsets[] = {"x", "-", " ", "9x"};
    for (size_t i = 0; i < 3; i++) {
        char bytes[] = EXTERNAL("\x6a\x0b\x0a\x06offset\x12\x01"
                                "0");
        tensor_proto p;
        bytes[sizeof bytes - 2] = offsets[i][0];
        assert_error(parse(bytes, sizeof bytes - 1, &p), CLG_ERROR_INVALID_MODEL,
                     "the offset of external data");
    }
    static const char empty[] = EXTERNAL("\x6a\x0a\x0a\x06length\x12\x00");
    static const char huge[] = EXTERNAL("\x6a\x1e\x0a\x06length\x12\x14"
                                        "18446744073709551616");
    static const char nul[] = "\x08\x02" F32 "\x70\x01\x6a\x11\x0a\x08location\x12\x05w.b\0n";
    static const char strings[] = "\x08\x02\x10\x08\x70\x01\x6a\x11\x0a\x08location\x12\x05w.bin";
    tensor_proto p;
    assert_error(parse(empty, sizeof empty - 1, &p), CLG_ERROR_INVALID_MODEL, "the length");
    assert_error(parse(huge, sizeof huge - 1, &p), CLG_ERROR_INVALID_MODEL, "the length");
    assert_error(parse(nul, sizeof nul - 1, &p), CLG_ERROR_INVALID_MODEL, "not a file name");
    assert_error(parse(strings, sizeof strings - 1, &p), CLG_ERROR_INVALID_MODEL,
                 "strings cannot be external");
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const char *const whole_messages[] = {
    "0803100a2a0780788080038070420177",
    "08021008320261623200420173",
    "0802100e22100000803f0000004000004040000080bf420163",
    "0802080110014201724a080000c03f000000c0",
    "0802100170016a110a086c6f636174696f6e1205772e62696e6a0b0a066f6666736574120134",
};

static void survive(void *user, const uint8_t *data, size_t n)
{
    tensor *t;
    (void)user;
    clg_status status = from_bytes(data, n, NULL, &t);
    assert_true(status <= 0);
    assert_true((status == CLG_OK) == (t != NULL));
    tensor_free(t);
}

/* Checks that a prefix of a message is rejected, except the prefix of *user bytes, which lacks only
 * the name. */
static void refuse_prefix(void *user, const uint8_t *data, size_t n)
{
    const size_t *needed = user;
    tensor *t;
    clg_status status = from_bytes(data, n, NULL, &t);
    if (n != *needed) assert_int_equal(status, CLG_ERROR_INVALID_MODEL);
    if (n != *needed) assert_true(error_text()[0] != '\0');
    tensor_free(t);
}

TEST(damage__prefixes_are_refused_and_changes_survived)
{
    size_t n_live = memory_n_live();
    for (size_t i = 0; i < sizeof whole_messages / sizeof whole_messages[0]; i++) {
        size_t n, needed = SIZE_MAX;
        uint8_t *bytes = bytes_from_hex(whole_messages[i], &n);
        if (i < 3) needed = n - 3; /* the name comes last */
        bytes_each_prefix(bytes, n, refuse_prefix, &needed);
        bytes_each_damage(bytes, n, survive, NULL);
        free(bytes);
    }
    assert_int_equal(memory_n_live(), n_live);
}

/* ---- files ----------------------------------------------------------------------------------- */

TEST(files__round_trip_every_dtype)
{
    const char *path = scratch_path("t.pb");
    for (int d = CLG_FLOAT32; d <= CLG_INT2; d++) {
        shape s = {.rank = 2, .dims = {3, 5}};
        tensor *t, *back;
        char *name;
        assert_ok(tensor_create((clg_dtype)d, &s, &t));
        for (int64_t i = 0; i < 15; i++) {
            tensor_set_int(t, i, i % 2);
            if (d == CLG_STRING && i > 0)
                assert_ok(tensor_set_string(t, i, "some text", (size_t)i % 9));
        }
        assert_ok(tensor_proto_save(path, "a name", t));
        assert_ok(tensor_proto_load(path, &name, &back));
        assert_string_equal(name, "a name");
        assert_true(tensor_equal(t, back));
        memory_free(name);
        tensor_free(back);
        assert_ok(tensor_proto_load(path, NULL, &back));
        tensor_free(back);
        tensor_free(t);
    }
    tensor *t;
    assert_error(tensor_proto_load(scratch_path("absent.pb"), NULL, &t), CLG_ERROR_IO, "absent.pb");
    assert_error(tensor_proto_load(scratch_file("bad.pb", "\x0b", 1), NULL, &t),
                 CLG_ERROR_INVALID_MODEL, "bad.pb");
    assert_null(t);
}

typedef struct fault_case {
    const char *path;
    const char *const *hex;
    size_t n_hex;
} fault_case;

static clg_status read_and_write(void *user)
{
    const fault_case *c = user;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < c->n_hex && status == CLG_OK; i++) {
        tensor *t = NULL, *back = NULL;
        char *name = NULL;
        status = from_hex(c->hex[i], &t);
        if (status == CLG_OK) status = tensor_proto_save(c->path, "name", t);
        if (status == CLG_OK) status = tensor_proto_load(c->path, &name, &back);
        memory_free(name);
        tensor_free(back);
        tensor_free(t);
    }
    return status;
}

TEST(files__survive_every_failing_allocation)
{
    fault_case c = {.path = scratch_path("fault.pb"), .hex = whole_messages, .n_hex = 4};
    assert_true(fault_loop_alone(read_and_write, &c) > 30);
}
