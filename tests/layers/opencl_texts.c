/* SPDX-License-Identifier: Apache-2.0
 *
 * An OpenCL layer (OPENCL_LAYERS of ocl-icd) that writes the source of each of clgraph's programs
 * to CLG_TEXTS/<kernel file>@<hash>.cl, for tools/portability.sh --texts. Programs loaded from the
 * cache have no source: run with an empty CLG_CACHE_DIR. Programs of other libraries (CLBlast) are
 * skipped.
 */
#define LAYER_NAME "clgraph's texts"
#include "opencl_layer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the FNV-1a hash of n bytes. */
static uint64_t hash_of(const char *text, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h;
}

/* Writes the stem of the kernel's file to `out`: from the first `#line 1 "cl/<family>/<stem>.cl"`,
 * or "generated" for a generated kernel. Returns false for a program of another library. */
static bool stem_of(const char *text, char *out, size_t size)
{
    if (strstr(text, "#line 1 \"generated: ")) {
        snprintf(out, size, "generated");
        return true;
    }
    const char *at = strstr(text, "#line 1 \"cl/");
    if (!at) return false;
    at += strlen("#line 1 \"cl/");
    at += strcspn(at, "/\"\n");
    if (*at == '/') at++;
    const size_t n = strcspn(at, "./\"\n");
    snprintf(out, size, "%.*s", (int)n, at);
    return n > 0 && n < size && strncmp(at + n, ".cl\"", 4) == 0;
}

static void write_text(const char *text, size_t n)
{
    char stem[64], path[1024];
    const char *folder = getenv("CLG_TEXTS");
    if (!folder || !stem_of(text, stem, sizeof stem)) return;
    snprintf(path, sizeof path, "%s/%s@%016llx.cl", folder, stem,
             (unsigned long long)hash_of(text, n));
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(text, 1, n, f);
    fclose(f);
}

static cl_program CL_API_CALL wrap_clCreateProgramWithSource(cl_context context, cl_uint n,
                                                             const char **strings,
                                                             const size_t *lengths, cl_int *error)
{
    /* clgraph passes declarations for this driver, and then the kernel as the last string. */
    if (n > 0 && strings && strings[n - 1]) {
        const size_t size = lengths && lengths[n - 1] ? lengths[n - 1] : strlen(strings[n - 1]);
        char *text = malloc(size + 1);
        if (text) {
            memcpy(text, strings[n - 1], size);
            text[size] = '\0';
            write_text(text, size);
            free(text);
        }
    }
    return next->clCreateProgramWithSource(context, n, strings, lengths, error);
}

static void fill(void) { table.clCreateProgramWithSource = wrap_clCreateProgramWithSource; }
