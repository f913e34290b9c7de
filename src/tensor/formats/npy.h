/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes NumPy's .npy files: header versions 1 to 3, C and Fortran order, both byte
 * orders; bool, integers of 8 to 64 bits and floats of 16 to 64 bits. Files are written as version
 * 1.0, little-endian, in C order. Errors: CLG_ERROR_IO for a damaged file or one whose header does
 * not exactly describe its data; CLG_ERROR_UNSUPPORTED_DTYPE for other dtypes. See decision 10.
 */
#ifndef CLG_TENSOR_NPY_H
#define CLG_TENSOR_NPY_H

#include "base/files.h"
#include "tensor/tensor.h"

/* What a header states. */
typedef struct npy_info {
    clg_dtype dtype;
    shape dims;
    bool fortran_order;  /* first axis fastest */
    bool swapped;        /* big-endian */
    size_t header_bytes; /* offset of the data */
    size_t data_bytes;
} npy_info;

/* Computes the length of the whole header (magic bytes, version, length and dictionary) from its
 * first NPY_PREAMBLE_BYTES. */
#define NPY_PREAMBLE_BYTES ((size_t)12)
#define NPY_MAX_HEADER_BYTES ((size_t)1 << 20) /* longer ones are rejected */
clg_status npy_header_length(const void *start, size_t size_bytes, size_t *out_header_bytes);
/* Parses the header at the start of a file. */
clg_status npy_parse_header(const void *start, size_t size_bytes, npy_info *out_info);
/* Checks a header against the size of the whole file. */
clg_status npy_check_size(const npy_info *info, uint64_t file_bytes);
/* Fills t with consecutive rows (slices along the first axis) of raw, the file's data, from
 * first_row on: as many as t has. t has info's dtype. raw may be t's own memory unless
 * fortran_order is set. */
void npy_convert(const npy_info *info, const void *raw, int64_t first_row, tensor *t);

/* Creates a tensor from a whole file in memory. If there is an owner and nothing to convert, the
 * tensor shares the file's memory, else it is a copy. */
clg_status npy_from_memory(const void *data, size_t size_bytes, const tensor_owner *owner,
                           tensor **out_tensor);
clg_status npy_load(const char *path, tensor **out_tensor);
clg_status npy_save(const char *path, const tensor *t);
/* Formats the header of a file, padded with blanks to a multiple of 64 bytes and to at least
 * min_bytes. */
#define NPY_HEADER_TEXT_BYTES ((size_t)384)
clg_status npy_format_header(clg_dtype dtype, const shape *dims, size_t min_bytes,
                             char out_header[NPY_HEADER_TEXT_BYTES], size_t *out_header_bytes);

/* Reads a file by rows, so that it may be larger than memory (npy_rows.c). For one thread at a
 * time. */
typedef struct npy_reader {
    file_reader file;
    npy_info info; /* dims[0] is the number of rows */
} npy_reader;      /* all zeros is valid and closed */
clg_status npy_reader_open(const char *path, npy_reader *out_reader); /* rejects a scalar */
/* Reads n rows from row `first` on into data, whose size must be theirs; data may be NULL if n is
 * 0. */
clg_status npy_reader_read(npy_reader *reader, int64_t first, int64_t n, void *data);
void npy_reader_close(npy_reader *reader); /* accepts a closed one */

/* Writes a file by rows, whose number need not be known in advance. The file appears at its path
 * when it is committed. */
typedef struct npy_writer {
    file_writer file;
    clg_dtype dtype;
    shape dims; /* dims[0] counts the rows appended */
    size_t header_bytes;
    bool is_part;   /* of a file that others write too */
    int64_t n_left; /* with is_part: rows from the next one to the end of the file */
} npy_writer;       /* all zeros is valid and closed */
/* Opens a writer for rows of shape dims[1...]; dims[0] is ignored. */
clg_status npy_writer_open(const char *path, clg_dtype dtype, const shape *dims,
                           npy_writer *out_writer);
/* Opens a writer for the rows from row `first` on of a file of dims[0] rows, whose other rows
 * other writers write, also of other processes and at the same time. Each writes the same header.
 * The file is written in place: commit closes it, and abandon keeps what was written. */
clg_status npy_writer_open_part(const char *path, clg_dtype dtype, const shape *dims, int64_t first,
                                npy_writer *out_writer);
clg_status npy_writer_append(npy_writer *writer, const tensor *rows);
/* Waits until the rows appended so far are stored. */
clg_status npy_writer_flush(npy_writer *writer);
clg_status npy_writer_commit(npy_writer *writer); /* closes also on failure */
void npy_writer_abandon(npy_writer *writer);      /* accepts a closed one */

#endif
