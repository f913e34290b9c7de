/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes ZIP files. Like NumPy, it reserves zip64 sizes in each local header, which is overwritten
 * when the entry has ended and its sizes are known. Dates are 1980-01-01, so that equal inputs give
 * equal files.
 */
#include "tensor/formats/zip.h"

#include "base/memory.h"

#include <string.h>

#define LOCAL_BYTES 30u
#define BUFFER_BYTES ((size_t)1 << 16)
#define CHUNK_BYTES ((size_t)1 << 30) /* bytes per call, since zlib counts in 32 bits */
#define VERSION 45u                   /* needed to extract: 4.5, for zip64 */
#define FLAG_UTF8 0x800u
#define DATE_1980 0x21u

/* Appends a little-endian integer. */
static void put(strbuf *out, unsigned n_bytes, uint64_t value)
{
    char bytes[8];
    for (unsigned i = 0; i < n_bytes; i++) bytes[i] = (char)(value >> (8 * i) & 0xff);
    strbuf_append_bytes(out, bytes, n_bytes);
}

clg_status zip_writer_open(const char *path, bool compress, zip_writer *out_writer)
{
    *out_writer = (zip_writer){.compress = compress, .zip64_from = UINT32_MAX};
    strbuf_init(&out_writer->directory, 0);
    CLG_TRY(file_writer_open(path, &out_writer->file));
    if (!compress) return CLG_OK;
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    out_writer->buffer = memory_alloc(BUFFER_BYTES);
    out_writer->deflater.zalloc = zip_alloc;
    out_writer->deflater.zfree = zip_free;
    if (out_writer->buffer) {
        int result = deflateInit2(&out_writer->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                  -MAX_WBITS, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);
        out_writer->is_open = result == Z_OK;
        status = out_writer->is_open ? CLG_OK : error_no_memory(sizeof(z_stream));
    }
    if (status != CLG_OK) zip_writer_abandon(out_writer);
    return status;
}

/* Writes the fields that an entry's local header and directory record share: from the version
 * needed to extract it to its CRC. */
static void put_common(const zip_writer *w, strbuf *out)
{
    put(out, 2, VERSION);
    put(out, 2, FLAG_UTF8);
    put(out, 2, w->compress ? 8 : 0);
    put(out, 2, 0);
    put(out, 2, DATE_1980);
    put(out, 4, w->crc);
}

/* Writes the entry's local header, with the sizes in the zip64 extra field. */
static void format_local(const zip_writer *w, strbuf *out)
{
    put(out, 4, 0x04034b50);
    put_common(w, out);
    put(out, 4, UINT32_MAX);
    put(out, 4, UINT32_MAX);
    put(out, 2, strlen(w->name));
    put(out, 2, 20);
    strbuf_append(out, w->name);
    put(out, 2, 1);
    put(out, 2, 16);
    put(out, 8, w->size_bytes);
    put(out, 8, w->packed_bytes);
}

clg_status zip_writer_begin(zip_writer *writer, const char *name)
{
    if (strlen(name) > UINT16_MAX)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "a name is too long for a ZIP file");
    memory_free(writer->name);
    writer->name = memory_strdup(name);
    if (!writer->name) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    writer->start = writer->file.size_bytes;
    writer->packed_bytes = writer->size_bytes = 0;
    writer->crc = 0;
    strbuf header;
    strbuf_init(&header, 0);
    format_local(writer, &header);
    clg_status status = header.status;
    if (status == CLG_OK)
        status = file_writer_append(&writer->file, header.data, header.size_bytes);
    strbuf_deinit(&header);
    return status;
}

static clg_status append_packed(zip_writer *writer, const void *data, size_t size_bytes)
{
    writer->packed_bytes += size_bytes;
    return file_writer_append(&writer->file, data, size_bytes);
}

/* Compresses data and appends the output. flush: Z_NO_FLUSH, or Z_FINISH at the end of the
 * entry. */
static clg_status deflate_some(zip_writer *writer, const uint8_t *data, size_t size_bytes,
                               int flush)
{
    z_stream *z = &writer->deflater;
    z->next_in = (Bytef *)(uintptr_t)data;
    z->avail_in = (uInt)size_bytes;
    int result;
    do {
        z->next_out = writer->buffer;
        z->avail_out = (uInt)BUFFER_BYTES;
        result = deflate(z, flush);
        if (result == Z_STREAM_ERROR) return error_set(CLG_ERROR_INTERNAL, "zlib failed");
        CLG_TRY(append_packed(writer, writer->buffer, BUFFER_BYTES - z->avail_out));
    } while (z->avail_out == 0 || (flush == Z_FINISH && result != Z_STREAM_END));
    return CLG_OK;
}

clg_status zip_writer_write(zip_writer *writer, const void *data, size_t size_bytes)
{
    if (size_bytes == 0) return CLG_OK;
    writer->size_bytes += size_bytes;
    writer->crc = (uint32_t)crc32_z(writer->crc, data, size_bytes);
    if (!writer->compress) return append_packed(writer, data, size_bytes);
    for (const uint8_t *at = data; size_bytes > 0;) {
        size_t n = size_bytes < CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
        CLG_TRY(deflate_some(writer, at, n, Z_NO_FLUSH));
        at += n;
        size_bytes -= n;
    }
    return CLG_OK;
}

/* Appends the entry's record to the directory. If one of size, packed size and offset is large, all
 * are stored in the zip64 extra field. */
static void format_central(zip_writer *w)
{
    uint64_t numbers[3] = {w->size_bytes, w->packed_bytes, w->start};
    bool large = false;
    for (int i = 0; i < 3; i++) large = large || numbers[i] >= w->zip64_from;
    strbuf *out = &w->directory;
    put(out, 4, 0x02014b50);
    put(out, 2, VERSION);
    put_common(w, out);
    put(out, 4, large ? UINT32_MAX : w->packed_bytes);
    put(out, 4, large ? UINT32_MAX : w->size_bytes);
    put(out, 2, strlen(w->name));
    put(out, 2, large ? 28 : 0);
    put(out, 2, 0); /* comment */
    put(out, 2, 0); /* disk */
    put(out, 2, 0); /* internal attributes */
    put(out, 4, 0); /* external attributes */
    put(out, 4, large ? UINT32_MAX : w->start);
    strbuf_append(out, w->name);
    if (!large) return;
    put(out, 2, 1);
    put(out, 2, 24);
    for (int i = 0; i < 3; i++) put(out, 8, numbers[i]);
}

clg_status zip_writer_end(zip_writer *writer)
{
    if (writer->compress) {
        CLG_TRY(deflate_some(writer, NULL, 0, Z_FINISH));
        if (deflateReset(&writer->deflater) != Z_OK)
            return error_set(CLG_ERROR_INTERNAL, "zlib failed");
    }
    strbuf header;
    strbuf_init(&header, 0);
    format_local(writer, &header);
    clg_status status = header.status;
    if (status == CLG_OK)
        status = file_writer_patch(&writer->file, writer->start, header.data, header.size_bytes);
    strbuf_deinit(&header);
    CLG_TRY(status);
    format_central(writer);
    writer->n_entries++;
    return writer->directory.status;
}

/* Writes what follows the directory: the end record, preceded by the zip64 end record and locator
 * if a number is large. */
static void format_end(zip_writer *w, strbuf *out)
{
    uint64_t n = w->n_entries, size_bytes = w->directory.size_bytes, offset = w->file.size_bytes;
    bool large = n >= UINT16_MAX || n >= w->zip64_from || size_bytes >= w->zip64_from ||
                 offset >= w->zip64_from;
    if (large) {
        put(out, 4, 0x06064b50);
        put(out, 8, 44); /* bytes that follow */
        put(out, 2, VERSION);
        put(out, 2, VERSION);
        put(out, 4, 0);
        put(out, 4, 0);
        put(out, 8, n);
        put(out, 8, n);
        put(out, 8, size_bytes);
        put(out, 8, offset);
        put(out, 4, 0x07064b50);
        put(out, 4, 0);
        put(out, 8, offset + size_bytes);
        put(out, 4, 1); /* total number of disks */
    }
    put(out, 4, 0x06054b50);
    put(out, 2, 0);
    put(out, 2, 0);
    put(out, 2, large ? UINT16_MAX : n);
    put(out, 2, large ? UINT16_MAX : n);
    put(out, 4, large ? UINT32_MAX : size_bytes);
    put(out, 4, large ? UINT32_MAX : offset);
    put(out, 2, 0);
}

clg_status zip_writer_commit(zip_writer *writer)
{
    strbuf end;
    strbuf_init(&end, 0);
    format_end(writer, &end);
    clg_status status = end.status;
    if (status == CLG_OK)
        status =
            file_writer_append(&writer->file, writer->directory.data, writer->directory.size_bytes);
    if (status == CLG_OK) status = file_writer_append(&writer->file, end.data, end.size_bytes);
    if (status == CLG_OK) status = file_writer_commit(&writer->file);
    strbuf_deinit(&end);
    zip_writer_abandon(writer);
    return status;
}

void zip_writer_abandon(zip_writer *writer)
{
    if (writer->is_open) (void)deflateEnd(&writer->deflater);
    memory_free(writer->buffer);
    memory_free(writer->name);
    strbuf_deinit(&writer->directory);
    file_writer_abandon(&writer->file);
    *writer = (zip_writer){0};
}
