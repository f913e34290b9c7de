/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests .npy files: headers of all versions, orders of axes and bytes, damaged files, reading and
 * writing by rows.
 */
#include "support/unit.h"

#include "support/bytes.h"
#include "support/fakes/failing_alloc.h"
#include "support/platform.h"
#include "support/scratch.h"

#include "base/memory.h"
#include "tensor/formats/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct made_file {
    uint8_t bytes[1024];
    size_t n;
} made_file;

/* Makes a file with this version, header dictionary and data. */
static made_file make(int version, const char *dictionary, const void *data, size_t data_bytes)
{
    made_file f = {.n = version > 1 ? 12 : 10};
    size_t length = strlen(dictionary);
    memcpy(f.bytes, "\x93NUMPY", 6);
    f.bytes[6] = (uint8_t)version;
    f.bytes[8] = (uint8_t)length;
    f.bytes[9] = (uint8_t)(length >> 8);
    memcpy(f.bytes + f.n, dictionary, length);
    f.n += length;
    if (data_bytes > 0) memcpy(f.bytes + f.n, data, data_bytes);
    f.n += data_bytes;
    return f;
}

static clg_status read_file(const made_file *f, tensor **out_tensor)
{
    return npy_from_memory(f->bytes, f->n, NULL, out_tensor);
}

static clg_status read_made(int version, const char *dictionary, const void *data, size_t n,
                            tensor **out_tensor)
{
    made_file f = make(version, dictionary, data, n);
    return read_file(&f, out_tensor);
}

TEST(npy__reads_every_version_and_notation)
{
    static const char *const spellings[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }  \n",
        "{\"shape\":(2L,1L,),\"descr\":\"<f4\",\"fortran_order\":False}",
        "  {'shape' : ( 2 , 1 ) , 'fortran_order' : False , 'descr' : '=f4' } \n",
    };
    for (int version = 1; version <= 3; version++) {
        for (size_t i = 0; i < 3; i++) {
            tensor *t;
            assert_ok(read_made(version, spellings[i], "\0\0\x80\x3f\0\0\0\x40", 8, &t));
            assert_int_equal(t->dims.rank, 2);
            assert_int_equal(t->dims.dims[0], 2);
            assert_true(tensor_get_float(t, 0) == 1.0 && tensor_get_float(t, 1) == 2.0);
            tensor_free(t);
        }
    }
}

TEST(npy__reads_every_dtype_in_both_byte_orders)
{
    static const struct row {
        const char *kind;
        clg_dtype dtype;
        uint8_t little[8];
        double value;
    } rows[] = {
        {"f2", CLG_FLOAT16, {0, 0xc2}, -3.0},
        {"f4", CLG_FLOAT32, {0, 0, 0x40, 0xc0}, -3.0},
        {"f8", CLG_FLOAT64, {0, 0, 0, 0, 0, 0, 0x08, 0xc0}, -3.0},
        {"i1", CLG_INT8, {0xfd}, -3.0},
        {"i2", CLG_INT16, {0xfd, 0xff}, -3.0},
        {"i4", CLG_INT32, {0xfd, 0xff, 0xff, 0xff}, -3.0},
        {"i8", CLG_INT64, {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -3.0},
        {"u1", CLG_UINT8, {7}, 7.0},
        {"u2", CLG_UINT16, {7, 1}, 263.0},
        {"u4", CLG_UINT32, {7, 1}, 263.0},
        {"u8", CLG_UINT64, {7, 1}, 263.0},
        {"b1", CLG_BOOL, {2}, 1.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = dtype_find(rows[i].dtype)->bits / 8;
        for (const char *order = size > 1 ? "<>" : "|<>"; *order; order++) {
            char dictionary[100];
            uint8_t data[8];
            tensor *t;
            for (size_t b = 0; b < size; b++)
                data[b] = rows[i].little[*order == '>' ? size - 1 - b : b];
            (void)snprintf(dictionary, sizeof dictionary,
                           "{'descr': '%c%s', 'fortran_order': False, 'shape': ()}", *order,
                           rows[i].kind);
            assert_ok(read_made(1, dictionary, data, size, &t));
            assert_int_equal(t->dtype, rows[i].dtype);
            assert_int_equal(t->dims.rank, 0);
            if (tensor_get_float(t, 0) != rows[i].value) fail_msg("%c%s", *order, rows[i].kind);
            tensor_free(t);
        }
    }
}

TEST(npy__transposes_fortran_order)
{
    /* Element [i,j,k] of shape [2,3,4] is i*100 + j*10 + k; stored with i fastest, big-endian. */
    uint8_t data[48];
    size_t at = 0;
    for (int k = 0; k < 4; k++) {
        for (int j = 0; j < 3; j++) {
            for (int i = 0; i < 2; i++) {
                data[at++] = 0;
                data[at++] = (uint8_t)(i * 100 + j * 10 + k);
            }
        }
    }
    tensor *t;
    assert_ok(
        read_made(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 4)}", data, 48, &t));
    for (int e = 0; e < 24; e++)
        assert_int_equal(tensor_get_int(t, e), e / 12 * 100 + e / 4 % 3 * 10 + e % 4);
    tensor_free(t);
    assert_ok(
        read_made(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (0, 3, 4)}", "", 0, &t));
    tensor_free(t);
    assert_ok(read_made(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (3,)}", "abc", 3, &t));
    assert_memory_equal(t->data, "abc", 3);
    tensor_free(t);
}

static const struct refused {
    const char *dictionary;
    size_t n;
    clg_status status;
    const char *words;
} refused_files[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, CLG_ERROR_IO,
     "announces 8 bytes of data, but there are 4"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 8, CLG_ERROR_IO, "announces 4"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", 8, CLG_ERROR_IO,
     "too large"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 2)}", 0,
     CLG_ERROR_IO, "too large"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", 8, CLG_ERROR_IO,
     "dimension"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 8, CLG_ERROR_IO, "dimension"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4, CLG_ERROR_IO,
     "rank"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", 8, CLG_ERROR_IO, "tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2}", 8, CLG_ERROR_IO, "does not end"},
    {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", 8, CLG_ERROR_IO, "boolean"},
    {"{'descr': '<f4', 'fortran_order': False, 'sharp': (2,)}", 8, CLG_ERROR_IO, "not known"},
    {"{'descr': '<f4', 'fortran_order': False}", 8, CLG_ERROR_IO, "lacks"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", 8, CLG_ERROR_IO, "does not end"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", 8, CLG_ERROR_IO, "follows"},
    {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}", 8, CLG_ERROR_IO, "broken"},
    {"['descr']", 8, CLG_ERROR_IO, "dictionary"},
    {"", 8, CLG_ERROR_IO, "dictionary"},
    {"{'descr': 4, 'fortran_order': False, 'shape': (2,)}", 8, CLG_ERROR_IO, "not a string"},
    {"{'descr': '<V2', 'fortran_order': False, 'shape': (2,)}", 4, CLG_ERROR_UNSUPPORTED_DTYPE,
     "'<V2'"},
    {"{'descr': '<U4', 'fortran_order': False, 'shape': (2,)}", 32, CLG_ERROR_UNSUPPORTED_DTYPE,
     "'<U4'"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 8, CLG_ERROR_UNSUPPORTED_DTYPE,
     "'|O'"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", 16, CLG_ERROR_UNSUPPORTED_DTYPE,
     "'<c8'"},
    {"{'descr': '', 'fortran_order': False, 'shape': (2,)}", 8, CLG_ERROR_UNSUPPORTED_DTYPE, "''"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8,
     CLG_ERROR_UNSUPPORTED_DTYPE, "records"},
};

TEST(npy__refuses)
{
    static const uint8_t zeros[64];
    for (size_t i = 0; i < sizeof refused_files / sizeof refused_files[0]; i++) {
        tensor *t;
        clg_status status =
            read_made(1, refused_files[i].dictionary, zeros, refused_files[i].n, &t);
        if (status != refused_files[i].status)
            fail_msg("row %zu gave %s: %s", i, status_name(status), error_text());
        if (!strstr(error_text(), refused_files[i].words))
            fail_msg("row %zu says: %s", i, error_text());
        assert_null(t);
    }
    tensor *t;
    (void)read_made(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (2,)}", zeros, 4, &t);
    assert_non_null(strstr(error_hint_text(), "bfloat16"));
    assert_error(read_made(4, "{}", zeros, 8, &t), CLG_ERROR_IO, "version 4.0");
    assert_error(npy_from_memory("not numpy at all", 16, NULL, &t), CLG_ERROR_IO, "does not begin");
    made_file f = make(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", zeros, 8);
    f.bytes[10] = 0xff;
    assert_error(read_file(&f, &t), CLG_ERROR_IO, "too long");
    f.bytes[10] = 0;
    f.bytes[9] = 0xff;
    assert_error(read_file(&f, &t), CLG_ERROR_IO, "truncated");
}

static void refuse(void *user, const uint8_t *data, size_t n)
{
    tensor *t;
    (void)user;
    assert_int_equal(npy_from_memory(data, n, NULL, &t), CLG_ERROR_IO);
    assert_true(error_text()[0] != '\0');
}

static void survive(void *user, const uint8_t *data, size_t n)
{
    tensor *t;
    (void)user;
    clg_status status = npy_from_memory(data, n, NULL, &t);
    assert_true((status == CLG_OK) == (t != NULL));
    tensor_free(t);
}

TEST(npy__prefixes_are_refused_and_changes_survived)
{
    size_t n_live = memory_n_live();
    for (int version = 1; version <= 2; version++) {
        made_file f = make(version, "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 2), }\n",
                           "0123456789abcdef", 16);
        bytes_each_prefix(f.bytes, f.n, refuse, NULL);
        bytes_each_damage(f.bytes, f.n, survive, NULL);
    }
    assert_int_equal(memory_n_live(), n_live);
}

static int n_held;
static void hold(void *user)
{
    (void)user;
    n_held++;
}
static void release(void *user)
{
    (void)user;
    n_held--;
}

TEST(npy__shares_memory_that_needs_no_change)
{
    _Alignas(64) uint8_t bytes[256];
    tensor_owner owner = {.retain = hold, .release = release};
    char header[NPY_HEADER_TEXT_BYTES];
    size_t n;
    shape s = {.rank = 1, .dims = {3}};
    tensor *t;
    assert_ok(npy_format_header(CLG_FLOAT64, &s, 0, header, &n));
    assert_int_equal(n % 64, 0);
    memcpy(bytes, header, n);
    memset(bytes + n, 0, 24);
    assert_ok(npy_from_memory(bytes, n + 24, &owner, &t));
    assert_ptr_equal(t->data, bytes + n);
    assert_int_equal(n_held, 1);
    tensor_free(t);
    assert_int_equal(n_held, 0);
    *strchr((char *)bytes + 10, '<') = '>';
    assert_ok(npy_from_memory(bytes, n + 24, &owner, &t));
    assert_int_equal(n_held, 0);
    tensor_free(t);
}

TEST(npy__round_trip_through_files)
{
    static const shape shapes[] = {
        {0, {0}}, {1, {7}}, {2, {0, 3}}, {4, {2, 3, 1, 2}}, {8, {1, 2, 1, 2, 1, 2, 1, 2}}};
    static const clg_dtype dtypes[] = {CLG_FLOAT16, CLG_FLOAT32, CLG_FLOAT64, CLG_INT8,
                                       CLG_INT16,   CLG_INT32,   CLG_INT64,   CLG_UINT8,
                                       CLG_UINT16,  CLG_UINT32,  CLG_UINT64,  CLG_BOOL};
    const char *path = scratch_path("t.npy");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            tensor *t, *back;
            assert_ok(tensor_create(dtypes[d], &shapes[i], &t));
            for (int64_t e = 0; e < t->n_elements; e++) tensor_set_int(t, e, e * 3);
            assert_ok(npy_save(path, t));
            assert_ok(npy_load(path, &back));
            assert_true(tensor_equal(t, back));
            tensor_free(back);
            tensor_free(t);
        }
    }
    tensor *t;
    assert_error(npy_load(scratch_path("absent.npy"), &t), CLG_ERROR_IO, "absent.npy");
    assert_error(npy_load(scratch_file("short.npy", "\x93NUMPY", 6), &t), CLG_ERROR_IO,
                 "short.npy': no valid .npy");
}

TEST(npy__writes_what_numpy_writes)
{
    char header[NPY_HEADER_TEXT_BYTES];
    size_t n;
    shape s = {.rank = 2, .dims = {2, 3}};
    assert_ok(npy_format_header(CLG_FLOAT32, &s, 0, header, &n));
    assert_int_equal(n, 128);
    assert_memory_equal(
        header, "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ",
        70);
    assert_int_equal(header[127], '\n');
    s.rank = 1;
    assert_ok(npy_format_header(CLG_BOOL, &s, 200, header, &n));
    assert_int_equal(n, 200);
    assert_memory_equal(header + 10, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), } ",
                        58);
    assert_error(npy_format_header(CLG_BFLOAT16, &s, 0, header, &n), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "bfloat16");
    assert_true(error_hint_text()[0] != '\0');
    assert_error(npy_format_header(CLG_STRING, &s, 0, header, &n), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "string");
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void check_rows(const char *path, int64_t first, int64_t n)
{
    npy_reader reader;
    int16_t rows[30];
    assert_ok(npy_reader_open(path, &reader));
    assert_int_equal(reader.info.dims.dims[0], 10);
    assert_ok(npy_reader_read(&reader, first, n, n ? rows : NULL));
    npy_reader_close(&reader);
    npy_reader_close(&reader);
    for (int64_t i = 0; i < n * 3; i++) assert_int_equal(rows[i], first * 3 + i);
}

TEST(rows__are_read_from_anywhere)
{
    tensor *t;
    int16_t rows[30];
    shape s = {.rank = 2, .dims = {10, 3}};
    npy_reader reader;
    assert_ok(tensor_create(CLG_INT16, &s, &t));
    for (int64_t i = 0; i < 30; i++) tensor_set_int(t, i, i);
    const char *path = scratch_path("rows.npy");
    assert_ok(npy_save(path, t));
    check_rows(path, 0, 10);
    check_rows(path, 4, 3);
    check_rows(path, 10, 0);
    assert_ok(npy_reader_open(path, &reader));
    assert_error(npy_reader_read(&reader, 8, 3, rows), CLG_ERROR_INVALID_ARGUMENT,
                 "3 rows from row 8");
    assert_error(npy_reader_read(&reader, -1, 1, rows), CLG_ERROR_INVALID_ARGUMENT, "rows");
    assert_error(npy_reader_read(&reader, 1, INT64_MAX, rows), CLG_ERROR_INVALID_ARGUMENT, "rows");
    for (int64_t i = 9; i >= 0; i--) { /* in any order */
        assert_ok(npy_reader_read(&reader, i, 1, rows));
        assert_int_equal(rows[2], i * 3 + 2);
    }
    assert_ok(npy_save(scratch_path("short.npy"), t));
    npy_reader_close(&reader);
    assert_ok(npy_reader_open(scratch_path("short.npy"), &reader));
    assert_int_equal(truncate(scratch_path("short.npy"), 150), 0);
    assert_error(npy_reader_read(&reader, 0, 10, rows), CLG_ERROR_IO, "shorter");
    assert_ok(npy_reader_read(&reader, 0, 1, rows));
    npy_reader_close(&reader);
    assert_error(npy_reader_open(platform_null_device, &reader), CLG_ERROR_IO, "regular");
    tensor_free(t);

    uint8_t fortran[60];
    for (size_t i = 0; i < 30; i++) {
        fortran[2 * i] = 0;
        fortran[2 * i + 1] = (uint8_t)(i % 10 * 3 + i / 10);
    }
    made_file f = make(1, "{'descr': '>i2', 'fortran_order': True, 'shape': (10, 3)}", fortran, 60);
    path = scratch_file("fortran.npy", f.bytes, f.n);
    check_rows(path, 0, 10);
    check_rows(path, 7, 2);
    f = make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "x", 1);
    assert_error(npy_reader_open(scratch_file("scalar.npy", f.bytes, f.n), &reader),
                 CLG_ERROR_SHAPE, "scalar");
}

TEST(rows__are_written_one_after_another)
{
    const char *path = scratch_path("written.npy");
    npy_writer writer;
    shape any = {.rank = 2, .dims = {DIM_UNKNOWN, 3}}, scalar = {.rank = 0},
          other = {.rank = 2, .dims = {2, 4}};
    tensor *rows, *back;
    assert_ok(npy_writer_open(path, CLG_INT32, &any, &writer));
    int64_t next = 0;
    for (int64_t n = 0; n < 4; n++) { /* 0 + 1 + 2 + 3 rows */
        shape s = {.rank = 2, .dims = {n, 3}};
        assert_ok(tensor_create(CLG_INT32, &s, &rows));
        for (int64_t i = 0; i < rows->n_elements; i++) tensor_set_int(rows, i, next++);
        assert_ok(npy_writer_append(&writer, rows));
        tensor_free(rows);
    }
    assert_ok(tensor_create(CLG_INT32, &other, &rows));
    assert_error(npy_writer_append(&writer, rows), CLG_ERROR_SHAPE,
                 "int32 [2,4] do not go on a file of int32 [?,3]");
    tensor_free(rows);
    assert_ok(tensor_create(CLG_INT32, &scalar, &rows));
    assert_error(npy_writer_append(&writer, rows), CLG_ERROR_SHAPE, "do not go on");
    tensor_free(rows);
    assert_false(file_exists(path));
    assert_ok(npy_writer_commit(&writer));
    assert_ok(npy_load(path, &back));
    assert_int_equal(back->dims.dims[0], 6);
    for (int64_t i = 0; i < 18; i++) assert_int_equal(tensor_get_int(back, i), i);
    tensor_free(back);
    assert_error(npy_writer_open(path, CLG_INT32, &scalar, &writer), CLG_ERROR_SHAPE, "scalar");
    npy_writer_abandon(&writer);
    assert_error(npy_writer_open(path, CLG_STRING, &any, &writer), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "string");
    npy_writer_abandon(&writer);
}

/* Appends n rows to a part of a file: row r is {3 * r, 3 * r + 1, 3 * r + 2}. */
static void append_rows(npy_writer *writer, int64_t first, int64_t n)
{
    shape s = {.rank = 2, .dims = {n, 3}};
    tensor *rows;
    assert_ok(tensor_create(CLG_INT32, &s, &rows));
    for (int64_t i = 0; i < rows->n_elements; i++) tensor_set_int(rows, i, first * 3 + i);
    assert_ok(npy_writer_append(writer, rows));
    tensor_free(rows);
}

static void read_bytes(const char *path, char **out_data, size_t *out_n)
{
    assert_ok(file_read(path, 1 << 20, out_data, out_n));
}

TEST(parts__of_several_writers_make_the_file_of_one)
{
    const char *whole = scratch_path("whole.npy"), *path = scratch_path("parts.npy");
    shape dims = {.rank = 2, .dims = {7, 3}};
    npy_writer one, a, b, c;
    assert_ok(npy_writer_open(whole, CLG_INT32, &dims, &one));
    append_rows(&one, 0, 7);
    assert_ok(npy_writer_commit(&one));
    (void)file_remove(path);
    assert_ok(npy_writer_open_part(path, CLG_INT32, &dims, 4, &b));
    append_rows(&b, 4, 2);
    assert_ok(npy_writer_open_part(path, CLG_INT32, &dims, 0, &a));
    assert_ok(npy_writer_open_part(path, CLG_INT32, &dims, 7, &c)); /* no rows */
    append_rows(&a, 0, 3);
    append_rows(&b, 6, 1);
    npy_writer_abandon(&c); /* keeps what the others wrote */
    append_rows(&a, 3, 1);
    assert_ok(npy_writer_commit(&a));
    assert_ok(npy_writer_commit(&b));
    char *wanted, *found;
    size_t n_wanted, n_found;
    read_bytes(whole, &wanted, &n_wanted);
    read_bytes(path, &found, &n_found);
    assert_int_equal(n_found, n_wanted);
    assert_memory_equal(found, wanted, n_wanted);
    memory_free(wanted);
    memory_free(found);
}

TEST(parts__end_where_the_file_ends)
{
    const char *path = scratch_path("end.npy");
    shape dims = {.rank = 2, .dims = {4, 3}}, scalar = {.rank = 0}, s = {.rank = 2, .dims = {2, 3}};
    npy_writer writer;
    tensor *rows;
    (void)file_remove(path);
    assert_error(npy_writer_open_part(path, CLG_INT32, &dims, 5, &writer),
                 CLG_ERROR_INVALID_ARGUMENT, "row 5 is not in a file of 4 rows");
    assert_error(npy_writer_open_part(path, CLG_INT32, &scalar, 0, &writer), CLG_ERROR_SHAPE,
                 "scalar");
    assert_error(npy_writer_open_part(path, CLG_STRING, &dims, 0, &writer),
                 CLG_ERROR_UNSUPPORTED_DTYPE, "string");
    assert_error(
        npy_writer_open_part(scratch_path("no-folder/x.npy"), CLG_INT32, &dims, 0, &writer),
        CLG_ERROR_IO, "no-folder");
    assert_false(file_exists(path));
    assert_ok(npy_writer_open_part(path, CLG_INT32, &dims, 3, &writer));
    assert_ok(tensor_create(CLG_INT32, &s, &rows));
    assert_error(npy_writer_append(&writer, rows), CLG_ERROR_INVALID_ARGUMENT,
                 "2 rows do not go where 1 are left");
    tensor_free(rows);
    append_rows(&writer, 3, 1);
    assert_ok(npy_writer_commit(&writer));
}

static clg_status work(void *user)
{
    const char *path = user;
    shape s = {.rank = 2, .dims = {4, 3}};
    tensor *t = NULL, *back = NULL;
    float rows[6];
    npy_writer writer = {0};
    npy_reader reader = {0};
    clg_status status = tensor_create(CLG_FLOAT32, &s, &t);
    if (status == CLG_OK) status = npy_save(path, t);
    if (status == CLG_OK) status = npy_load(path, &back);
    if (status == CLG_OK) status = npy_writer_open(path, CLG_FLOAT32, &s, &writer);
    if (status == CLG_OK) status = npy_writer_append(&writer, t);
    if (status == CLG_OK) status = npy_writer_commit(&writer);
    if (status == CLG_OK) status = npy_reader_open(path, &reader);
    if (status == CLG_OK) status = npy_reader_read(&reader, 1, 2, rows);
    npy_writer_abandon(&writer);
    npy_reader_close(&reader);
    tensor_free(back);
    tensor_free(t);
    return status;
}

TEST(npy__survives_every_failing_allocation)
{
    char path[2048];
    (void)snprintf(path, sizeof path, "%s", scratch_path("fault.npy"));
    failing_alloc_install();
    assert_true(fault_loop(work, path) >= 10);
    failing_alloc_remove();
}
