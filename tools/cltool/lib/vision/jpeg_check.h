/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a JPEG file before stb_image decodes it, which trusts more than it should.
 */
#ifndef CLTOOL_JPEG_CHECK_H
#define CLTOOL_JPEG_CHECK_H

#include <stdio.h>

/* Reads the segments of a JPEG file from the stream's beginning. Returns CODE_DONE, or records a
 * failure that names `path`:
 * - a scan uses a Huffman table that no segment before it defines, or a table has more than 256
 *   codes: stb_image up to 2.27 then reads or writes outside of its tables;
 * - four components without a statement of their colours, as Adobe's programs write it, whose
 *   values are inverted: stb_image takes them for YCbCr;
 * - the file ends before its first scan. */
int jpeg_check(FILE *stream, const char *path);

#endif
