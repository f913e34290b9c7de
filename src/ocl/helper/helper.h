/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's side of the compile helper: a pool of helper processes for one context. They are started when first needed and
 * end when idle. Where the helper is missing, of another version, or may not be started, the pool is off, and one line of the
 * log says why.
 */
#ifndef CLG_OCL_HELPER_H
#define CLG_OCL_HELPER_H

#include "base/process.h"
#include "ocl/helper/helper_message.h"
#include "ocl/ocl_context.h"

/* Limits where the caller gives none. A compiler that needs more resident memory has lost its way. */
#define HELPER_LIMIT_S 60
#define HELPER_LIMIT_MIB 4096

/* The helper is options->compile_helper; NULL: $CLG_COMPILE_HELPER, else beside the library; "off": none. No process is started
 * yet. Fails for want of host memory alone. */
clg_status helper_pool_create(const ocl_context_options *options, helper_pool **out_pool);
void helper_pool_free(helper_pool *pool); /* accepts NULL; ends the helpers */
/* Whether requests may be made: false once it is known that there is no helper. */
bool helper_is_on(ocl_context *c);
/* How many requests can be served at the same time. */
size_t helper_n_parallel(void);
/* Has a helper execute the request; any thread, waits for a free one. HELPER_UNABLE also where there is none. keep_waiting (may
 * be NULL) returning false ends the helper at work: CANCELLED. */
clg_status helper_ask(ocl_context *c, const helper_request *request,
                      process_keep_waiting keep_waiting, void *user, helper_reply *out_reply);

#endif
