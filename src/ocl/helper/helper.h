/* SPDX-License-Identifier: Apache-2.0
 *
 * Manages a context's pool of compile helpers: processes that compile programs before this process
 * does, because drivers' compilers may crash. They are started on first use and end when idle. If
 * the helper is missing, has another version or cannot be started, the pool is switched off, and
 * one log line has the reason.
 */
#ifndef CLG_OCL_HELPER_H
#define CLG_OCL_HELPER_H

#include "base/process.h"
#include "ocl/helper/helper_message.h"
#include "ocl/ocl_context.h"

/* Default limits of one compilation: seconds, and MiB of resident memory. A compiler that needs
 * more is considered stuck. */
#define HELPER_LIMIT_S 60
#define HELPER_LIMIT_MIB 4096

/* Creates a pool without starting a process. The helper's path is options->compile_helper; NULL:
 * $CLG_COMPILE_HELPER, else next to the library; "off": no helper. Fails only when host memory runs
 * out. */
clg_status helper_pool_create(const ocl_context_options *options, helper_pool **out_pool);
void helper_pool_free(helper_pool *pool); /* accepts NULL; ends the helpers */
/* Returns whether requests can be served; false once the pool is switched off. */
bool helper_is_on(ocl_context *ocl);
/* Returns the seconds that the longest build may take, CLBlast's; also where no helper is used. */
uint64_t helper_max_build_s(const ocl_context *ocl);
/* Returns how many requests can be served concurrently. */
size_t helper_n_parallel(void);
/* Executes the request in a helper; callable from any thread, waits until a helper is free. The
 * outcome is HELPER_UNABLE also where there is no helper. keep_waiting (may be NULL) is polled;
 * when it returns false, the working helper is ended and CANCELLED is returned. */
clg_status helper_call(ocl_context *ocl, const helper_request *request,
                       process_keep_waiting keep_waiting, void *user, helper_reply *out_reply);

#endif
