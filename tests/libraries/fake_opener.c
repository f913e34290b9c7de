/* SPDX-License-Identifier: Apache-2.0
 *
 * A library like Android's libvndksupport.so: it opens "vendor:PATH", which its callers cannot.
 */
#include <dlfcn.h>
#include <string.h>

void *android_load_sphal_library(const char *name, int flags);

void *android_load_sphal_library(const char *name, int flags)
{
    return strncmp(name, "vendor:", 7) == 0 ? dlopen(name + 7, flags) : NULL;
}
