/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts clg_context_options to the options of src/ocl and src/session; defaults come from the
 * environment.
 */
#ifndef CLG_API_CONTEXT_SETTINGS_H
#define CLG_API_CONTEXT_SETTINGS_H

#include "base/files.h"
#include "session/context_handle.h"

#include <clgraph/clgraph.h>

#include <string.h>

static inline bool api_variable_is(const char *name, const char *word)
{
    const char *value = env_get(name);
    return value && strcmp(value, word) == 0;
}

static inline clg_compilation api_compilation(clg_compilation given)
{
    if (given != CLG_COMPILATION_DEFAULT) return given;
    if (api_variable_is("CLG_COMPILATION", "optimized")) return CLG_COMPILATION_OPTIMIZED;
    if (api_variable_is("CLG_COMPILATION", "baseline")) return CLG_COMPILATION_BASELINE;
    return CLG_COMPILATION_TIERED;
}

static inline ocl_context_options api_ocl_options(const clg_context_options *o)
{
    return (ocl_context_options){.cache_dir = o->cache_dir,
                                 .cpu_threads = o->cpu_threads,
                                 .profiling = o->profiling,
                                 .compile_helper = o->compile_helper,
                                 .compile_limit_s = o->compile_limit_s,
                                 .compile_limit_mib = o->compile_limit_mib,
                                 .compilation = api_compilation(o->compilation)};
}

static inline context_settings api_context_settings(const clg_context_options *o)
{
    const bool trusting = o->selftest == CLG_SELFTEST_DEFAULT
                              ? api_variable_is("CLG_SELFTEST", "off")
                              : o->selftest == CLG_SELFTEST_OFF;
    return (context_settings){
        .profiling = o->profiling, .trusting = trusting, .max_launch_ms = o->max_launch_ms};
}

/* Creates a context on an OpenCL context that these options opened. Takes ownership of the
 * reference to ocl, also on failure. */
clg_status api_context_open(ocl_context *ocl, const ocl_context_options *below,
                            const clg_context_options *o, bool is_callers,
                            clg_context **out_context);

#endif
