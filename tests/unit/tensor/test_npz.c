/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests .npz files: written by NumPy, written here, zip64, damaged, decompression bombs.
 */
#include "support/unit.h"

#include "support/bytes.h"
#include "support/fakes/failing_alloc.h"
#include "support/scratch.h"

#include "base/hash_map.h"
#include "base/memory.h"
#include "tensor/formats/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* numpy.savez_compressed(x=arange(6, '<f4').reshape(2, 3), names_y=array([[1, -2], [3, -4]],
 * '>i2', order='F')) */
static const char deflated_hex[] =
    "504b03042d0000000800000021004fe9002affffffffffffffff05001400782e6e7079010010009800000000"
    "00000055000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f5452"
    "9498179f5f94920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e063068b007120e40"
    "04c40d40bcc00100504b03042d000000080000002100cebe75e9ffffffffffffffff0b0014006e616d65735f"
    "792e6e70790100100088000000000000004e000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46e"
    "a5a06e9769a4aea3a09e965f54529498179f5f94920a120f292a4d050a17672416a402b91a463a0a469a3a0a"
    "b50ae4032e064606e6fffffeff0100504b01022d032d0000000800000021004fe9002a550000009800000005"
    "0000000000000000000000800100000000782e6e7079504b01022d032d000000080000002100cebe75e94e00"
    "0000880000000b000000000000000000000080018c0000006e616d65735f792e6e7079504b05060000000002"
    "0002006c000000170100000000";
/* numpy.savez(s=float64(1.5)) */
static const char stored_hex[] =
    "504b03042d000000000000002100297689ebffffffffffffffff05001400732e6e7079010010008800000000"
    "0000008800000000000000934e554d5059010076007b276465736372273a20273c6638272c2027666f727472"
    "616e5f6f72646572273a2046616c73652c20277368617065273a2028292c207d202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020202020200a000000000000f83f504b01022d032d000000000000002100297689eb880000008800000005"
    "0000000000000000000000800100000000732e6e7079504b0506000000000100010033000000bf0000000000";

TEST(npz__reads_what_numpy_wrote)
{
    size_t n;
    npz_reader r;
    tensor *t;
    uint8_t *bytes = bytes_from_hex(deflated_hex, &n);
    assert_ok(npz_open_memory(bytes, n, &r));
    assert_int_equal(r.count, 2);
    assert_string_equal(r.names[0], "x");
    assert_string_equal(r.names[1], "names_y");
    assert_int_equal(npz_find(&r, "names_y"), 1);
    assert_true(npz_find(&r, "x.npy") == HASH_MAP_NONE);
    assert_ok(npz_read(&r, 0, &t));
    for (int i = 0; i < 6; i++) assert_true(tensor_get_float(t, i) == i);
    assert_int_equal(t->dims.dims[1], 3);
    tensor_free(t);
    assert_ok(npz_read(&r, 1, &t));
    for (int i = 0; i < 4; i++) assert_int_equal(tensor_get_int(t, i), i % 2 ? -1 - i : 1 + i);
    tensor_free(t);
    assert_error(npz_read(&r, 2, &t), CLG_ERROR_INVALID_ARGUMENT, "2 arrays");
    npz_close(&r);
    npz_close(&r);
    free(bytes);

    bytes = bytes_from_hex(stored_hex, &n);
    assert_ok(npz_open_file(scratch_file("s.npz", bytes, n), &r));
    assert_ok(npz_read(&r, 0, &t));
    assert_int_equal(t->dims.rank, 0);
    assert_true(tensor_get_float(t, 0) == 1.5);
    tensor_free(t);
    npz_close(&r);
    free(bytes);
}

/* Opens an archive and reads all of its arrays. */
static clg_status read_all(const void *data, size_t n)
{
    npz_reader r;
    CLG_TRY(npz_open_memory(data, n, &r));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < r.count && status == CLG_OK; i++) {
        tensor *t;
        status = npz_read(&r, i, &t);
        assert_true((status == CLG_OK) == (t != NULL));
        tensor_free(t);
    }
    npz_close(&r);
    return status;
}

static void refuse(void *user, const uint8_t *data, size_t n)
{
    (void)user;
    assert_int_equal(read_all(data, n), CLG_ERROR_IO);
    assert_true(error_text()[0] != '\0');
}

static void survive(void *user, const uint8_t *data, size_t n)
{
    (void)user;
    assert_true(read_all(data, n) <= 0);
}

TEST(npz__prefixes_are_refused_and_changes_survived)
{
    static const char *const files[] = {deflated_hex, stored_hex};
    size_t n_live = memory_n_live();
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        uint8_t *bytes = bytes_from_hex(files[i], &n);
        bytes_each_prefix(bytes, n, refuse, NULL);
        bytes_each_damage(bytes, n, survive, NULL);
        free(bytes);
    }
    assert_int_equal(memory_n_live(), n_live);
}

/* Reads the file `hex` with n_bytes at `offset` replaced by `change`; returns the status. */
static clg_status read_changed(const char *hex, size_t offset, const char *change, size_t n_bytes)
{
    size_t n;
    uint8_t *bytes = bytes_from_hex(hex, &n);
    assert_true(offset + n_bytes <= n);
    memcpy(bytes + offset, change, n_bytes);
    clg_status status = read_all(bytes, n);
    free(bytes);
    return status;
}

/* Offsets in the stored file: of its data, its record in the central directory, and its end record.
 */
enum { DATA = 55, RECORD = 191, END = 242 };

TEST(npz__refuses)
{
    assert_error(read_all("", 0), CLG_ERROR_IO, "no end of a directory");
    assert_error(read_changed(stored_hex, DATA + 135, "\x01", 1), CLG_ERROR_IO,
                 "array 's': damaged ZIP file: the checksum");
    assert_error(read_changed(stored_hex, RECORD + 8, "\x01", 1), CLG_ERROR_IO, "encrypted");
    assert_error(read_changed(stored_hex, RECORD + 10, "\x0c", 1), CLG_ERROR_IO, "method 12");
    assert_error(read_changed(stored_hex, RECORD + 20, "\x87", 1), CLG_ERROR_IO, "two sizes");
    assert_error(read_changed(stored_hex, RECORD + 20, "\x87\0\0\0\x87", 5), CLG_ERROR_IO,
                 "announces");
    assert_error(read_changed(stored_hex, RECORD + 20, "\x89\0\0\0\x89", 5), CLG_ERROR_IO,
                 "truncated");
    assert_error(read_changed(stored_hex, RECORD + 42, "\xf0", 1), CLG_ERROR_IO, "outside");
    assert_error(read_changed(stored_hex, RECORD + 46, "t", 1), CLG_ERROR_IO, "two names");
    assert_error(read_changed(stored_hex, RECORD + 46, "\0", 1), CLG_ERROR_IO, "NUL");
    assert_error(read_changed(stored_hex, RECORD + 20, "\xff\xff\xff\xff", 4), CLG_ERROR_IO,
                 "truncated");
    assert_error(read_changed(stored_hex, END + 4, "\x01", 1), CLG_ERROR_IO, "several parts");
    assert_error(read_changed(stored_hex, END + 10, "\x02", 1), CLG_ERROR_IO, "too small");
    assert_error(read_changed(stored_hex, END + 10, "\xff\xff", 2), CLG_ERROR_IO, "zip64");
    assert_error(read_changed(stored_hex, END + 12, "\xff\xff", 2), CLG_ERROR_IO, "outside");
    assert_error(read_changed(stored_hex, END + 16, "\xc0", 1), CLG_ERROR_IO, "outside");
}

TEST(npz__bombs_do_not_go_off)
{
    /* The deflated file's first record is at 0x117, with the sizes at +20 and +24. First a size to
     * which 85 bytes cannot expand. */
    assert_error(read_changed(deflated_hex, 0x117 + 24, "\xff\xff\xff\x7f", 4), CLG_ERROR_IO,
                 "expand");
    /* A size to which they might: the .npy header contradicts it before anything is unpacked. */
    assert_error(read_changed(deflated_hex, 0x117 + 24, "\x99", 1), CLG_ERROR_IO,
                 "announces 24 bytes of data, but there are 25");
    assert_error(read_changed(deflated_hex, 0x117 + 24, "\x97", 1), CLG_ERROR_IO,
                 "announces 24 bytes of data, but there are 23");
    /* The packed data ends too early, or too late. */
    assert_error(read_changed(deflated_hex, 0x117 + 20, "\x50", 1), CLG_ERROR_IO, "unpacked");
    assert_error(read_changed(deflated_hex, 0x117 + 20, "\x56", 1), CLG_ERROR_IO,
                 "does not end as announced");
}

static tensor *counting(clg_dtype dtype, int64_t n)
{
    tensor *t;
    shape s = {.rank = 1, .dims = {n}};
    assert_ok(tensor_create(dtype, &s, &t));
    for (int64_t i = 0; i < n; i++) tensor_set_int(t, i, i % 100);
    return t;
}

TEST(npz__round_trip)
{
    const char *names[] = {"x", "layer/weights", "empty", "\xc3\xa4"};
    tensor *tensors[] = {counting(CLG_FLOAT32, 100000), counting(CLG_INT8, 3),
                         counting(CLG_FLOAT64, 0), counting(CLG_BOOL, 1)};
    const char *path = scratch_path("t.npz");
    for (int compress = 0; compress < 2; compress++) {
        npz_reader r;
        assert_ok(npz_save(path, 4, names, tensors, compress));
        assert_ok(npz_open_file(path, &r));
        assert_int_equal(r.count, 4);
        if (compress) assert_true(r.view.size_bytes < 100000);
        for (size_t i = 0; i < 4; i++) {
            tensor *t;
            assert_string_equal(r.names[i], names[i]);
            assert_ok(npz_read(&r, i, &t));
            assert_true(tensor_equal(t, tensors[i]));
            tensor_free(t);
        }
        npz_close(&r);
    }
    npz_reader r;
    assert_ok(npz_save(path, 0, NULL, NULL, false));
    assert_ok(npz_open_file(path, &r));
    assert_int_equal(r.count, 0);
    npz_close(&r);
    assert_ok(npz_save(path, 2, (const char *[]){"same", "same"}, tensors, false));
    assert_error(npz_open_file(path, &r), CLG_ERROR_IO, "two entries are called 'same.npy'");
    tensor *strings = counting(CLG_STRING, 1);
    assert_error(npz_save(path, 1, (const char *[]){"text"}, &strings, false),
                 CLG_ERROR_UNSUPPORTED_DTYPE, "array 'text'");
    tensor_free(strings);
    for (size_t i = 0; i < 4; i++) tensor_free(tensors[i]);
}

/* Writes all records in their zip64 form, as in files beyond 4 GiB, and reads them back. */
TEST(zip__zip64_round_trip)
{
    const char *path = scratch_path("large.zip");
    zip_writer w;
    zip_archive z;
    zip_stream s;
    file_view view;
    char back[5];
    for (int compress = 0; compress < 2; compress++) {
        assert_ok(zip_writer_open(path, compress, &w));
        w.zip64_from = 0;
        for (int i = 0; i < 3; i++) {
            char name[] = "entry 0";
            name[6] = (char)('0' + i);
            assert_ok(zip_writer_begin(&w, name));
            assert_ok(zip_writer_write(&w, "hel", 3));
            assert_ok(zip_writer_write(&w, "lo", 2));
            assert_ok(zip_writer_end(&w));
        }
        assert_ok(zip_writer_commit(&w));
        zip_writer_abandon(&w);
        assert_ok(file_view_open(path, 0, &view));
        assert_ok(zip_open(view.data, view.size_bytes, &z));
        assert_int_equal(z.count, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_ok(zip_stream_open(&z.entries[i], &s));
            assert_ok(zip_stream_read(&s, back, 2));
            assert_error(zip_stream_finish(&s), CLG_ERROR_IO, "does not end");
            zip_stream_close(&s);
            assert_ok(zip_stream_open(&z.entries[i], &s));
            assert_ok(zip_stream_read(&s, back, 5));
            assert_memory_equal(back, "hello", 5);
            assert_error(zip_stream_read(&s, back, 1), CLG_ERROR_IO, "shorter");
            assert_ok(zip_stream_finish(&s));
            zip_stream_close(&s);
        }
        zip_close(&z);
        bytes_each_prefix(view.data, view.size_bytes, refuse, NULL);
        bytes_each_damage(view.data, view.size_bytes, survive, NULL);
        file_view_close(&view);
    }
}

typedef struct fault_case {
    const char *path;
    tensor *tensors[2];
} fault_case;

static clg_status save_and_load(void *user)
{
    fault_case *c = user;
    const char *names[] = {"a", "b"};
    for (int compress = 0; compress < 2; compress++) {
        npz_reader r;
        CLG_TRY(npz_save(c->path, 2, names, c->tensors, compress));
        CLG_TRY(npz_open_file(c->path, &r));
        clg_status status = CLG_OK;
        for (size_t i = 0; i < r.count && status == CLG_OK; i++) {
            tensor *t;
            status = npz_read(&r, i, &t);
            tensor_free(t);
        }
        npz_close(&r);
        CLG_TRY(status);
    }
    return CLG_OK;
}

TEST(npz__survives_every_failing_allocation)
{
    fault_case c = {.path = scratch_path("fault.npz")};
    failing_alloc_install();
    c.tensors[0] = counting(CLG_FLOAT32, 10);
    c.tensors[1] = counting(CLG_INT16, 4);
    assert_true(fault_loop(save_and_load, &c) > 40);
    tensor_free(c.tensors[0]);
    tensor_free(c.tensors[1]);
    failing_alloc_remove();
}
