/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one trial: a compilation or GEMM that the compile helper executes before this process does,
 * so that a crash of the driver's compiler does not end this process. Private to trial.c and
 * trial_gemm.c.
 */
#ifndef CLG_OCL_ATTEMPT_H
#define CLG_OCL_ATTEMPT_H

#include "ocl/helper/helper.h"

#define ATTEMPT_WHAT_BYTES 256

typedef struct attempt {
    ocl_context *ocl;
    const helper_request *request;
    const char *kernel;  /* name for clg_set_compile_callback: "softmax" */
    const char *what;    /* description for messages: "kernel 'softmax' of 'softmax'" */
    hash128 key;         /* key under which a pass is recorded, in memory and the cache */
    hash128 refusal_key; /* key of a failure, which other attempts may share */
    /* True: this attempt alone decides. A pass is cached immediately, an error that the driver
     * returns is recorded as a failure, and where no trial is possible that is logged once. False:
     * trial_keep_passes may cache a pass later, and an error of the driver is only returned. */
    bool settles;
    process_keep_waiting keep_waiting; /* may be NULL */
    void *user;
} attempt;

/* Runs the trial unless its result is known. Returns KERNEL_BUILD if it failed, now or earlier. A
 * pass under `key` takes precedence over a failure under a shared refusal_key, so that a kernel
 * that ran before is not refused later. With CLG_OK, out_reply->outcome is HELPER_DONE if the
 * trial ran now and HELPER_UNABLE if there was none; with an error it is unspecified. Release
 * *out_reply with helper_reply_deinit. */
clg_status attempt_run(const attempt *a, helper_reply *out_reply);
/* Returns whether a failure under the key is known, to this process or the cache; if so, sets the
 * thread's error text. */
bool attempt_has_failed(ocl_context *ocl, hash128 key);
/* Returns whether a pass under the key is known, to this process or the cache. */
bool attempt_has_passed(ocl_context *ocl, hash128 key);
/* Records a pass in the context's table, in memory only. */
void attempt_note_pass(ocl_context *ocl, hash128 key);
/* Logs that `what` is compiled in this process without a trial. words: the helper's reason, or
 * NULL. */
void attempt_say_unable(const char *what, const char *words);

#endif
