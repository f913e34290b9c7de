/* SPDX-License-Identifier: Apache-2.0
 *
 * One trial, whatever is tried: a request to the helper, what is known of it already, and where its
 * result is kept. Private to trial.c and trial_gemm.c.
 */
#ifndef CLG_OCL_ATTEMPT_H
#define CLG_OCL_ATTEMPT_H

#include "ocl/helper/helper.h"

#define ATTEMPT_WHAT_BYTES 256

typedef struct attempt {
    ocl_context *ocl;
    const helper_request *request;
    const char *what;    /* is compiled: "kernel 'softmax' of 'softmax'" */
    hash128 key;         /* a pass is kept under it */
    hash128 refusal_key; /* so is a failure under this one, which other attempts may share */
    /* The result is final: a pass goes to the cache now (else trial_keep_passes may do it), and
     * where no trial is possible, that is logged once. */
    bool settles;
    process_keep_waiting keep_waiting; /* may be NULL */
    void *user;
} attempt;

/* Runs the trial unless its result is known: KERNEL_BUILD for a refusal. A pass of the very attempt
 * outweighs a refusal that others share: what runs already goes on. out_reply->outcome is DONE
 * when it ran now and passed, else UNABLE; release it with helper_reply_deinit. */
clg_status attempt_run(const attempt *a, helper_reply *out_reply);
/* Returns whether a failure is known under the key, here or from an earlier process; the thread's
 * error text then says how. */
bool attempt_has_failed(ocl_context *ocl, hash128 key);
/* Returns whether a pass is known under the key. */
bool attempt_has_passed(ocl_context *ocl, hash128 key);
/* Keeps a pass for this context. */
void attempt_note_pass(ocl_context *ocl, hash128 key);
/* Logs that something compiles in this process. words: why, may be NULL. */
void attempt_say_unable(const char *what, const char *words);

#endif
