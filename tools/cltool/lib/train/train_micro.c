/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether and how batches may be divided. See train_micro.h.
 */
#include "train_micro.h"

#include "output.h"

#include <stdlib.h>

int train_micro_check(const options *o, clg_trainer *trainer, uint64_t n_rows, size_t batch,
                      bool *out_is_exact)
{
    char *why = NULL;
    clg_status status = CLG_OK;
    if (n_rows % batch != 0)
        why = must_printf("the last batch of an epoch has %llu of %zu rows",
                          (unsigned long long)(n_rows % batch), batch);
    else
        status = clg_trainer_check_parts(trainer);
    if (status == CLG_ERROR_UNSUPPORTED_OPERATOR || status == CLG_ERROR_INVALID_ARGUMENT)
        why = must_printf("%s", clg_last_error());
    else if (status != CLG_OK)
        return fail_status(status, STAGE_WORK, NULL);
    *out_is_exact = !why;
    if (!why || o->inexact) {
        free(why);
        return CODE_DONE;
    }
    (void)fail_usage("--memory: smaller batches would change the result: %s", why);
    fail_hint("--inexact divides batches all the same");
    free(why);
    return CODE_USAGE;
}

size_t train_micro_next(size_t batch, size_t n_parts)
{
    for (size_t n = n_parts + 1; n <= batch; n++)
        if (batch % n == 0) return n;
    return 0;
}
