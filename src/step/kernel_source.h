/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL C texts of cl/, embedded in the library by the build.
 *
 * A kernel's text has the headers in place of the includes, each once, and #line directives that
 * name the true file and line. A prelude of P_* parameters must precede it. Texts end in a NUL that
 * text_bytes does not count; all of it is immutable.
 */
#ifndef CLGRAPH_STEP_KERNEL_SOURCE_H
#define CLGRAPH_STEP_KERNEL_SOURCE_H

#include <stddef.h>

typedef struct {
    const char *name; /* file stem: "gemm_simd" */
    const char *path; /* below cl/: "matmul/gemm_simd.cl" */
    const char *text;
    size_t text_bytes;
} kernel_source;

/* The tables: cl/<family>/<name>.cl, and the headers cl/<family>/<name>.clh. Stems are unique in
 * each. */
extern const kernel_source kernel_sources[];
extern const size_t n_kernel_sources;
extern const kernel_source kernel_commons[];
extern const size_t n_kernel_commons;

/* Returns the kernel file of that stem, or NULL. */
const kernel_source *kernel_source_find(const char *name);

/* Returns the header of that stem, for kernels whose text is generated at run time; or NULL. Its
 * includes are expanded; a kernel that uses several headers relies on their include guards. */
const kernel_source *kernel_source_common(const char *name);

#endif
