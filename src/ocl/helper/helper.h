/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's side of the compile helper: a context's pool of helper processes. They are started
 * on first use and end when idle. Where the helper is missing, of another version, or may not be
 * started, the pool is off, and one line of the log says why.
 */
#ifndef CLG_OCL_HELPER_H
#define CLG_OCL_HELPER_H

#include "base/process.h"
#include "ocl/helper/helper_message.h"
#include "ocl/ocl_context.h"

/* Default limits. A compiler that needs more resident memory than this is out of control. */
#define HELPER_LIMIT_S 60
#define HELPER_LIMIT_MIB 4096

/* Creates a pool. The helper is options->compile_helper; NULL: $CLG_COMPILE_HELPER, else next to
 * the library; "off": none. Starts no process yet. Fails only when host memory runs out. */
clg_status helper_pool_create(const ocl_context_options *options, helper_pool **out_pool);
void helper_pool_free(helper_pool *pool); /* accepts NULL; ends the helpers */
/* Returns whether requests may be made: false once it is known that there is no helper. */
bool helper_is_on(ocl_context *ocl);
/* Returns how many requests can be served concurrently. */
size_t helper_n_parallel(void);
/* Has a helper execute the request; any thread, waits for a free helper. HELPER_UNABLE also where
 * there is none. keep_waiting (may be NULL) returning false ends the helper at work: CANCELLED. */
clg_status helper_call(ocl_context *ocl, const helper_request *request,
                       process_keep_waiting keep_waiting, void *user, helper_reply *out_reply);

#endif
