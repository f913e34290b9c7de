/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL C sources of cl/, embedded in the library by the build.
 *
 * In a kernel's text, includes are replaced by the headers, each once, with #line directives that
 * name the original file and line. A prelude, the #defines of its P_* parameters, must precede it
 * when it is compiled. Texts end in a NUL that text_bytes does not count. All of this is
 * immutable. */
#ifndef CLGRAPH_STEP_KERNEL_SOURCE_H
#define CLGRAPH_STEP_KERNEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name; /* file stem: "gemm_simd" */
    const char *path; /* below cl/: "matmul/gemm_simd.cl" */
    const char *text;
    size_t text_bytes;
    bool splits; /* marked `// @split`: its launches may be split (decision 43) */
} kernel_source;

/* The tables: kernels, cl/<family>/<name>.cl, and headers, cl/<family>/<name>.clh. Names (file
 * stems) are unique in each table. */
extern const kernel_source kernel_sources[];
extern const size_t n_kernel_sources;
extern const kernel_source kernel_commons[];
extern const size_t n_kernel_commons;

/* Returns the kernel file with this stem, or NULL. */
const kernel_source *kernel_source_find(const char *name);

/* Returns the header with this stem, for kernels whose text is generated at run time, or NULL. Its
 * includes are expanded; a kernel that uses several headers relies on their include guards. */
const kernel_source *kernel_source_common(const char *name);

#endif
