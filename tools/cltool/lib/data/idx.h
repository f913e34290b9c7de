/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads rows of IDX files, the format of MNIST: two zero bytes, a type, the number of axes, their
 * sizes, then elements, all big-endian. Files may be compressed by gzip.
 */
#ifndef CLTOOL_IDX_H
#define CLTOOL_IDX_H

#include "failure.h"

#include <clgraph/inspect.h>

#include <stdio.h>

/* The largest size of a compressed file after unpacking, in bytes. */
#define IDX_MAX_UNPACKED ((uint64_t)16 << 30)
/* The largest shape of a file without data, whose size bounds no axis: the product of the axes that
 * are not 0, in bytes. */
#define IDX_MAX_EMPTY ((uint64_t)1 << 24)

typedef struct idx_reader {
    const char *path; /* borrowed */
    FILE *stream;     /* the file, or a temporary one that holds it unpacked */
    clg_dtype dtype;
    size_t rank;                  /* at least 1 */
    int64_t dims[CLG_MAX_RANK];   /* the first is the number of rows */
    size_t elem_bytes, row_elems; /* of an element; of a row */
    uint64_t data_offset;         /* of the first row, in bytes */
} idx_reader;                     /* all zeros is valid and closed */

/* Opens a file and checks its header against its size. accept, which may be NULL, is called with
 * dtype and shape set before anything is unpacked, and may refuse the file with a code and a
 * message. What begins as a gzip file is then unpacked into a temporary file, of at most
 * IDX_MAX_UNPACKED bytes and never more than the header says: rows are read in any order, which a
 * compressed stream does not allow. */
int idx_open(const char *path, int (*accept)(void *user, const idx_reader *reader), void *user,
             idx_reader *out_reader);
void idx_close(idx_reader *reader);
/* Reads n rows, starting at row `first`, in the byte order of the machine. `to` has room for
 * n * row_elems elements. One thread at a time. */
int idx_read(idx_reader *reader, int64_t first, size_t n, void *to);
/* Returns whether a file is IDX by its name: *.idx, or *-idx3-ubyte and *.idx3-ubyte with any
 * number and type; each may be followed by .gz. */
bool idx_is_name(const char *path);

#endif
