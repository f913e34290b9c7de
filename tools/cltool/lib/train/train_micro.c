/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether and how batches may be divided. See train_micro.h.
 */
#include "train_micro.h"

#include "output.h"

#include <clgraph/inspect.h>

#include <stdlib.h>
#include <string.h>

static int refuse(const char *why)
{
    (void)fail_usage("--memory: smaller batches would change the result: %s", why);
    fail_hint("--inexact divides batches all the same");
    return CODE_USAGE;
}

int train_micro_check(const options *o, const clg_model *model, const clg_loss_options *loss,
                      uint64_t n_rows, size_t batch)
{
    if (o->inexact) return CODE_DONE;
    if (loss->kind == CLG_LOSS_OUTPUT)
        return refuse("the model's own loss need not be a mean over rows");
    if (loss->has_ignore_index)
        return refuse("the loss is a mean over targets that are not ignored");
    if (loss->n_weights > 0) return refuse("the loss is a mean by the weights of classes");
    if (o->batchnorm && strncmp(o->batchnorm, "training", strlen("training")) == 0)
        return refuse("BatchNormalization uses mean and variance of a part");
    if (n_rows % batch != 0) {
        char *why = must_printf("the last batch of an epoch has %llu of %zu rows",
                                (unsigned long long)(n_rows % batch), batch);
        const int code = refuse(why);
        free(why);
        return code;
    }
    const clg_status status = clg_model_batch(model, NULL, NULL, NULL);
    return status == CLG_OK ? CODE_DONE : refuse(clg_last_error());
}

size_t train_micro_next(size_t batch, size_t n_parts)
{
    for (size_t n = n_parts + 1; n <= batch; n++)
        if (batch % n == 0) return n;
    return 0;
}
