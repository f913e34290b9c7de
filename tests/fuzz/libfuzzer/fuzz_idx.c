/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads an IDX file, plain or compressed, with cltool's reader: rows from the last to the first,
 * then all at once. Both must give the same bytes.
 */
#include "fuzz.h"

#include "idx.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)1 << 20)

static void read_rows(idx_reader *reader)
{
    const size_t n = (size_t)reader->dims[0], row_bytes = reader->row_elems * reader->elem_bytes;
    free(must_alloc(reader->row_elems, reader->elem_bytes)); /* as the callers do */
    fuzz_require((row_bytes > 0 && n > 0) || (row_bytes <= IDX_MAX_EMPTY && n <= IDX_MAX_EMPTY));
    if (row_bytes > 0 && n > MAX_BYTES / row_bytes) return;
    if (n > MAX_BYTES) return;
    char *all = must_alloc(n, row_bytes), *rows = must_alloc(n, row_bytes);
    for (size_t row = n; row-- > 0;)
        fuzz_require(idx_read(reader, (int64_t)row, 1, rows + row * row_bytes) == CODE_DONE);
    fuzz_require(idx_read(reader, 0, n, all) == CODE_DONE);
    fuzz_require(memcmp(all, rows, n * row_bytes) == 0);
    free(all);
    free(rows);
}

void fuzz_idx(const uint8_t *data, size_t size_bytes)
{
    idx_reader reader;
    const char *path = fuzz_file("fuzz.idx", data, size_bytes);
    if (idx_open(path, NULL, NULL, &reader) == CODE_DONE) {
        fuzz_require(reader.rank >= 1 && reader.stream);
        read_rows(&reader);
        idx_close(&reader);
    } else {
        fuzz_require(failure_is_recorded() && failure_text()[0]);
    }
    failure_clear();
}
