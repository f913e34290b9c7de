/* SPDX-License-Identifier: Apache-2.0
 *
 * Proves that batches may be computed in parts. Not proved here: that parts have equally many rows.
 */
#include "ops/batch/batch_axes.h"
#include "train/trainer.h"

static clg_status check_loss(const clg_trainer *t)
{
    const char *why = NULL;
    if (t->loss.kind == CLG_LOSS_OUTPUT)
        why = "the model's own loss need not be a mean over rows";
    else if (t->loss.has_ignore_index)
        why = "the loss is a mean over targets that are not ignored";
    else if (t->loss.n_weights > 0)
        why = "the loss is a mean by the weights of classes";
    else if (t->statistics.n > 0)
        why = "BatchNormalization uses mean and variance of a part";
    return why ? error_set(CLG_ERROR_UNSUPPORTED_OPERATOR, "%s", why) : CLG_OK;
}

/* Makes the model, without its loss, in the form of training; it has no running statistics. */
static clg_status make_model(const clg_trainer *t, clg_model **out_model)
{
    graph *g;
    CLG_TRY(graph_clone(t->model->graph, &g));
    const clg_status status = forms_train(g, &t->forms, &t->statistics, NULL);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    return model_create(g, false, out_model);
}

clg_status trainer_check_parts(const clg_trainer *t)
{
    clg_model *m;
    CLG_TRY(check_loss(t));
    CLG_TRY(make_model(t, &m));
    const clg_status status = batch_find(m->graph, NULL, NULL, NULL);
    model_free(m);
    return status;
}
