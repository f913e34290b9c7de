/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the device memory of a step from the plans of its sessions, before a step is made.
 */
#include "ocl/ocl.h"
#include "train/trainer.h"

/* Inputs from this size on are read in place by devices that can: see run/bind_inputs.c. */
#define IN_PLACE_BYTES ((size_t)64 << 10)

static void add_buffer(clg_memory_estimate *m, uint64_t *sum, uint64_t bytes)
{
    *sum += bytes;
    if (bytes > m->largest_buffer_bytes) m->largest_buffer_bytes = bytes;
}

/* Adds inputs in host memory that the device does not read in place, and outputs that are not bound
 * to a tensor of the trainer. */
static void add_io(const clg_session *s, const plan *p, clg_memory_estimate *m)
{
    const device_caps *caps = ocl_context_caps(s->exec->context->ocl);
    for (size_t i = 0; i < p->n_inputs; i++) {
        const clg_value *v = s->inputs[i].value;
        const uint64_t bytes = fact_bytes(&p->inputs[i]);
        const bool in_place = caps->zero_copy_align_bytes > 0 && bytes >= IN_PLACE_BYTES;
        if (!(v && v->device_ops) && !in_place) add_buffer(m, &m->io_bytes, bytes);
    }
    for (size_t i = 0; i < s->n_outputs; i++)
        if (p->root->output_bytes[i] != PLAN_NO_OUTPUT && !s->outputs[i].bound)
            add_buffer(m, &m->io_bytes, p->root->output_bytes[i]);
}

static clg_status add_plan(clg_session *s, const plan *p, clg_memory_estimate *m)
{
    m->weight_bytes += exec_weight_bytes(s->exec);
    CLG_TRY(exec_add_new_weights(s->exec, p->root, &m->weight_bytes));
    m->live_bytes += p->root->live_bytes;
    for (size_t i = 0; i < p->root->n_slabs; i++)
        add_buffer(m, &m->slab_bytes, p->root->slab_bytes[i]);
    for (size_t i = 0; i < p->root->n_states; i++)
        add_buffer(m, &m->slab_bytes, p->root->states[i].size_bytes);
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
        if (t->tensors[i]) add_buffer(out, &out->weight_bytes, t->tensors[i]->size_bytes);
    CLG_TRY(add_session(t->gradients, out));
    CLG_TRY(add_session(t->sums, out));
    return add_session(t->updates, out);
}
