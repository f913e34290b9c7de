/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the data of cltool train: batches that are read ahead are those of one thread, errors come
 * at their batch, readers stop at any time, and augmentation follows from (seed, epoch, row).
 */
#include "support/unit.h"

#include "support/scratch.h"

/* Both cmocka and cltool have a macro of this name; the tests need cmocka's. */
#undef fail
#include "train_reader.h"
#undef fail
#define fail() _fail(__FILE__, __LINE__)

#include <math.h>
#include <string.h>

TEST_GROUP(NULL, NULL)

enum { ROWS = 37, BATCH = 5, EPOCHS = 3, SIDE = 4, PIXELS = SIDE * SIDE };

/* A .npy file of ROWS images of SIDE x SIDE pixels, each with its own numbers. */
typedef struct source {
    clg_port port;
    options options;
    input_item item;
    input_set inputs;
    train_data data;
} source;

static float pixel(int64_t row, size_t i) { return (float)(100 * row + (int64_t)i + 1); }

static void write_rows(const char *path, int64_t nan_row)
{
    static const int64_t dims[] = {0, 1, SIDE, SIDE};
    clg_npy_writer *w;
    assert_ok(clg_npy_writer_open(path, CLG_FLOAT32, 4, dims, &w));
    for (int64_t row = 0; row < ROWS; row++) {
        float numbers[PIXELS];
        for (size_t i = 0; i < PIXELS; i++) numbers[i] = pixel(row, i);
        if (row == nan_row) numbers[3] = NAN;
        assert_ok(clg_npy_writer_append(w, 1, numbers, sizeof numbers));
    }
    assert_ok(clg_npy_writer_commit(w));
    clg_npy_writer_free(w);
}

static void open_source(source *s, const char *path, const char *words)
{
    static const train_checks checks = {0};
    memset(s, 0, sizeof *s);
    s->port = (clg_port){.name = "x", .dtype = CLG_FLOAT32, .rank = 4, .dims = {-1, 1, SIDE, SIDE}};
    s->item = (input_item){.port = &s->port, .from = path};
    s->inputs = (input_set){.items = &s->item, .count = 1};
    assert_int_equal(dataset_open_npy(&s->options, &s->port, path, &s->item.rows), CODE_DONE);
    assert_int_equal(train_data_open(&s->inputs, &checks, 7, BATCH, 0.25, &s->data), CODE_DONE);
    assert_int_equal(augment_read(words, 7, &s->data.augment), CODE_DONE);
    assert_int_equal(augment_check(&s->data.augment, &s->inputs, NULL), CODE_DONE);
}

static void close_source(source *s) { dataset_free(s->item.rows); }

static const float *numbers_of(const train_batch *batch)
{
    return clg_value_data(batch->values[0]);
}

/* Compares batches first to end - 1 of a reader with those of one thread. */
static void compare(source *ahead, source *alone, bool validates, uint64_t first, uint64_t end)
{
    train_reader *reader;
    assert_int_equal(train_reader_start(&ahead->data, validates, first, end, &reader), CODE_DONE);
    for (uint64_t b = first; b < end; b++) {
        train_batch read, gathered;
        assert_int_equal(train_reader_take(reader, &read), CODE_DONE);
        assert_int_equal(train_data_gather(&alone->data, validates, b, &gathered), CODE_DONE);
        assert_int_equal(read.n_rows, gathered.n_rows);
        assert_memory_equal(numbers_of(&read), numbers_of(&gathered),
                            read.n_rows * PIXELS * sizeof(float));
        train_batch_free(&ahead->data, &read);
        train_batch_free(&alone->data, &gathered);
    }
    train_batch none;
    assert_int_not_equal(train_reader_take(reader, &none), CODE_DONE);
    failure_clear();
    train_reader_stop(reader);
}

TEST(train_reader__batches_are_those_of_one_thread)
{
    source ahead, alone;
    const char *path = scratch_path("rows.npy");
    write_rows(path, -1);
    open_source(&ahead, path, "flip,crop:2,shift:1");
    open_source(&alone, path, "flip,crop:2,shift:1");
    const uint64_t n = train_data_batches(&ahead.data);
    assert_int_equal(n, 6); /* of 37 - 9 rows */
    for (uint64_t first = 0; first < n * EPOCHS; first += 4)
        compare(&ahead, &alone, false, first, n * EPOCHS);
    compare(&ahead, &alone, true, 0, 2); /* of 9 rows */
    close_source(&ahead);
    close_source(&alone);
}

TEST(train_reader__two_readers_share_datasets)
{
    source s;
    train_reader *training, *validation;
    const char *path = scratch_path("shared.npy");
    write_rows(path, -1);
    open_source(&s, path, NULL);
    assert_int_equal(train_reader_start(&s.data, false, 0, 1000, &training), CODE_DONE);
    for (size_t round = 0; round < 20; round++) {
        train_batch batch;
        assert_int_equal(train_reader_take(training, &batch), CODE_DONE);
        train_batch_free(&s.data, &batch);
        assert_int_equal(train_reader_start(&s.data, true, 0, 2, &validation), CODE_DONE);
        for (size_t b = 0; b < round % 3; b++) { /* the others are dropped */
            assert_int_equal(train_reader_take(validation, &batch), CODE_DONE);
            train_batch_free(&s.data, &batch);
        }
        train_reader_stop(validation);
    }
    train_reader_stop(training);
    train_reader_stop(NULL);
    close_source(&s);
}

TEST(train_reader__errors_come_at_their_batch)
{
    enum { NAN_ROW = 11 };
    source s, alone;
    train_reader *reader;
    train_batch batch;
    const char *path = scratch_path("nan.npy");
    write_rows(path, NAN_ROW);
    open_source(&s, path, NULL);
    open_source(&alone, path, NULL);
    uint64_t n_good = 0;
    while (train_data_gather(&alone.data, false, n_good, &batch) == CODE_DONE) {
        train_batch_free(&alone.data, &batch);
        n_good++;
    }
    assert_non_null(strstr(failure_text(), "nan.npy', row 12: element 4 is NaN"));
    failure_clear();
    assert_int_equal(train_reader_start(&s.data, false, 0, 100, &reader), CODE_DONE);
    for (uint64_t b = 0; b < n_good; b++) {
        assert_int_equal(train_reader_take(reader, &batch), CODE_DONE);
        train_batch_free(&s.data, &batch);
    }
    for (int again = 0; again < 2; again++) {
        assert_int_equal(train_reader_take(reader, &batch), CODE_FILE);
        assert_non_null(strstr(failure_text(), "nan.npy', row 12: element 4 is NaN"));
        failure_clear();
    }
    train_reader_stop(reader);
    close_source(&s);
    close_source(&alone);
}

/* Applies one word to row `row` in `epoch`. */
static void change(const source *s, uint64_t epoch, int64_t row, float out[PIXELS])
{
    char scratch[PIXELS * sizeof(float)];
    for (size_t i = 0; i < PIXELS; i++) out[i] = pixel(row, i);
    augment_row(&s->data.augment, s->item.rows, epoch, row, (char *)out, scratch, sizeof scratch);
}

/* Returns whether `changed` is the row moved by (dx, dy), with `edge` or else 0 outside. */
static bool is_moved(const float *changed, int64_t row, int dx, int dy, bool edge)
{
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < SIDE; x++) {
            const int sx = x + dx, sy = y + dy;
            const int cx = sx < 0       ? 0
                           : sx >= SIDE ? SIDE - 1
                                        : sx,
                      cy = sy < 0       ? 0
                           : sy >= SIDE ? SIDE - 1
                                        : sy;
            const bool inside = sx == cx && sy == cy;
            const float wanted = inside || edge ? pixel(row, (size_t)cy * SIDE + (size_t)cx) : 0.0f;
            if (changed[y * SIDE + x] != wanted) return false;
        }
    }
    return true;
}

TEST(augment__moves_by_every_distance)
{
    static const char *const words[] = {"crop:2", "shift:2"};
    const char *path = scratch_path("moved.npy");
    write_rows(path, -1);
    for (size_t w = 0; w < 2; w++) {
        source s;
        bool seen[5][5] = {{false}};
        size_t n_seen = 0;
        open_source(&s, path, words[w]);
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            for (int64_t row = 0; row < ROWS; row++) {
                float changed[PIXELS];
                int n_found = 0;
                change(&s, epoch, row, changed);
                for (int at = 0; at < 25; at++) {
                    if (!is_moved(changed, row, at % 5 - 2, at / 5 - 2, w == 1)) continue;
                    n_found++;
                    n_seen += !seen[at / 5][at % 5];
                    seen[at / 5][at % 5] = true;
                }
                assert_int_equal(n_found, 1);
            }
        }
        assert_int_equal(n_seen, 25);
        close_source(&s);
    }
}

TEST(augment__flips_half_of_the_rows_by_seed_epoch_and_row)
{
    source s, other;
    size_t n_flipped = 0, n_differ = 0, n_by_epoch = 0;
    const char *path = scratch_path("flipped.npy");
    write_rows(path, -1);
    open_source(&s, path, "flip");
    open_source(&other, path, "flip");
    other.data.augment.seed++;
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        for (int64_t row = 0; row < ROWS; row++) {
            float changed[PIXELS], again[PIXELS], by_seed[PIXELS], by_epoch[PIXELS];
            change(&s, epoch, row, changed);
            change(&s, epoch, row, again);
            change(&other, epoch, row, by_seed);
            change(&s, epoch + 1, row, by_epoch);
            assert_memory_equal(changed, again, sizeof changed);
            const bool is_flipped = changed[0] != pixel(row, 0);
            for (size_t i = 0; i < PIXELS; i++)
                assert_true(changed[i] ==
                            pixel(row, is_flipped ? i / SIDE * SIDE + SIDE - 1 - i % SIDE : i));
            n_flipped += is_flipped;
            n_differ += by_seed[0] != changed[0];
            n_by_epoch += by_epoch[0] != changed[0];
        }
    }
    /* of 740, five standard deviations around a half */
    assert_in_range(n_flipped, 302, 438);
    assert_in_range(n_differ, 302, 438);
    assert_in_range(n_by_epoch, 302, 438);
    close_source(&s);
    close_source(&other);
}
