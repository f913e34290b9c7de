/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements what fuzz targets share: files in a temporary folder, and texts.
 */
#include "fuzz.h"

#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fuzz_file(const char *name, const uint8_t *data, size_t size_bytes)
{
    static char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    FILE *file = fopen(path, "wb");
    fuzz_require(file);
    fuzz_require(size_bytes == 0 || fwrite(data, 1, size_bytes, file) == size_bytes);
    fuzz_require(fclose(file) == 0);
    return path;
}

char *fuzz_text(const uint8_t *data, size_t size_bytes)
{
    char *text = malloc(size_bytes + 1);
    fuzz_require(text);
    if (size_bytes > 0) memcpy(text, data, size_bytes);
    text[size_bytes] = '\0';
    return text;
}

void fuzz_fail(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}
