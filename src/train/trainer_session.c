/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that predict with what a trainer trains, without a copy.
 */
#include "train/trainer.h"

static clg_status cut(graph *g, const parameter_list *list)
{
    for (size_t i = 0; i < list->n; i++) CLG_TRY(graph_cut(g, graph_find_value(g, list->names[i])));
    return CLG_OK;
}

/* Makes the model, in the form of prediction, with parameters and statistics as inputs. */
static clg_status make_model(const clg_trainer *t, clg_model **out_model)
{
    graph *g;
    CLG_TRY(graph_clone(t->model->graph, &g));
    clg_status status = forms_predict(g);
    if (status == CLG_OK) status = cut(g, &t->parameters);
    if (status == CLG_OK) status = cut(g, &t->statistics);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    return model_create(g, false, out_model);
}

clg_status trainer_session(clg_trainer *t, clg_session **out_session)
{
    clg_model *m;
    clg_session *s = NULL;
    CLG_TRY(make_model(t, &m));
    session_exec *like = session_hold_exec(t->evaluation);
    clg_status status =
        session_create(t->evaluation->owner, t->device, m, &like->options, NULL, NULL, NULL, &s);
    exec_free(like);
    model_free(m);
    if (status == CLG_OK) status = trainer_give_all(t, s);
    if (status != CLG_OK) {
        session_free(s);
        return status;
    }
    t->is_shared = true;
    *out_session = s;
    return CLG_OK;
}
