/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes ZIP files for .npz: stored and deflated entries and zip64, but no encryption or
 * several disks. Reading resists damaged files: the directory is checked against the file, an entry
 * must expand to exactly the size it declares, and its CRC must match. Errors are CLG_ERROR_IO.
 */
#ifndef CLG_TENSOR_ZIP_H
#define CLG_TENSOR_ZIP_H

#include "base/files.h"
#include "base/strbuf.h"

#include <zlib.h>

/* An entry of the directory. */
typedef struct zip_entry {
    char *name;
    uint16_t method; /* 0 stored, 8 deflated */
    uint32_t crc;
    const uint8_t *packed; /* its data in the file */
    size_t packed_bytes, size_bytes;
} zip_entry;

/* The directory of a ZIP file in memory; the memory must outlive it. */
typedef struct zip_archive {
    zip_entry *entries;
    size_t count;
} zip_archive; /* all zeros is valid and empty */
clg_status zip_open(const void *data, size_t size_bytes, zip_archive *out_archive);
void zip_close(zip_archive *archive);

/* Reads one entry sequentially. Must not move in memory while open, because of zlib. */
typedef struct zip_stream {
    const zip_entry *entry;
    z_stream inflater;
    bool is_open;           /* the inflater is initialised */
    size_t n_read, n_taken; /* bytes returned; packed bytes consumed */
    uint32_t crc;
} zip_stream;
clg_status zip_stream_open(const zip_entry *entry, zip_stream *out_stream);
/* Reads exactly the next size_bytes. */
clg_status zip_stream_read(zip_stream *stream, void *out_data, size_t size_bytes);
clg_status zip_stream_finish(zip_stream *stream); /* checks that all is read, and the CRC */
void zip_stream_close(zip_stream *stream);

/* Writes a temporary file and renames it to its path on commit, as file_writer does. Must not move
 * in memory while open. */
typedef struct zip_writer {
    file_writer file;
    strbuf directory;
    size_t n_entries;
    /* Sizes, offsets and counts from this value on are written as zip64; tests lower it. */
    uint64_t zip64_from;
    bool compress;
    z_stream deflater;
    bool is_open; /* the deflater is initialised */
    uint8_t *buffer;
    /* the current entry */
    char *name;
    uint64_t start, packed_bytes, size_bytes;
    uint32_t crc;
} zip_writer;
clg_status zip_writer_open(const char *path, bool compress, zip_writer *out_writer);
/* Begins an entry; zip_writer_write appends to it, and zip_writer_end completes it. */
clg_status zip_writer_begin(zip_writer *writer, const char *name);
clg_status zip_writer_write(zip_writer *writer, const void *data, size_t size_bytes);
clg_status zip_writer_end(zip_writer *writer);
clg_status zip_writer_commit(zip_writer *writer);
void zip_writer_abandon(zip_writer *writer); /* also after commit; accepts all zeros */

/* Allocation callbacks for zlib, which use base/memory.h. */
void *zip_alloc(void *user, unsigned n, unsigned size_bytes);
void zip_free(void *user, void *memory);

#endif
