/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements jpeg_check.h. Markers and segments: ITU-T T.81, annex B.
 */
#include "jpeg_check.h"

#include "failure.h"

#include <stdbool.h>
#include <string.h>

enum {
    SOF0 = 0xC0,
    SOF2 = 0xC2,
    DHT = 0xC4,
    RST0 = 0xD0,
    RST7 = 0xD7,
    EOI = 0xD9,
    SOS = 0xDA,
    ADOBE = 0xEE,
    N_TABLES = 4,
    MAX_CODES = 256
};

/* What the segments so far have said. */
typedef struct jpeg_state {
    FILE *stream;
    const char *path;
    bool is_progressive, has_dc[N_TABLES], has_ac[N_TABLES];
    int transform, n_components; /* transform: Adobe's, -1: not said */
} jpeg_state;

static int fail_damaged(const jpeg_state *j, const char *why)
{
    return fail_file("image '%s' is damaged: %s", j->path, why);
}

static int fail_cut(const jpeg_state *j) { return fail_damaged(j, "it ends too early"); }

/* Reads the next marker, and the length of what follows it; false at the end. Skips other bytes
 * before the marker, as stb_image does. */
static bool next_marker(FILE *stream, int *out_marker, unsigned *out_n)
{
    int c = fgetc(stream);
    while (c != 0xFF && c != EOF) c = fgetc(stream);
    while (c == 0xFF) c = fgetc(stream);
    *out_marker = c;
    const int high = c == EOF ? EOF : fgetc(stream), low = high == EOF ? EOF : fgetc(stream);
    if (low == EOF) return false;
    *out_n = (unsigned)high << 8 | (unsigned)low;
    return *out_n >= 2;
}

/* Moves to the marker that ends the data of a scan; false at the end of the file or image. */
static bool skip_scan(FILE *stream)
{
    for (int c = fgetc(stream), next; c != EOF; c = next) {
        next = fgetc(stream);
        if (c != 0xFF || next == 0 || next == 0xFF || (next >= RST0 && next <= RST7)) continue;
        if (next == EOI || next == EOF) return false;
        return fseek(stream, -2, SEEK_CUR) == 0;
    }
    return false;
}

/* Reads the Huffman tables of a segment of n bytes. */
static int read_tables(jpeg_state *j, unsigned n)
{
    while (n > 0) {
        unsigned char head[17];
        unsigned n_codes = 0;
        if (n < sizeof head || fread(head, 1, sizeof head, j->stream) != sizeof head)
            return fail_cut(j);
        for (int i = 1; i <= 16; i++) n_codes += head[i];
        if (n_codes > MAX_CODES || n_codes > n - sizeof head || (head[0] & 15) >= N_TABLES ||
            head[0] >> 4 > 1)
            return fail_damaged(j, "a Huffman table is wrong");
        (head[0] >> 4 ? j->has_ac : j->has_dc)[head[0] & 15] = true;
        if (fseek(j->stream, (long)n_codes, SEEK_CUR) != 0) return fail_cut(j);
        n -= (unsigned)sizeof head + n_codes;
    }
    return CODE_DONE;
}

/* Checks that the tables of a scan are defined. Its segment has n bytes. */
static int read_scan(const jpeg_state *j, unsigned n)
{
    unsigned char body[1 + 2 * N_TABLES + 3];
    if (n > sizeof body || n < 4 || fread(body, 1, n, j->stream) != n || n != 4 + 2u * body[0])
        return fail_damaged(j, "the header of a scan is wrong");
    const unsigned char *range = body + 1 + 2 * body[0]; /* first coefficient, last, bits */
    const bool dc = !j->is_progressive || range[0] == 0, ac = !j->is_progressive || range[0] > 0;
    for (int i = 0; i < body[0]; i++) {
        const int tables = body[2 + 2 * i], at_dc = tables >> 4, at_ac = tables & 15;
        if ((dc && range[2] >> 4 == 0 && (at_dc >= N_TABLES || !j->has_dc[at_dc])) ||
            (ac && (at_ac >= N_TABLES || !j->has_ac[at_ac])))
            return fail_damaged(j, "a scan uses a Huffman table that is not there");
    }
    return CODE_DONE;
}

/* Reads what matters of a segment of another kind, of n bytes. */
static int read_other(jpeg_state *j, int marker, unsigned n)
{
    unsigned char body[12] = {0};
    const unsigned wanted = n < sizeof body ? n : (unsigned)sizeof body;
    if (fread(body, 1, wanted, j->stream) != wanted) return fail_cut(j);
    /* C8 and CC are extensions, the others start a frame. */
    if (marker >= SOF0 && marker <= 0xCF && marker != 0xC8 && marker != 0xCC) {
        j->n_components = body[5];
        j->is_progressive = marker == SOF2;
    }
    if (marker == ADOBE && memcmp(body, "Adobe", 5) == 0) j->transform = body[11];
    return fseek(j->stream, (long)(n - wanted), SEEK_CUR) == 0 ? CODE_DONE : fail_cut(j);
}

int jpeg_check(FILE *stream, const char *path)
{
    jpeg_state j = {.stream = stream, .path = path, .transform = -1};
    int marker, code = CODE_DONE;
    unsigned n;
    (void)fseek(stream, 2, SEEK_SET);
    while (code == CODE_DONE && next_marker(stream, &marker, &n)) {
        n -= 2;
        if (marker == DHT) {
            code = read_tables(&j, n);
        } else if (marker == SOS) {
            code = read_scan(&j, n);
            if (code == CODE_DONE && !skip_scan(stream)) break;
        } else {
            code = read_other(&j, marker, n);
        }
    }
    if (code != CODE_DONE) return code;
    if (j.n_components != 4 || j.transform == 0 || j.transform == 2) return CODE_DONE;
    return fail_file("image '%s' is a JPEG of four components that does not say their colours",
                     path);
}
