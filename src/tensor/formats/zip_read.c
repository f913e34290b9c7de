/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads ZIP files (PKWARE's APPNOTE 6.3, with zip64). Sizes are taken from the central directory
 * only; local headers only have to agree on the name.
 */
#include "tensor/formats/zip.h"

#include "base/checked.h"
#include "base/hash_map.h"
#include "base/memory.h"

#include <string.h>

/* Sizes of the fixed parts of records: end of central directory, zip64 end and its locator, entry
 * of the central directory, local header. */
#define END_BYTES 22u
#define END64_BYTES 56u
#define LOCATOR_BYTES 20u
#define CENTRAL_BYTES 46u
#define LOCAL_BYTES 30u
#define CHUNK_BYTES ((size_t)1 << 30) /* bytes per call, since zlib counts in 32 bits */
/* Largest expansion factor of deflate: 258 bytes from a match of two bits. */
#define DEFLATE_MAX ((size_t)1032)

static clg_status damaged(const char *what)
{
    return error_set(CLG_ERROR_IO, "damaged ZIP file: %s", what);
}

/* Returns a little-endian integer. */
static uint64_t little(const uint8_t *data, unsigned n_bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n_bytes; i++) value |= (uint64_t)data[i] << (8 * i);
    return value;
}

/* ---- the directory --------------------------------------------------------------------------- */

/* The central directory. */
typedef struct directory {
    const uint8_t *file;
    size_t offset, size_bytes; /* in the file */
    uint64_t n_entries;
} directory;

/* Finds the end record: the last record of the file, followed only by a comment of the length that
 * it states. NULL if there is none. */
static const uint8_t *find_end(const uint8_t *data, size_t size_bytes)
{
    for (size_t comment = 0; comment <= UINT16_MAX && comment + END_BYTES <= size_bytes;
         comment++) {
        const uint8_t *at = data + size_bytes - END_BYTES - comment;
        if (little(at, 4) == 0x06054b50 && little(at + 20, 2) == comment) return at;
    }
    return NULL;
}

/* Replaces `numbers` (entries, bytes and offset of the directory), read from the end record, with
 * those of the zip64 end record, which must be present if one of them does not fit. */
static clg_status read_end64(const uint8_t *data, size_t end_offset, uint64_t numbers[3])
{
    if (end_offset < LOCATOR_BYTES) return damaged("the zip64 locator is missing");
    const uint8_t *locator = data + end_offset - LOCATOR_BYTES;
    uint64_t offset = little(locator + 8, 8), limit = end_offset - LOCATOR_BYTES;
    if (little(locator, 4) != 0x07064b50) return damaged("the zip64 locator is missing");
    if (offset > limit || limit - offset < END64_BYTES)
        return damaged("the zip64 directory is missing");
    const uint8_t *end = data + offset;
    if (little(end, 4) != 0x06064b50) return damaged("the zip64 directory is missing");
    numbers[0] = little(end + 32, 8);
    numbers[1] = little(end + 40, 8);
    numbers[2] = little(end + 48, 8);
    return CLG_OK;
}

static clg_status find_directory(const uint8_t *data, size_t size_bytes, directory *out)
{
    const uint8_t *end = find_end(data, size_bytes);
    if (!end) return damaged("there is no end of a directory");
    if (little(end + 4, 2) != 0 || little(end + 6, 2) != 0) {
        if (little(end + 4, 2) != UINT16_MAX) return damaged("it is one of several parts");
    }
    uint64_t numbers[3] = {little(end + 10, 2), little(end + 12, 4), little(end + 16, 4)};
    size_t end_offset = (size_t)(end - data);
    if (numbers[0] == UINT16_MAX || numbers[1] == UINT32_MAX || numbers[2] == UINT32_MAX) {
        CLG_TRY(read_end64(data, end_offset, numbers));
    }
    if (numbers[2] > end_offset || numbers[1] > end_offset - numbers[2])
        return damaged("the directory is outside the file");
    if (numbers[0] > numbers[1] / CENTRAL_BYTES)
        return damaged("the directory is too small for its entries");
    *out = (directory){.file = data,
                       .offset = (size_t)numbers[2],
                       .size_bytes = (size_t)numbers[1],
                       .n_entries = numbers[0]};
    return CLG_OK;
}

/* Replaces those of `numbers` (size, packed size, offset) that are all ones with the values in the
 * zip64 part of the entry's extra field, which has only these, in this order. */
static clg_status read_extra(const uint8_t *extra, size_t n_bytes, uint64_t numbers[3])
{
    while (n_bytes >= 4) {
        size_t length = (size_t)little(extra + 2, 2);
        if (length > n_bytes - 4) return damaged("an extra field is truncated");
        if (little(extra, 2) == 1) {
            const uint8_t *at = extra + 4;
            size_t left = length;
            for (int i = 0; i < 3; i++) {
                if (numbers[i] != UINT32_MAX) continue;
                if (left < 8) return damaged("a zip64 field is truncated");
                numbers[i] = little(at, 8);
                at += 8;
                left -= 8;
            }
            return CLG_OK;
        }
        extra += 4 + length;
        n_bytes -= 4 + length;
    }
    return CLG_OK;
}

/* Finds the data of an entry, after its local header at `offset`, which must repeat the name. */
static clg_status locate(const directory *dir, uint64_t offset, const uint8_t *name, size_t n_name,
                         uint64_t packed_bytes, const uint8_t **out_packed)
{
    size_t limit = dir->offset;
    if (offset > limit || limit - offset < LOCAL_BYTES)
        return damaged("an entry is outside the file");
    const uint8_t *local = dir->file + offset;
    size_t left = limit - (size_t)offset - LOCAL_BYTES;
    size_t n_local_name = (size_t)little(local + 26, 2), n_extra = (size_t)little(local + 28, 2);
    if (little(local, 4) != 0x04034b50) return damaged("an entry does not begin where it should");
    if (n_local_name + n_extra > left) return damaged("an entry is truncated");
    if (n_local_name != n_name || memcmp(local + LOCAL_BYTES, name, n_name) != 0) {
        return damaged("an entry's two names differ");
    }
    left -= n_local_name + n_extra;
    if (packed_bytes > left) return damaged("an entry is truncated");
    *out_packed = local + LOCAL_BYTES + n_local_name + n_extra;
    return CLG_OK;
}

/* Parses one record of the directory, which has n_bytes left; *out_record_bytes: the record's
 * length. */
static clg_status read_entry(const directory *dir, const uint8_t *record, size_t n_bytes,
                             zip_entry *out_entry, size_t *out_record_bytes)
{
    *out_entry = (zip_entry){0};
    if (n_bytes < CENTRAL_BYTES || little(record, 4) != 0x02014b50)
        return damaged("the directory is broken");
    size_t n_name = (size_t)little(record + 28, 2), n_extra = (size_t)little(record + 30, 2);
    size_t total = CENTRAL_BYTES + n_name + n_extra + (size_t)little(record + 32, 2);
    if (total > n_bytes) return damaged("the directory is truncated");
    const uint8_t *name = record + CENTRAL_BYTES;
    if (n_name == 0 || memchr(name, '\0', n_name))
        return damaged("an entry's name is empty or has a NUL");
    if (little(record + 8, 2) & 1) return error_set(CLG_ERROR_IO, "the ZIP file is encrypted");

    uint64_t numbers[3] = {little(record + 24, 4), little(record + 20, 4), little(record + 42, 4)};
    CLG_TRY(read_extra(name + n_name, n_extra, numbers));
    if (numbers[0] > SIZE_MAX / 2 || numbers[1] > SIZE_MAX / 2)
        return damaged("an entry is too large to address");
    zip_entry entry = {.method = (uint16_t)little(record + 10, 2),
                       .crc = (uint32_t)little(record + 16, 4),
                       .size_bytes = (size_t)numbers[0],
                       .packed_bytes = (size_t)numbers[1]};
    CLG_TRY(locate(dir, numbers[2], name, n_name, numbers[1], &entry.packed));
    if (entry.method == 0 && entry.size_bytes != entry.packed_bytes)
        return damaged("an entry has two sizes");
    if (entry.method == 8 && entry.size_bytes / DEFLATE_MAX > entry.packed_bytes) {
        return damaged("an entry announces more than it can expand to");
    }
    entry.name = memory_strndup((const char *)name, n_name);
    if (!entry.name) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *out_entry = entry;
    *out_record_bytes = total;
    return CLG_OK;
}

clg_status zip_open(const void *data, size_t size_bytes, zip_archive *out_archive)
{
    clg_status status;
    directory dir = {0};
    hash_map names = {0};
    *out_archive = (zip_archive){0};
    CLG_TRY(find_directory(data, size_bytes, &dir));
    out_archive->entries = memory_zalloc((size_t)dir.n_entries, sizeof *out_archive->entries);
    if (!out_archive->entries) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const uint8_t *record = dir.file + dir.offset, *end = record + dir.size_bytes;
    for (size_t i = 0; i < dir.n_entries; i++) {
        size_t record_bytes = 0;
        zip_entry *entry = &out_archive->entries[i];
        CLG_TRY_GOTO(read_entry(&dir, record, (size_t)(end - record), entry, &record_bytes), fail);
        out_archive->count = i + 1;
        record += record_bytes;
        if (hash_map_get_string(&names, entry->name) != HASH_MAP_NONE) {
            status = error_set(CLG_ERROR_IO, "damaged ZIP file: two entries are called '%s'",
                               entry->name);
            goto fail;
        }
        CLG_TRY_GOTO(hash_map_set_string(&names, entry->name, i), fail);
    }
    hash_map_deinit(&names);
    return CLG_OK;
fail:
    hash_map_deinit(&names);
    zip_close(out_archive);
    return status;
}

void zip_close(zip_archive *archive)
{
    for (size_t i = 0; i < archive->count; i++) memory_free(archive->entries[i].name);
    memory_free(archive->entries);
    *archive = (zip_archive){0};
}

/* ---- one entry ------------------------------------------------------------------------------- */

void *zip_alloc(void *user, unsigned n, unsigned size_bytes)
{
    (void)user;
    return memory_zalloc(n, size_bytes);
}

void zip_free(void *user, void *memory)
{
    (void)user;
    memory_free(memory);
}

clg_status zip_stream_open(const zip_entry *entry, zip_stream *out_stream)
{
    *out_stream = (zip_stream){.entry = entry};
    if (entry->method == 0) return CLG_OK;
    if (entry->method != 8) {
        return error_set(
            CLG_ERROR_IO,
            "entry '%s' is packed by method %d; only stored and deflated ones are read",
            entry->name, entry->method);
    }
    out_stream->inflater.zalloc = zip_alloc;
    out_stream->inflater.zfree = zip_free;
    if (inflateInit2(&out_stream->inflater, -MAX_WBITS) != Z_OK)
        return error_no_memory(sizeof(z_stream));
    out_stream->is_open = true;
    return CLG_OK;
}

/* Inflates until the buffer is full or the stream ends or fails. *out_n: bytes produced;
 * *out_result: the last result of zlib. */
static void inflate_into(zip_stream *stream, uint8_t *data, size_t size_bytes, size_t *out_n,
                         int *out_result)
{
    z_stream *z = &stream->inflater;
    *out_n = 0;
    *out_result = Z_OK;
    while (*out_result == Z_OK && *out_n < size_bytes) {
        size_t in = stream->entry->packed_bytes - stream->n_taken, out = size_bytes - *out_n;
        if (in > CHUNK_BYTES) in = CHUNK_BYTES;
        if (out > CHUNK_BYTES) out = CHUNK_BYTES;
        z->next_in = (Bytef *)(uintptr_t)(stream->entry->packed + stream->n_taken);
        z->avail_in = (uInt)in;
        z->next_out = data + *out_n;
        z->avail_out = (uInt)out;
        *out_result = inflate(z, Z_NO_FLUSH);
        stream->n_taken += in - z->avail_in;
        *out_n += out - z->avail_out;
    }
}

clg_status zip_stream_read(zip_stream *stream, void *out_data, size_t size_bytes)
{
    const zip_entry *entry = stream->entry;
    if (size_bytes == 0) return CLG_OK;
    if (size_bytes > entry->size_bytes - stream->n_read)
        return damaged("an entry is shorter than its contents say");
    if (entry->method == 0) {
        memcpy(out_data, entry->packed + stream->n_read, size_bytes);
    } else {
        size_t n;
        int result;
        inflate_into(stream, out_data, size_bytes, &n, &result);
        if (result == Z_MEM_ERROR) return error_no_memory(sizeof(z_stream));
        if (n < size_bytes) {
            return error_set(CLG_ERROR_IO, "damaged ZIP file: entry '%s' cannot be unpacked",
                             entry->name);
        }
    }
    stream->n_read += size_bytes;
    stream->crc = (uint32_t)crc32_z(stream->crc, out_data, size_bytes);
    return CLG_OK;
}

clg_status zip_stream_finish(zip_stream *stream)
{
    const zip_entry *entry = stream->entry;
    bool at_end = stream->n_read == entry->size_bytes;
    if (at_end && entry->method == 8) {
        uint8_t more;
        size_t n;
        int result;
        inflate_into(stream, &more, 1, &n, &result); /* only the end of the stream may follow */
        at_end = n == 0 && result == Z_STREAM_END && stream->n_taken == entry->packed_bytes;
    }
    if (!at_end)
        return error_set(CLG_ERROR_IO, "damaged ZIP file: entry '%s' does not end as announced",
                         entry->name);
    if (stream->crc != entry->crc) {
        return error_set(CLG_ERROR_IO, "damaged ZIP file: the checksum of entry '%s' does not hold",
                         entry->name);
    }
    return CLG_OK;
}

void zip_stream_close(zip_stream *stream)
{
    if (stream->is_open) (void)inflateEnd(&stream->inflater);
    *stream = (zip_stream){0};
}
