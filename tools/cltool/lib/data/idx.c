/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements idx.h. Files are not trusted: sizes are compared before anything is unpacked.
 */
#include "idx.h"

#include "host.h"
#include "names.h"
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK ((size_t)1 << 16)
#define MAX_DEFLATE_RATIO 1032 /* deflate cannot do better (zlib's technical details) */
#define GZIP_FORMAT (16 + MAX_WBITS)

typedef struct idx_type {
    unsigned char code;
    clg_dtype dtype;
    const char *name;
} idx_type;
static const idx_type types[] = {
    {0x08, CLG_UINT8, "ubyte"}, {0x09, CLG_INT8, "byte"},     {0x0B, CLG_INT16, "short"},
    {0x0C, CLG_INT32, "int"},   {0x0D, CLG_FLOAT32, "float"}, {0x0E, CLG_FLOAT64, "double"},
};
#define N_TYPES (sizeof types / sizeof *types)

/* ---- bytes of a file, unpacked --------------------------------------------------------------- */

/* A plain or compressed file, read once from its start. */
typedef struct source {
    const char *path;
    FILE *stream;
    bool is_packed, is_ended;
    z_stream inflater;
    unsigned char *packed; /* CHUNK bytes */
} source;

static int unreadable(const char *path)
{
    return fail_file("'%s' cannot be read: %s", path, strerror(errno));
}

static int source_open(const char *path, source *s)
{
    unsigned char magic[2] = {0};
    *s = (source){.path = path};
    s->stream = path_is_folder(path) ? NULL : host_open(path, "rb");
    if (!s->stream)
        return fail_file("'%s' cannot be read: %s", path,
                         path_is_folder(path) ? "it is a folder" : strerror(errno));
    const size_t n = fread(magic, 1, sizeof magic, s->stream);
    if (ferror(s->stream) || host_seek(s->stream, 0) != 0) return unreadable(path);
    s->is_packed = n == sizeof magic && magic[0] == 0x1F && magic[1] == 0x8B;
    if (!s->is_packed) return CODE_DONE;
    if (inflateInit2(&s->inflater, GZIP_FORMAT) != Z_OK)
        return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "'%s': out of host memory", path);
    s->packed = must_alloc(CHUNK, 1);
    return CODE_DONE;
}

static void source_close(source *s)
{
    if (s->packed) (void)inflateEnd(&s->inflater);
    free(s->packed);
    if (s->stream) (void)fclose(s->stream);
    *s = (source){0};
}

/* Continues with the next part of a gzip file, which may have several, or ends. */
static int next_member(source *s)
{
    z_stream *z = &s->inflater;
    if (z->avail_in == 0) {
        z->next_in = s->packed;
        z->avail_in = (uInt)fread(s->packed, 1, CHUNK, s->stream);
    }
    if (ferror(s->stream)) return unreadable(s->path);
    s->is_ended = z->avail_in == 0;
    if (!s->is_ended && inflateReset(z) != Z_OK)
        return fail_file("'%s': zlib cannot go on after the first part", s->path);
    return CODE_DONE;
}

static int inflate_some(source *s, unsigned char *to, size_t size_bytes, size_t *out_n)
{
    z_stream *z = &s->inflater;
    int code = CODE_DONE;
    z->next_out = to;
    z->avail_out = (uInt)size_bytes;
    while (code == CODE_DONE && z->avail_out > 0 && !s->is_ended) {
        if (z->avail_in == 0) {
            z->next_in = s->packed;
            z->avail_in = (uInt)fread(s->packed, 1, CHUNK, s->stream);
            if (ferror(s->stream)) return unreadable(s->path);
            if (z->avail_in == 0) return fail_file("'%s': the gzip file is cut off", s->path);
        }
        const int result = inflate(z, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            code = next_member(s);
        else if (result != Z_OK)
            return fail_file("'%s': the gzip file is damaged: %s", s->path,
                             z->msg ? z->msg : "zlib reports an error");
    }
    *out_n = size_bytes - z->avail_out;
    return code;
}

/* Reads up to size_bytes (at most CHUNK); *out_n is less at the end of the file only. */
static int source_read(source *s, unsigned char *to, size_t size_bytes, size_t *out_n)
{
    if (s->is_packed) {
        const int code = inflate_some(s, to, size_bytes, out_n);
        s->inflater.next_out = NULL; /* the caller's */
        return code;
    }
    *out_n = fread(to, 1, size_bytes, s->stream);
    return ferror(s->stream) ? unreadable(s->path) : CODE_DONE;
}

/* ---- the header ------------------------------------------------------------------------------ */

static int read_type(idx_reader *r, const unsigned char magic[4])
{
    const idx_type *type = types;
    if (magic[0] != 0 || magic[1] != 0)
        return fail_file("'%s' is not an IDX file: it begins with %02x %02x, not with two zeros",
                         r->path, magic[0], magic[1]);
    while (type < types + N_TYPES && type->code != magic[2]) type++;
    if (type == types + N_TYPES)
        return fail_file("'%s': 0x%02x is not a type of IDX files (ubyte 0x08, byte 0x09, short "
                         "0x0B, int 0x0C, float 0x0D, double 0x0E)",
                         r->path, magic[2]);
    r->dtype = type->dtype;
    r->elem_bytes = clg_dtype_size(type->dtype);
    r->rank = magic[3];
    if (r->rank >= 1 && r->rank <= CLG_MAX_RANK) return CODE_DONE;
    return fail_file("'%s' has %zu axes: 1 to %d can be read", r->path, r->rank, CLG_MAX_RANK);
}

/* Reads the header, and computes the bytes of all rows. */
static int read_header(idx_reader *r, source *s, uint64_t *out_data_bytes)
{
    unsigned char bytes[4 * CLG_MAX_RANK];
    size_t n = 0;
    int code = source_read(s, bytes, 4, &n);
    if (code == CODE_DONE && n < 4) code = fail_file("'%s' is too short for an IDX file", r->path);
    if (code == CODE_DONE) code = read_type(r, bytes);
    if (code == CODE_DONE) code = source_read(s, bytes, 4 * r->rank, &n);
    if (code == CODE_DONE && n < 4 * r->rank)
        code = fail_file("'%s' ends within its header of %zu axes", r->path, r->rank);
    if (code != CODE_DONE) return code;
    uint64_t row = 1, claimed_bytes = r->elem_bytes; /* claimed: with 1 for axes of size 0 */
    bool fits = true;
    for (size_t d = 0; d < r->rank; d++) {
        const unsigned char *at = bytes + 4 * d;
        const uint64_t dim =
            (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
        r->dims[d] = (int64_t)dim;
        fits = fits && (dim == 0 || claimed_bytes <= (uint64_t)INT64_MAX / dim);
        if (fits && dim > 0) claimed_bytes *= dim;
        if (fits && d > 0) row *= dim;
    }
    const uint64_t n_rows = (uint64_t)r->dims[0], row_bytes = row * r->elem_bytes;
    const bool is_empty = n_rows == 0 || row == 0;
    if (!fits || row_bytes > SIZE_MAX || (is_empty && claimed_bytes > IDX_MAX_EMPTY))
        return fail_file("'%s' has shape %s: more than any file holds", r->path,
                         dims_text(r->rank, r->dims));
    r->row_elems = (size_t)row;
    r->data_offset = 4 + 4 * r->rank;
    *out_data_bytes = n_rows * row_bytes;
    return CODE_DONE;
}

static int wrong_size(const idx_reader *r, uint64_t data_bytes, bool is_short)
{
    return fail_file("'%s' has %s than the %" PRIu64 " bytes of its shape %s", r->path,
                     is_short ? "less" : "more", data_bytes, dims_text(r->rank, r->dims));
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Refuses a header that no content of this compressed file can satisfy. */
static int check_unpacked(const idx_reader *r, uint64_t data_bytes)
{
    uint64_t packed_bytes = 0;
    int64_t modified;
    if (host_stat(r->path, &packed_bytes, &modified) != 0) return unreadable(r->path);
    if (data_bytes / MAX_DEFLATE_RATIO > packed_bytes) return wrong_size(r, data_bytes, true);
    if (data_bytes <= IDX_MAX_UNPACKED) return CODE_DONE;
    (void)fail_file("'%s' has %s when it is unpacked, more than %s", r->path,
                    bytes_text((double)data_bytes), bytes_text((double)IDX_MAX_UNPACKED));
    fail_hint("unpack it with gunzip: a file that is not compressed may have any size");
    return CODE_FILE;
}

/* Writes what follows the header to a temporary file. */
static int unpack(idx_reader *r, source *s, uint64_t data_bytes)
{
    unsigned char *chunk = must_alloc(CHUNK, 1);
    uint64_t done = 0;
    size_t n = CHUNK;
    int code = check_unpacked(r, data_bytes);
    if (code == CODE_DONE && !(r->stream = host_temporary()))
        code = fail_file("'%s' cannot be unpacked: no temporary file can be made: %s", r->path,
                         strerror(errno));
    while (code == CODE_DONE && n == CHUNK) {
        code = source_read(s, chunk, CHUNK, &n);
        if (code == CODE_DONE && n > data_bytes - done) code = wrong_size(r, data_bytes, false);
        if (code == CODE_DONE && fwrite(chunk, 1, n, r->stream) != n)
            code = fail_file("'%s' cannot be unpacked into a temporary file: %s", r->path,
                             strerror(errno));
        done += n;
    }
    if (code == CODE_DONE && done < data_bytes) code = wrong_size(r, data_bytes, true);
    if (code == CODE_DONE && fflush(r->stream) != 0)
        code = fail_file("'%s' cannot be unpacked into a temporary file: %s", r->path,
                         strerror(errno));
    r->data_offset = 0;
    free(chunk);
    return code;
}

/* Keeps a file that is not compressed. */
static int keep(idx_reader *r, source *s, uint64_t data_bytes)
{
    uint64_t size_bytes = 0;
    int64_t modified;
    if (host_stat(r->path, &size_bytes, &modified) != 0) return unreadable(r->path);
    if (size_bytes - r->data_offset != data_bytes)
        return wrong_size(r, data_bytes, size_bytes - r->data_offset < data_bytes);
    r->stream = s->stream;
    s->stream = NULL;
    return CODE_DONE;
}

int idx_open(const char *path, int (*accept)(void *user, const idx_reader *reader), void *user,
             idx_reader *out_reader)
{
    source s;
    uint64_t data_bytes = 0;
    *out_reader = (idx_reader){.path = path};
    int code = source_open(path, &s);
    if (code == CODE_DONE) code = read_header(out_reader, &s, &data_bytes);
    if (code == CODE_DONE && accept) code = accept(user, out_reader);
    if (code == CODE_DONE)
        code = s.is_packed ? unpack(out_reader, &s, data_bytes) : keep(out_reader, &s, data_bytes);
    source_close(&s);
    if (code != CODE_DONE) idx_close(out_reader);
    return code;
}

void idx_close(idx_reader *r)
{
    if (r->stream) (void)fclose(r->stream);
    *r = (idx_reader){0};
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_little_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

static void reverse_elements(unsigned char *at, size_t n, size_t elem_bytes)
{
    for (size_t i = 0; i < n; i++, at += elem_bytes) {
        for (size_t k = 0; k < elem_bytes / 2; k++) {
            const unsigned char byte = at[k];
            at[k] = at[elem_bytes - 1 - k];
            at[elem_bytes - 1 - k] = byte;
        }
    }
}

int idx_read(idx_reader *r, int64_t first, size_t n, void *to)
{
    const size_t row_bytes = r->row_elems * r->elem_bytes;
    if (row_bytes == 0 || n == 0) return CODE_DONE;
    if (host_seek(r->stream, r->data_offset + (uint64_t)first * row_bytes) != 0)
        return unreadable(r->path);
    if (fread(to, row_bytes, n, r->stream) != n)
        return ferror(r->stream) ? unreadable(r->path)
                                 : fail_file("'%s' has become shorter while it was read", r->path);
    if (is_little_endian()) reverse_elements(to, n * r->row_elems, r->elem_bytes);
    return CODE_DONE;
}

/* Returns whether the n characters are "idx", a digit, '-' and the name of a type. */
static bool is_suffix(const char *text, size_t n)
{
    if (n < 5 || strncmp(text, "idx", 3) != 0 || text[3] < '1' || text[3] > '9' || text[4] != '-')
        return false;
    for (size_t i = 0; i < N_TYPES; i++)
        if (strlen(types[i].name) == n - 5 && strncmp(text + 5, types[i].name, n - 5) == 0)
            return true;
    return false;
}

bool idx_is_name(const char *path)
{
    const char *name = path_base(path);
    size_t n = strlen(name);
    if (path_ends_in(name, ".gz")) n -= 3;
    if (n > 4 && strncmp(name + n - 4, ".idx", 4) == 0) return true;
    for (size_t i = 1; i < n; i++)
        if ((name[i - 1] == '-' || name[i - 1] == '.') && is_suffix(name + i, n - i)) return true;
    return false;
}
