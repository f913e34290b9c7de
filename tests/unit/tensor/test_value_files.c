/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests values through the public functions: host tensors, wrapped memory, files, casts.
 */
#include "support/fakes/failing_alloc.h"
#include "support/fixtures/sized_data.h"
#include "support/scratch.h"
#include "support/unit.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <string.h>

static clg_value *floats(size_t n, const float *data)
{
    clg_value *v;
    assert_ok(clg_value_create(CLG_FLOAT32, 1, (int64_t[]){(int64_t)n}, &v));
    assert_ok(clg_value_write(v, data, n * sizeof *data));
    return v;
}

TEST(value__checks_what_it_is_given)
{
    clg_value *v;
    const int64_t dims[3] = {2, -1, INT64_MAX};
    assert_error(clg_value_create(CLG_FLOAT32, 2, dims, &v), CLG_ERROR_INVALID_ARGUMENT,
                 "is negative");
    assert_null(v);
    assert_error(clg_value_create((clg_dtype)99, 1, dims, &v), CLG_ERROR_INVALID_ARGUMENT, "99");
    assert_error(clg_value_create(CLG_FLOAT32, 9, dims, &v), CLG_ERROR_INVALID_ARGUMENT,
                 "rank of 9");
    assert_error(clg_value_create(CLG_FLOAT32, 1, NULL, &v), CLG_ERROR_INVALID_ARGUMENT, "dims");
    assert_error(clg_value_create(CLG_FLOAT64, 1, dims + 2, &v), CLG_ERROR_INVALID_ARGUMENT,
                 "too large to address");
    assert_error(clg_value_create(CLG_FLOAT32, 0, NULL, NULL), CLG_ERROR_INVALID_ARGUMENT,
                 "out_value");
    assert_error(sized_wrap(CLG_FLOAT32, 1, dims, NULL, NULL, NULL, &v), CLG_ERROR_INVALID_ARGUMENT,
                 "data");
    assert_error(clg_value_create_device(NULL, CLG_FLOAT32, 0, NULL, &v),
                 CLG_ERROR_INVALID_ARGUMENT, "context");
    assert_ok(clg_value_create(CLG_INT16, 1, dims, &v));
    assert_error(clg_value_write(v, dims, 3), CLG_ERROR_INVALID_ARGUMENT, "4 bytes");
    assert_error(clg_value_write(v, NULL, 4), CLG_ERROR_INVALID_ARGUMENT, "data");
    clg_value_free(v);
}

TEST(value__is_what_was_written)
{
    clg_value *v, *host;
    float back[6];
    assert_ok(clg_value_create(CLG_FLOAT32, 2, (int64_t[]){2, 3}, &v));
    assert_int_equal(clg_value_get_kind(v), CLG_VALUE_TENSOR);
    assert_int_equal(clg_value_dtype(v), CLG_FLOAT32);
    assert_int_equal(clg_value_rank(v), 2);
    assert_int_equal(clg_value_dims(v)[1], 3);
    assert_int_equal(clg_value_n_elements(v), 6);
    assert_int_equal(clg_value_size_bytes(v), 24);
    assert_true(clg_value_get_double(v, 5) == 0);
    assert_ok(clg_value_write(v, (float[]){1, 2, 3, 4, 5, 6}, 24));
    assert_ok(clg_value_read(v, back, sizeof back));
    assert_true(back[5] == 6 && clg_value_get_double(v, 5) == 6);
    assert_true(clg_value_get_double(v, 6) == 0 && clg_value_get_double(v, -1) == 0);
    assert_ok(clg_value_to_host(v, &host));
    assert_ptr_equal(host, v);
    clg_value_free(host);
    clg_value_free(clg_value_retain(v));
    clg_value_free(v);
    clg_value_free(clg_value_retain(NULL));
    assert_int_equal(clg_value_n_elements(NULL), 0);
    assert_null(clg_value_data(NULL));
}

static void count(void *user) { ++*(int *)user; }

TEST(wrap__releases_once)
{
    int n = 0;
    float data[2] = {1, 2};
    clg_value *v;
    assert_ok(sized_wrap(CLG_FLOAT32, 1, (int64_t[]){2}, data, count, &n, &v));
    assert_ptr_equal(clg_value_data(v), data);
    clg_value_free(clg_value_retain(v));
    assert_int_equal(n, 0);
    clg_value_free(v);
    assert_int_equal(n, 1);
}

TEST(file__gives_back_what_was_saved)
{
    clg_value *v = floats(3, (float[]){1.5f, -2, NAN}), *back;
    static const char *const names[] = {"v.npy", "v.PB"};
    for (size_t i = 0; i < 2; i++) {
        const char *path = scratch_path(names[i]);
        assert_ok(clg_value_save(v, path));
        assert_ok(clg_value_load(path, &back));
        assert_int_equal(clg_value_dtype(back), CLG_FLOAT32);
        assert_int_equal(clg_value_n_elements(back), 3);
        assert_memory_equal(clg_value_data(back), clg_value_data(v), 12);
        clg_value_free(back);
    }
    assert_error(clg_value_save(v, scratch_path("v.txt")), CLG_ERROR_INVALID_ARGUMENT,
                 ".npy or .pb");
    assert_error(clg_value_load(".npy", &back), CLG_ERROR_INVALID_ARGUMENT, ".npy or .pb");
    assert_error(clg_value_load(scratch_path("none.npy"), &back), CLG_ERROR_IO, "none.npy");
    assert_null(back);
    assert_error(clg_value_load(scratch_file("bad.npy", "bad", 3), &back), CLG_ERROR_IO, "bad.npy");
    clg_value_free(v);
}

/* Checks that files preserve each dtype. Seven elements of a packed dtype end within a byte. */
TEST(file__keeps_storage_types)
{
    const int64_t n = 7;
    const uint8_t bytes[7] = {0x21, 0x43, 0xf5, 0x07, 0x40, 0x38, 0x01};
    for (int dtype = CLG_FLOAT8E4M3FN; dtype <= CLG_INT2; dtype++) {
        clg_value *v, *back, *wide, *again;
        bool exact;
        const char *path = scratch_path("narrow.pb");
        assert_ok(clg_value_create((clg_dtype)dtype, 1, &n, &v));
        assert_ok(clg_value_write(v, bytes, clg_value_size_bytes(v)));
        assert_ok(clg_value_save(v, path));
        assert_ok(clg_value_load(path, &back));
        assert_int_equal(clg_value_dtype(back), dtype);
        assert_int_equal(clg_value_size_bytes(back), clg_value_size_bytes(v));
        assert_memory_equal(clg_value_data(back), bytes, clg_value_size_bytes(v));
        assert_ok(clg_value_cast(back, CLG_FLOAT32, &wide, &exact));
        assert_true(exact);
        for (int64_t i = 0; i < n; i++)
            assert_true(clg_value_get_double(wide, i) == clg_value_get_double(v, i));
        assert_ok(clg_value_cast(wide, (clg_dtype)dtype, &again, &exact));
        assert_true(exact);
        for (int64_t i = 0; i < n; i++)
            assert_true(clg_value_get_double(again, i) == clg_value_get_double(v, i));
        assert_error(clg_value_save(v, scratch_path("narrow.npy")), CLG_ERROR_UNSUPPORTED_DTYPE,
                     clg_dtype_name((clg_dtype)dtype));
        clg_value_free(again);
        clg_value_free(wide);
        clg_value_free(back);
        clg_value_free(v);
    }
}

TEST(npz__keeps_names)
{
    clg_value *v = floats(2, (float[]){1, 2}), *w = floats(1, (float[]){3}), **values;
    const char *path = scratch_path("set.npz");
    char **names;
    size_t n;
    assert_ok(clg_npz_save(path, (const char *[]){"first", "second"}, (clg_value *[]){v, w}, 2));
    assert_ok(clg_npz_load(path, &names, &values, &n));
    assert_int_equal(n, 2);
    size_t second = strcmp(names[0], "second") == 0 ? 0 : 1;
    assert_string_equal(names[second], "second");
    assert_true(clg_value_get_double(values[second], 0) == 3);
    clg_npz_free(names, values, n);
    clg_npz_free(NULL, NULL, 0);
    assert_error(clg_npz_load(scratch_file("bad.npz", "bad", 3), &names, &values, &n), CLG_ERROR_IO,
                 "bad.npz");
    assert_null(names);
    assert_error(clg_npz_save(path, (const char *[]){NULL}, (clg_value *[]){v}, 1),
                 CLG_ERROR_INVALID_ARGUMENT, "names[i]");
    clg_value_free(v);
    clg_value_free(w);
}

/* Returns whether casting a tensor of the single element `number` is exact. */
static bool is_exact(clg_dtype from, double number, clg_dtype to)
{
    clg_value *v, *made, *cast;
    bool exact;
    assert_ok(clg_value_create(CLG_FLOAT64, 0, NULL, &v));
    assert_ok(clg_value_write(v, &number, sizeof number));
    assert_ok(clg_value_cast(v, from, &made, NULL));
    assert_ok(clg_value_cast(made, to, &cast, &exact));
    assert_int_equal(clg_value_dtype(cast), to);
    clg_value_free(v);
    clg_value_free(made);
    clg_value_free(cast);
    return exact;
}

TEST(cast__says_whether_it_was_exact)
{
    assert_true(is_exact(CLG_FLOAT64, 0.5, CLG_FLOAT32));
    assert_false(is_exact(CLG_FLOAT64, 0.1, CLG_FLOAT32));
    assert_true(is_exact(CLG_FLOAT64, NAN, CLG_FLOAT32));
    assert_true(is_exact(CLG_FLOAT64, INFINITY, CLG_FLOAT16));
    assert_false(is_exact(CLG_FLOAT64, 1e6, CLG_FLOAT16));
    assert_true(is_exact(CLG_FLOAT32, 3, CLG_INT8));
    assert_false(is_exact(CLG_FLOAT32, 3.5, CLG_INT8));
    assert_false(is_exact(CLG_FLOAT32, 300, CLG_UINT8));
    assert_false(is_exact(CLG_FLOAT32, NAN, CLG_INT32));
    assert_false(is_exact(CLG_INT64, -1, CLG_UINT64));
    assert_true(is_exact(CLG_INT64, 255, CLG_UINT8));
    assert_false(is_exact(CLG_INT64, 256, CLG_UINT8));
    assert_true(is_exact(CLG_UINT8, 1, CLG_BOOL));
    assert_false(is_exact(CLG_UINT8, 2, CLG_BOOL));
    /* 2^63 - 1 becomes 2^63, although casting that back saturates to 2^63 - 1. */
    clg_value *v, *cast;
    bool exact;
    assert_ok(clg_value_create(CLG_INT64, 0, NULL, &v));
    assert_ok(clg_value_write(v, &(int64_t){INT64_MAX}, sizeof(int64_t)));
    assert_ok(clg_value_cast(v, CLG_FLOAT64, &cast, &exact));
    assert_false(exact);
    clg_value_free(cast);
    assert_ok(clg_value_cast(v, CLG_INT64, &cast, &exact));
    assert_true(exact);
    clg_value_free(cast);
    assert_error(clg_value_cast(v, CLG_STRING, &cast, &exact), CLG_ERROR_UNSUPPORTED_DTYPE,
                 "string");
    assert_null(cast);
    clg_value_free(v);
}

static clg_status files_once(void *user)
{
    const char *const *paths = user;
    clg_value *v = NULL, *cast = NULL, *back = NULL, **values = NULL;
    char **names = NULL;
    size_t n = 0;
    clg_status status = clg_value_create(CLG_FLOAT32, 1, (int64_t[]){4}, &v);
    if (status == CLG_OK) status = clg_value_cast(v, CLG_FLOAT64, &cast, NULL);
    if (status == CLG_OK) status = clg_value_save(cast, paths[0]);
    if (status == CLG_OK) status = clg_value_load(paths[0], &back);
    if (status == CLG_OK) status = clg_npz_save(paths[1], (const char *[]){"v"}, &v, 1);
    if (status == CLG_OK) status = clg_npz_load(paths[1], &names, &values, &n);
    clg_npz_free(names, values, n);
    clg_value_free(back);
    clg_value_free(cast);
    clg_value_free(v);
    return status;
}

TEST(files__survive_every_failed_allocation)
{
    const char *paths[2] = {scratch_path("faulty.npy"), scratch_path("faulty.npz")};
    assert_true(fault_loop_alone(files_once, paths) > 15);
}

/* ---- rows of .npy ---------------------------------------------------------------------------- */

static clg_status write_and_read_rows(void *user)
{
    const char *path = user;
    clg_npy_writer *w = NULL;
    clg_npy_reader *r = NULL;
    float rows[6] = {1, 2, 3, 4, 5, 6}, back[4] = {0};
    clg_status status = clg_npy_writer_open(path, CLG_FLOAT32, 2, (int64_t[]){-1, 2}, &w);
    if (status == CLG_OK) status = clg_npy_writer_append(w, 3, rows, sizeof rows);
    if (status == CLG_OK) status = clg_npy_writer_append(w, 0, NULL, 0);
    if (status == CLG_OK) status = clg_npy_writer_append(w, 1, rows, 8);
    if (status == CLG_OK) status = clg_npy_writer_commit(w);
    if (status == CLG_OK) status = clg_npy_reader_open(path, &r);
    if (status == CLG_OK) status = clg_npy_reader_read(r, 2, 2, back, sizeof back);
    if (status == CLG_OK) {
        assert_int_equal(clg_npy_reader_dtype(r), CLG_FLOAT32);
        assert_int_equal(clg_npy_reader_rank(r), 2);
        assert_int_equal(clg_npy_reader_dims(r)[0], 4);
        assert_int_equal(clg_npy_reader_dims(r)[1], 2);
        assert_true(back[0] == 5 && back[1] == 6 && back[2] == 1 && back[3] == 2);
    }
    clg_npy_writer_free(w);
    clg_npy_reader_free(r);
    return status;
}

static clg_status write_parts(void *user)
{
    const char *path = user;
    const int64_t dims[] = {3, 2};
    const float rows[6] = {1, 2, 3, 4, 5, 6};
    clg_npy_writer *first = NULL, *last = NULL;
    clg_status status = clg_npy_writer_open_part(path, CLG_FLOAT32, 2, dims, 0, &first);
    if (status == CLG_OK) status = clg_npy_writer_open_part(path, CLG_FLOAT32, 2, dims, 1, &last);
    if (status == CLG_OK) status = clg_npy_writer_append(last, 2, rows + 2, 16);
    if (status == CLG_OK) status = clg_npy_writer_flush(last);
    if (status == CLG_OK) status = clg_npy_writer_append(first, 1, rows, 8);
    if (status == CLG_OK) status = clg_npy_writer_commit(first);
    if (status == CLG_OK) status = clg_npy_writer_commit(last);
    clg_npy_writer_free(first);
    clg_npy_writer_free(last);
    return status;
}

TEST(parts__of_two_writers)
{
    const char *path = scratch_path("two-parts.npy");
    clg_npy_reader *r;
    clg_npy_writer *w;
    float back[6] = {0};
    assert_true(fault_loop_alone(write_parts, (void *)path) > 4);
    assert_ok(clg_npy_reader_open(path, &r));
    assert_int_equal(clg_npy_reader_dims(r)[0], 3);
    assert_ok(clg_npy_reader_read(r, 0, 3, back, sizeof back));
    for (int i = 0; i < 6; i++) assert_true(back[i] == (float)(i + 1));
    clg_npy_reader_free(r);

    /* what was written stays, also without commit */
    const float row[2] = {7, 8};
    assert_ok(clg_npy_writer_open_part(path, CLG_FLOAT32, 2, (int64_t[]){3, 2}, 2, &w));
    assert_ok(clg_npy_writer_append(w, 1, row, sizeof row));
    assert_error(clg_npy_writer_append(w, 1, row, sizeof row), CLG_ERROR_INVALID_ARGUMENT,
                 "1 rows do not go where 0 are left");
    clg_npy_writer_free(w);
    assert_ok(clg_npy_reader_open(path, &r));
    assert_ok(clg_npy_reader_read(r, 1, 2, back, 16));
    assert_true(back[0] == 3 && back[1] == 4 && back[2] == 7 && back[3] == 8);
    clg_npy_reader_free(r);
}

TEST(parts__that_are_refused)
{
    const char *path = scratch_path("refused.npy");
    clg_npy_writer *w;
    assert_error(clg_npy_writer_open_part(NULL, CLG_FLOAT32, 1, (int64_t[]){1}, 0, &w),
                 CLG_ERROR_INVALID_ARGUMENT, "path");
    assert_error(clg_npy_writer_open_part(path, CLG_FLOAT32, 1, NULL, 0, &w),
                 CLG_ERROR_INVALID_ARGUMENT, "dims");
    assert_error(clg_npy_writer_open_part(path, CLG_FLOAT32, 1, (int64_t[]){1}, 0, NULL),
                 CLG_ERROR_INVALID_ARGUMENT, "out_writer");
    assert_error(clg_npy_writer_open_part(path, CLG_FLOAT32, 1, (int64_t[]){4}, -1, &w),
                 CLG_ERROR_INVALID_ARGUMENT, "first_row is negative");
    assert_error(clg_npy_writer_open_part(path, CLG_FLOAT32, 1, (int64_t[]){4}, 5, &w),
                 CLG_ERROR_INVALID_ARGUMENT, "row 5 is not in a file of 4 rows");
    assert_error(clg_npy_writer_open_part(path, CLG_FLOAT32, 2, (int64_t[]){-1, 2}, 0, &w),
                 CLG_ERROR_INVALID_ARGUMENT, "negative");
    assert_error(
        clg_npy_writer_open_part(path, CLG_FLOAT32, 2, (int64_t[]){INT64_MAX / 8, 2}, 0, &w),
        CLG_ERROR_INVALID_ARGUMENT, "too large");
    assert_null(w);
    assert_error(clg_npy_reader_open(path, &(clg_npy_reader *){NULL}), CLG_ERROR_IO, "refused");
    assert_error(clg_npy_writer_flush(NULL), CLG_ERROR_INVALID_ARGUMENT, "writer");
    assert_ok(clg_npy_writer_open_part(path, CLG_FLOAT32, 1, (int64_t[]){0}, 0, &w));
    assert_ok(clg_npy_writer_commit(w));
    assert_error(clg_npy_writer_flush(w), CLG_ERROR_INVALID_ARGUMENT, "complete");
    clg_npy_writer_free(w);
}

TEST(rows__of_large_files)
{
    const char *path = scratch_path("rows.npy");
    assert_true(fault_loop_alone(write_and_read_rows, (void *)path) > 4);
    clg_npy_reader *r;
    clg_npy_writer *w;
    float row[2];
    assert_error(clg_npy_reader_open(scratch_path("none.npy"), &r), CLG_ERROR_IO, "none.npy");
    assert_null(r);
    assert_ok(clg_npy_reader_open(path, &r));
    assert_error(clg_npy_reader_read(r, 0, 1, row, 4), CLG_ERROR_INVALID_ARGUMENT, "4 bytes");
    assert_error(clg_npy_reader_read(r, 0, 1, NULL, 8), CLG_ERROR_INVALID_ARGUMENT, "data");
    assert_error(clg_npy_reader_read(r, 4, 1, row, 8), CLG_ERROR_INVALID_ARGUMENT, "from row 4");
    clg_npy_reader_free(r);
    clg_npy_reader_free(NULL);
    assert_int_equal(clg_npy_reader_dtype(NULL), CLG_DTYPE_NONE);
    assert_int_equal(clg_npy_reader_rank(NULL), 0);
    assert_non_null(clg_npy_reader_dims(NULL));

    assert_error(clg_npy_writer_open(path, CLG_FLOAT32, 0, NULL, &w), CLG_ERROR_SHAPE, "scalar");
    assert_error(clg_npy_writer_open(path, CLG_BFLOAT16, 1, (int64_t[]){0}, &w),
                 CLG_ERROR_UNSUPPORTED_DTYPE, "bfloat16");
    assert_error(clg_npy_writer_open(path, CLG_FLOAT32, 2, (int64_t[]){0, -1}, &w),
                 CLG_ERROR_INVALID_ARGUMENT, "negative");
    assert_null(w);
    const char *unfinished = scratch_path("unfinished.npy");
    assert_ok(clg_npy_writer_open(unfinished, CLG_FLOAT32, 2, (int64_t[]){0, 2}, &w));
    assert_error(clg_npy_writer_append(w, 2, row, 8), CLG_ERROR_INVALID_ARGUMENT, "8 bytes");
    assert_ok(clg_npy_writer_append(w, 1, row, 8));
    clg_npy_writer_free(w);
    assert_error(clg_npy_reader_open(unfinished, &r), CLG_ERROR_IO, "unfinished");
    assert_ok(clg_npy_writer_open(unfinished, CLG_FLOAT32, 2, (int64_t[]){0, 2}, &w));
    assert_ok(clg_npy_writer_commit(w));
    assert_error(clg_npy_writer_commit(w), CLG_ERROR_INVALID_ARGUMENT, "complete");
    assert_error(clg_npy_writer_append(w, 0, NULL, 0), CLG_ERROR_INVALID_ARGUMENT, "complete");
    clg_npy_writer_free(w);
    assert_ok(clg_npy_reader_open(unfinished, &r));
    assert_int_equal(clg_npy_reader_dims(r)[0], 0);
    clg_npy_reader_free(r);
}
