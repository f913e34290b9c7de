/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool merge: checks that files are the consecutive shards of one, and joins them. The result
 * appears when it is complete. Memory use does not grow with the files, of which one is open at a
 * time.
 */
#include "cltool.h"

#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "ranks.h"

#include <clgraph/inspect.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 22)

typedef struct merge {
    const options *options;
    size_t n;                   /* shards */
    const char *const *names;   /* of each, in the order of the rows */
    int64_t *n_rows;            /* of each */
    clg_dtype dtype;            /* of all */
    size_t rank;                /* of all */
    int64_t dims[CLG_MAX_RANK]; /* of the result */
    size_t row_bytes;
} merge;

/* ---- checks ---------------------------------------------------------------------------------- */

/* Compares names with the digits in them as numbers, so that part2 precedes part10. */
static int compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *end_a, *end_b;
            const unsigned long long x = strtoull(a, &end_a, 10), y = strtoull(b, &end_b, 10);
            if (x != y) return x < y ? -1 : 1;
            a = end_a;
            b = end_b;
        } else {
            if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
            a++;
            b++;
        }
    }
    return *a ? 1 : *b ? -1 : 0;
}

static int check_names(const merge *m)
{
    bool warned = false;
    for (size_t i = 1; i < m->n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(m->names[i], m->names[j]) == 0)
                return fail_usage("'%s' is given twice", m->names[i]);
        }
        if (!warned && compare_names(m->names[i - 1], m->names[i]) > 0) {
            output_warning("'%s' precedes '%s': rows follow the order of the files as given",
                           m->names[i - 1], m->names[i]);
            warned = true;
        }
    }
    return CODE_DONE;
}

static int check_output(const merge *m)
{
    const char *path = m->options->output;
    if (!path) {
        (void)fail_usage("where does the result go?");
        fail_hint("-o FILE.npy");
        return CODE_USAGE;
    }
    if (m->options->rows == 0) {
        (void)fail_usage(
            "how many rows must there be? Without that, a missing shard does not show");
        fail_hint("--rows N, the rows of the data set");
        return CODE_USAGE;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(path, m->names[i]) == 0)
            return fail_usage("'%s' is a shard, and is to hold the result", path);
    }
    const int code = file_must_be_npy(path);
    return code == CODE_DONE ? file_may_be_written(path, m->options->force) : code;
}

/* Opens the i-th shard, and checks that its rows are like those of the first. */
static int open_shard(merge *m, size_t i, clg_npy_reader **out_reader)
{
    const clg_status status = clg_npy_reader_open(m->names[i], out_reader);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    const clg_npy_reader *r = *out_reader;
    const size_t rank = clg_npy_reader_rank(r);
    const int64_t *dims = clg_npy_reader_dims(r);
    if (m->rank == 0) {
        m->dtype = clg_npy_reader_dtype(r);
        m->rank = rank;
        memcpy(m->dims + 1, dims + 1, (rank - 1) * sizeof *dims);
    }
    if (clg_npy_reader_dtype(r) == m->dtype && rank == m->rank &&
        memcmp(dims + 1, m->dims + 1, (rank - 1) * sizeof *dims) == 0)
        return CODE_DONE;
    return fail(CODE_USAGE, CLG_ERROR_SHAPE, "'%s' has rows of %s %s, '%s' of %s %s", m->names[0],
                clg_dtype_name(m->dtype), dims_text(m->rank - 1, m->dims + 1), m->names[i],
                clg_dtype_name(clg_npy_reader_dtype(r)), dims_text(rank - 1, dims + 1));
}

/* Checks the i-th shard, and counts its rows. */
static int count_shard(merge *m, size_t i)
{
    clg_npy_reader *reader = NULL;
    int code = open_shard(m, i, &reader);
    if (code == CODE_DONE) {
        m->n_rows[i] = clg_npy_reader_dims(reader)[0];
        if (m->n_rows[i] > INT64_MAX - m->dims[0]) code = fail_usage("there are too many rows");
    }
    if (code == CODE_DONE) m->dims[0] += m->n_rows[i];
    clg_npy_reader_free(reader);
    return code;
}

/* Checks that the shards have the sizes that --shard gives to as many. */
static int check_sizes(const merge *m)
{
    const int64_t total = m->dims[0];
    const size_t wanted = m->options->rows;
    if ((int64_t)wanted != total)
        return fail(CODE_WORK, CLG_ERROR_SHAPE,
                    "the shards have %" PRId64 " rows in place of %zu (--rows)", total, wanted);
    for (size_t i = 0; i < m->n; i++) {
        int64_t first, expected;
        ranks_rows(&(shard){.part = i, .n_parts = m->n}, total, 1, &first, &expected);
        if (m->n_rows[i] == expected) continue;
        (void)fail(CODE_WORK, CLG_ERROR_SHAPE,
                   "'%s' has %" PRId64 " rows; shard %zu of %zu, of %" PRId64
                   " rows in all, has %" PRId64,
                   m->names[i], m->n_rows[i], i + 1, m->n, total, expected);
        fail_hint(
            "a shard is missing, incomplete or in another place than 'cltool predict --shard' "
            "counted it");
        return CODE_WORK;
    }
    return CODE_DONE;
}

/* ---- the work -------------------------------------------------------------------------------- */

static int compute_row_bytes(merge *m)
{
    size_t bytes = clg_dtype_size(m->dtype);
    for (size_t d = 1; d < m->rank; d++) {
        if (m->dims[d] > 0 && bytes > SIZE_MAX / (size_t)m->dims[d])
            return fail_usage("a row of '%s' is too large", m->names[0]);
        bytes *= (size_t)m->dims[d];
    }
    m->row_bytes = bytes;
    return CODE_DONE;
}

static int copy_rows(const merge *m, size_t i, clg_npy_reader *reader, clg_npy_writer *writer,
                     void *block, size_t n_block)
{
    const size_t n_rows = (size_t)m->n_rows[i];
    for (size_t first = 0; first < n_rows; first += n_block) {
        const size_t n = n_rows - first < n_block ? n_rows - first : n_block;
        clg_status status = clg_npy_reader_read(reader, (int64_t)first, n, block, n * m->row_bytes);
        if (status != CLG_OK) return fail_status(status, STAGE_READ, "'%s'", m->names[i]);
        status = clg_npy_writer_append(writer, n, block, n * m->row_bytes);
        if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
        if (interrupt_seen()) return fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted");
    }
    return CODE_DONE;
}

static int copy_shard(merge *m, size_t i, clg_npy_writer *writer, void *block, size_t n_block)
{
    clg_npy_reader *reader = NULL;
    int code = open_shard(m, i, &reader);
    if (code == CODE_DONE && clg_npy_reader_dims(reader)[0] != m->n_rows[i])
        code = fail_file("'%s' was modified while it was read", m->names[i]);
    if (code == CODE_DONE) code = copy_rows(m, i, reader, writer, block, n_block);
    clg_npy_reader_free(reader);
    return code;
}

static int write_result(merge *m)
{
    clg_npy_writer *writer;
    clg_status status =
        clg_npy_writer_open(m->options->output, m->dtype, m->rank, m->dims, &writer);
    if (status != CLG_OK) return fail_status(status, STAGE_WORK, NULL);
    const size_t row_bytes = m->row_bytes > 0 ? m->row_bytes : 1;
    const size_t n_block = row_bytes < BLOCK_BYTES ? BLOCK_BYTES / row_bytes : 1;
    void *block = must_alloc(n_block, row_bytes);
    int code = CODE_DONE;
    for (size_t i = 0; i < m->n && code == CODE_DONE; i++) {
        code = copy_shard(m, i, writer, block, n_block);
        output_progress("shards", i + 1, m->n);
    }
    free(block);
    status = code == CODE_DONE ? clg_npy_writer_commit(writer) : CLG_OK;
    if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    clg_npy_writer_free(writer);
    output_progress_clear();
    return code;
}

static int print_result(const merge *m)
{
    if (m->options->json)
        return output_json(
            json_pack("{s:o, s:s, s:o, s:I}", "file", output_json_text(m->options->output), "dtype",
                      clg_dtype_name(m->dtype), "shape", output_json_dims(m->rank, m->dims),
                      "shards", (json_int_t)m->n));
    (void)printf("%s  %s  %s  of %zu shards\n", m->options->output, clg_dtype_name(m->dtype),
                 dims_text(m->rank, m->dims), m->n);
    return CODE_DONE;
}

int cmd_merge(const options *o)
{
    merge m = {.options = o, .n = o->n_arguments, .names = o->arguments};
    m.n_rows = must_alloc(m.n, sizeof *m.n_rows);
    int code = check_output(&m);
    if (code == CODE_DONE) code = check_names(&m);
    for (size_t i = 0; i < m.n && code == CODE_DONE; i++) code = count_shard(&m, i);
    if (code == CODE_DONE) code = check_sizes(&m);
    if (code == CODE_DONE) code = compute_row_bytes(&m);
    interrupt_begin(NULL);
    if (code == CODE_DONE) code = write_result(&m);
    interrupt_end(NULL);
    if (code == CODE_DONE) code = print_result(&m);
    free(m.n_rows);
    return code;
}
