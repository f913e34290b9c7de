/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the OpenCL C sources embedded in the library, by name, in the tables that
 * cmake/embed_kernels.cmake generates. */
#include "step/kernel_source.h"

#include <string.h>

static const kernel_source *find(const kernel_source *table, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

const kernel_source *kernel_source_find(const char *name)
{
    return find(kernel_sources, n_kernel_sources, name);
}

const kernel_source *kernel_source_common(const char *name)
{
    return find(kernel_commons, n_kernel_commons, name);
}
