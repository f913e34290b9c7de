/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the public functions that belong to no object: version, errors, log, allocator,
 * dtypes, patterns of names.
 */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "tensor/dtype.h"

#include <clgraph/inspect.h>

#define VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define VERSION_TEXT(major, minor, patch) VERSION_TEXT_(major, minor, patch)

const char *clg_version(void)
{
    return VERSION_TEXT(CLG_VERSION_MAJOR, CLG_VERSION_MINOR, CLG_VERSION_PATCH);
}

const char *clg_status_name(clg_status status) { return status_name(status); }

const char *clg_last_error(void) { return error_text(); }

const char *clg_last_hint(void) { return error_hint_text(); }

void clg_set_log(clg_log_callback callback, void *user, clg_log_level level)
{
    log_set(callback, user, level);
}

void clg_set_compile_callback(clg_compile_callback callback, void *user)
{
    log_set_compile(callback, user);
}

clg_log_callback clg_get_log(void **out_user) { return log_get(out_user); }

clg_status clg_set_allocator(const clg_allocator *allocator)
{
    if (allocator && !allocator->resize)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "clg_set_allocator: the allocator has no resize function");
    return memory_set_allocator(allocator);
}

const char *clg_dtype_name(clg_dtype dtype) { return dtype_name(dtype); }

size_t clg_dtype_size(clg_dtype dtype) { return dtype_size(dtype); }

bool clg_name_matches(const char *pattern, const char *name)
{
    return pattern && name && text_matches(pattern, name);
}
