/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the device memory of a step from the plans of its sessions, before a step is made.
 */
#include "train/trainer.h"

#include "session/run/run_state.h"

/* Adds inputs in host memory that the device does not read in place, and outputs that are not bound
 * to a tensor of the trainer. */
static void add_io(const clg_session *s, const plan *p, clg_memory_estimate *m)
{
    for (size_t i = 0; i < p->n_inputs; i++) {
        size_t before;
        const clg_value *v = s->inputs[i].value;
        const value_fact *f = &p->inputs[i];
        const bool in_place =
            v && v->host &&
            run_reads_in_place(s->exec, f->dtype, v->host->data, v->host->size_bytes, &before);
        if (!(v && v->device_ops) && !in_place) estimate_add_buffer(m, &m->io_bytes, fact_bytes(f));
    }
    for (size_t i = 0; i < s->n_outputs; i++)
        if (p->root->output_bytes[i] != PLAN_NO_OUTPUT && !s->outputs[i].bound)
            estimate_add_buffer(m, &m->io_bytes, p->root->output_bytes[i]);
}

static clg_status add_plan(clg_session *s, const plan *p, clg_memory_estimate *m)
{
    m->weight_bytes += exec_weight_bytes(s->exec);
    CLG_TRY(exec_add_new_weights(s->exec, p->root, &m->weight_bytes));
    estimate_add_slabs(m, p->root);
    add_io(s, p, m);
    return CLG_OK;
}

static clg_status add_session(clg_session *s, clg_memory_estimate *m)
{
    plan *p = NULL;
    if (!s) return CLG_OK;
    CLG_TRY(session_enter(s));
    clg_status status = session_refresh(s);
    if (status == CLG_OK) status = session_plan(s, &p);
    if (status == CLG_OK) status = add_plan(s, p, m);
    plan_free(p);
    session_leave(s);
    return status;
}

clg_status trainer_memory(clg_trainer *t, clg_memory_estimate *out)
{
    for (size_t i = 0; i < TRAINER_N_TENSORS; i++)
        if (t->tensors[i]) estimate_add_buffer(out, &out->weight_bytes, t->tensors[i]->size_bytes);
    CLG_TRY(add_session(t->gradients, out));
    CLG_TRY(add_session(t->sums, out));
    return add_session(t->updates, out);
}
