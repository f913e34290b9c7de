/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes JPEG 2000 images (.jp2 and code streams) by openjpeg: gray or RGB, with or without alpha,
 * of at most 16 bits, without subsampling. What openjpeg allocates by is checked first: the size in
 * the code stream, its tiles, and their precincts.
 */
#include "images/decoder.h"

#ifdef CLG_HAS_OPENJP2
#include <openjpeg.h>
#include <string.h>

#define MAX_TILES 65535
/* Precincts that a tile may have: encoders make them of 64 x 64 pixels and more. */
#define MOST_PRECINCTS 16384
#define PIXELS_A_PRECINCT 64

typedef struct jp2_source {
    const images_request *request;
    size_t at;
} jp2_source;

/* ---- the stream ------------------------------------------------------------------------------ */

static OPJ_SIZE_T read_some(void *to, OPJ_SIZE_T n, void *user)
{
    jp2_source *s = user;
    const size_t left = s->request->n_bytes - s->at, part = n < left ? n : left;
    if (part == 0) return (OPJ_SIZE_T)-1;
    memcpy(to, s->request->bytes + s->at, part);
    s->at += part;
    return part;
}

static OPJ_OFF_T skip_some(OPJ_OFF_T n, void *user)
{
    jp2_source *s = user;
    if (n < 0 || (uint64_t)n > s->request->n_bytes - s->at) return -1;
    s->at += (size_t)n;
    return n;
}

static OPJ_BOOL seek(OPJ_OFF_T at, void *user)
{
    jp2_source *s = user;
    if (at < 0 || (uint64_t)at > s->request->n_bytes) return OPJ_FALSE;
    s->at = (size_t)at;
    return OPJ_TRUE;
}

static opj_stream_t *open_stream(jp2_source *s)
{
    opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
    if (!stream) return NULL;
    opj_stream_set_read_function(stream, read_some);
    opj_stream_set_skip_function(stream, skip_some);
    opj_stream_set_seek_function(stream, seek);
    opj_stream_set_user_data(stream, s, NULL);
    opj_stream_set_user_data_length(stream, s->request->n_bytes);
    return stream;
}

static images_code fail_any(image_job *j)
{
    return image_fail(j, "is damaged or of an unsupported format (JPEG 2000)");
}

/* ---- the code stream ------------------------------------------------------------------------- */

/* Returns where the code stream begins: at 0, or in the first box jp2c; n_bytes: nowhere. */
static size_t find_code_stream(const images_request *r)
{
    size_t at = 0;
    if (r->bytes[0] == 0xFF) return 0;
    while (r->n_bytes - at >= 16) {
        const unsigned char *box = r->bytes + at;
        uint64_t length = image_big_endian(box, 4);
        const size_t head = length == 1 ? 16 : 8;
        if (memcmp(box + 4, "jp2c", 4) == 0) return at + head;
        if (length == 1)
            length = (uint64_t)image_big_endian(box + 8, 4) << 32 | image_big_endian(box + 12, 4);
        if (length < head || length > r->n_bytes - at) break;
        at += (size_t)length;
    }
    return r->n_bytes;
}

/* A code stream whose headers are checked. */
typedef struct jp2_headers {
    image_job *job;
    size_t at;
    uint32_t tile_width, tile_height, n_components; /* tiles as far as they are in the image */
    uint64_t n_tiles;
    bool in_tile; /* in the header of a part of a tile */
} jp2_headers;

/* Returns how many precincts of 2^log2 pixels a side of n pixels has after k halvings: at least,
 * since it does not begin at a multiple. */
static uint64_t count_along(uint32_t n, uint32_t k, uint32_t log2)
{
    const uint64_t whole = k + log2 < 32 ? (uint64_t)n >> (k + log2) : 0;
    return whole > 0 ? whole : 1;
}

/* Refuses tiles whose precincts have a few pixels each, of which openjpeg takes 500 bytes: by the
 * n_bytes of a segment COD or COC from the style on; `skipped`: those between style and levels. */
static images_code check_precincts(const jp2_headers *h, const unsigned char *style, size_t n_bytes,
                                   size_t skipped)
{
    const unsigned char *levels = style + 1 + skipped;
    const size_t head = skipped + 6; /* the style, levels, code blocks (3), transform */
    uint64_t n = 0;
    if (n_bytes < head) return fail_any(h->job);
    if (!(style[0] & 1)) return IMAGES_OK; /* of the largest size */
    if (levels[0] > 32 || n_bytes < head + levels[0] + 1) return fail_any(h->job);
    for (uint32_t r = 0; r <= levels[0]; r++) {
        const uint32_t size = levels[5 + r], k = levels[0] - r;
        n += count_along(h->tile_width, k, size & 15) * count_along(h->tile_height, k, size >> 4);
    }
    const uint64_t pixels = (uint64_t)h->tile_width * h->tile_height;
    return n * h->n_components <= MOST_PRECINCTS + pixels / PIXELS_A_PRECINCT
               ? IMAGES_OK
               : image_fail(h->job, "has more precincts than a JPEG 2000 of its size needs");
}

/* Checks a segment, of n_bytes, of marker 0xFF00 + m. Tiles that are coded in a way of their own
 * (COD, COC) are not read. openjpeg looks for the next marker where it does not know one, and so
 * would find others than are found here. */
static images_code check_segment(const jp2_headers *h, uint32_t m, const unsigned char *bytes,
                                 size_t n_bytes)
{
    enum { COD = 0x52, COC = 0x53 };
    static const unsigned char both[] = {0x5C, 0x5D, 0x5E, 0x5F, 0x64},
                               image[] = {0x50, 0x51, 0x55, 0x57, 0x60,
                                          0x63, 0x74, 0x75, 0x77, 0x78},
                               tile[] = {0x58, 0x61};
    if (m == COD && !h->in_tile) return check_precincts(h, bytes + 4, n_bytes - 4, 4);
    if (m == COC && !h->in_tile && n_bytes > 5)
        return check_precincts(h, bytes + 5, n_bytes - 5, 0);
    if (memchr(both, (int)m, sizeof both)) return IMAGES_OK;
    return (h->in_tile ? memchr(tile, (int)m, sizeof tile) : memchr(image, (int)m, sizeof image))
               ? IMAGES_OK
               : fail_any(h->job);
}

/* Checks the segments of a header, up to the first marker that is `end`. */
static images_code check_header(jp2_headers *h, uint32_t end)
{
    const images_request *r = h->job->request;
    for (;;) {
        const unsigned char *segment = r->bytes + h->at;
        if (r->n_bytes - h->at < 4) return image_fail_cut(h->job);
        const uint32_t marker = image_big_endian(segment, 2),
                       length = image_big_endian(segment + 2, 2);
        if (marker == end) return IMAGES_OK;
        if (marker >> 8 != 0xFF || length < 2) return fail_any(h->job);
        if (length + 2 > r->n_bytes - h->at) return image_fail_cut(h->job);
        const images_code code = check_segment(h, marker & 0xFF, segment, length + 2);
        if (code != IMAGES_OK) return code;
        h->at += length + 2;
    }
}

/* Checks the headers of the image and of its tiles, all of which must begin in the file: openjpeg
 * would allocate them all, and leave those black that are missing. */
static images_code check_headers(jp2_headers *h)
{
    enum { SOT = 0xFF90, SOD = 0xFF93, SOT_BYTES = 12 };
    const images_request *r = h->job->request;
    uint64_t n = 0;
    images_code code = check_header(h, SOT);
    h->in_tile = true;
    while (code == IMAGES_OK && r->n_bytes - h->at >= SOT_BYTES + 2 &&
           image_big_endian(r->bytes + h->at, 2) == SOT) {
        const uint32_t part_bytes = image_big_endian(r->bytes + h->at + 6, 4);
        const size_t left = r->n_bytes - h->at;
        const size_t end = h->at + (part_bytes && part_bytes <= left ? part_bytes : left);
        n += r->bytes[h->at + 10] == 0; /* the tile's first part */
        h->at += SOT_BYTES;
        code = check_header(h, SOD);
        if (code == IMAGES_OK && end < h->at + 2) return fail_any(h->job);
        h->at = end;
    }
    return code != IMAGES_OK || n >= h->n_tiles ? code : image_fail_cut(h->job);
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Reads the marker SIZ, the first of a code stream, and checks what else openjpeg allocates by if
 * more than the size is wanted. */
static images_code read_size(image_job *j)
{
    enum { SIZ_BYTES = 42 };
    const images_request *r = j->request;
    const size_t at = find_code_stream(r);
    if (r->n_bytes - at < SIZ_BYTES) return image_fail_cut(j);
    const unsigned char *siz = r->bytes + at + 2;
    if (memcmp(siz, "\xFF\x51", 2) != 0) return image_fail(j, "is damaged: it has no size");
    uint32_t field[8]; /* size, offset, size of tiles, offset of tiles; each of x and y */
    for (int i = 0; i < 8; i++) field[i] = image_big_endian(siz + 6 + 4 * i, 4);
    const uint32_t n_components = image_big_endian(siz + 38, 2);
    if (field[0] <= field[2] || field[1] <= field[3] || field[4] == 0 || field[5] == 0 ||
        field[6] >= field[0] || field[7] >= field[1])
        return image_fail(j, "is damaged: its size is wrong");
    const images_code code = image_size(j, field[0] - field[2], field[1] - field[3]);
    if (code != IMAGES_OK) return code;
    const uint64_t n_x = ((uint64_t)field[0] - field[6] + field[4] - 1) / field[4],
                   n_y = ((uint64_t)field[1] - field[7] + field[5] - 1) / field[5];
    if (n_x * n_y > MAX_TILES || n_components == 0 || n_components > 4)
        return image_fail(j, "has more than 65535 tiles or 4 components");
    jp2_headers h = {.job = j,
                     .at = at + 2,
                     .tile_width = smaller(field[4], j->result->width),
                     .tile_height = smaller(field[5], j->result->height),
                     .n_components = n_components,
                     .n_tiles = n_x * n_y};
    return image_wants_size(j) ? IMAGES_OK : check_headers(&h);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static images_code check_components(image_job *j, const opj_image_t *image)
{
    if (image->numcomps == 0 || image->numcomps > 4 || image->color_space == OPJ_CLRSPC_CMYK ||
        image->color_space == OPJ_CLRSPC_EYCC)
        return image_fail(j, "is of an unsupported kind of JPEG 2000");
    for (uint32_t c = 0; c < image->numcomps; c++) {
        const opj_image_comp_t *p = &image->comps[c];
        if (!p->data || p->w != j->result->width || p->h != j->result->height || p->prec == 0 ||
            p->prec > 16)
            return image_fail(j, "is of an unsupported kind of JPEG 2000");
    }
    return IMAGES_OK;
}

/* Returns an element as an unsigned number of `bits` bits. */
static unsigned element(const opj_image_comp_t *p, size_t i, unsigned bits)
{
    const int64_t max = ((int64_t)1 << p->prec) - 1;
    int64_t x = p->data[i];
    if (p->sgnd) x += (max + 1) / 2;
    x = x < 0 ? 0 : x > max ? max : x;
    return p->prec <= bits ? (unsigned)x << (bits - p->prec) : (unsigned)x >> (p->prec - bits);
}

static unsigned char clamp(double x)
{
    return (unsigned char)(x <= 0 ? 0 : x >= 255 ? 255 : x + 0.5);
}

/* Converts pixels of Y, Cb, Cr (sYCC) to RGB. */
static void from_sycc(unsigned char *pixels, size_t n, int channels)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char *p = pixels + i * (size_t)channels;
        const double y = p[0], cb = p[1] - 128.0, cr = p[2] - 128.0;
        p[0] = clamp(y + 1.402 * cr);
        p[1] = clamp(y - 0.344 * cb - 0.714 * cr);
        p[2] = clamp(y + 1.772 * cb);
    }
}

static images_code copy_pixels(image_job *j, const opj_image_t *image)
{
    images_code code = check_components(j, image);
    if (code != IMAGES_OK) return code;
    const int channels = (int)image->numcomps;
    const size_t n = (size_t)j->result->width * j->result->height;
    const bool is_sycc = image->color_space == OPJ_CLRSPC_SYCC && channels >= 3;
    bool is_16 = false;
    for (int c = 0; c < channels && !is_sycc; c++) is_16 |= image->comps[c].prec > 8;
    code = image_pixels(j, channels, is_16);
    if (code != IMAGES_OK) return code;
    unsigned char *bytes = j->result->pixels;
    uint16_t *words = j->result->pixels;
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < channels; c++) {
            const unsigned x = element(&image->comps[c], i, is_16 ? 16 : 8);
            const size_t at = i * (size_t)channels + (size_t)c;
            if (is_16)
                words[at] = (uint16_t)x;
            else
                bytes[at] = (unsigned char)x;
        }
    if (is_sycc) from_sycc(bytes, n, channels);
    return IMAGES_OK;
}

static images_code decode(image_job *j, opj_codec_t *codec, opj_stream_t *stream)
{
    opj_dparameters_t parameters;
    opj_image_t *image = NULL;
    opj_set_default_decoder_parameters(&parameters);
    const bool done = opj_setup_decoder(codec, &parameters) &&
                      opj_read_header(stream, codec, &image) && opj_decode(codec, stream, image) &&
                      opj_end_decompress(codec, stream);
    const images_code code = done ? copy_pixels(j, image) : fail_any(j);
    if (image) opj_image_destroy(image);
    return code;
}

images_code decode_jpeg2000(image_job *j)
{
    jp2_source s = {.request = j->request};
    images_code code = read_size(j);
    if (code != IMAGES_OK || image_wants_size(j)) return code;
    opj_codec_t *codec =
        opj_create_decompress(j->request->bytes[0] == 0xFF ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = open_stream(&s);
    code = codec && stream ? decode(j, codec, stream) : IMAGES_NO_MEMORY;
    if (stream) opj_stream_destroy(stream);
    if (codec) opj_destroy_codec(codec);
    return code;
}
#endif
