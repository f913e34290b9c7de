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
    const char *what;    /* description for messages: "kernel 'softmax' of 'softmax'" */
    hash128 key;         /* key of a pass in the table and the cache */
    hash128 refusal_key; /* key of a failure; other attempts may share it */
    /* The result is final: a pass is cached now (otherwise trial_keep_passes may cache it later);
     * where no trial is possible, that is logged once. */
    bool settles;
    process_keep_waiting keep_waiting; /* may be NULL */
    void *user;
} attempt;

/* Runs the trial unless its result is known. Returns KERNEL_BUILD if it failed, now or earlier. A
 * pass under this attempt's own key takes precedence over a failure under a shared refusal_key, so
 * that what has run before continues to run. With CLG_OK, out_reply->outcome is HELPER_DONE if the
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
/* Logs that `what` is compiled in this process, without a trial. words: the reason; may be NULL. */
void attempt_say_unable(const char *what, const char *words);

#endif
