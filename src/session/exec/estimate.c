/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the memory that a plan needs with the session's max_memory_bytes, before any of it is
 * allocated, packed or computed. An estimate: inputs that are read in place, and outputs that are
 * written into values of the caller's, count although they are not allocated. What is allocated
 * nevertheless counts in the budget (base/memory.h), which refuses what exceeds it.
 */
#include "base/checked.h"
#include "session/exec/exec.h"

#include <inttypes.h>

/* Bytes that a plan needs, by what they hold. */
typedef struct memory_needs {
    uint64_t model, weights, inputs, outputs, slabs;
} memory_needs;

/* Adds bytes; the sum saturates. */
static void add(uint64_t *sum, uint64_t bytes)
{
    if (!checked_add_u64(*sum, bytes, sum)) *sum = UINT64_MAX;
}

static clg_status check(const session_exec *e, const memory_needs *n, const char *what)
{
    uint64_t sum = 0;
    const uint64_t parts[] = {n->model, n->weights, n->inputs, n->outputs, n->slabs},
                   max = memory_budget_max(e->budget);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) add(&sum, parts[i]);
    if (sum <= max) return CLG_OK;
    clg_status status =
        error_set(CLG_ERROR_LIMIT,
                  "%s needs %" PRIu64 " bytes, more than the %" PRIu64
                  " of max_memory_bytes: model %" PRIu64 ", weights %" PRIu64 ", inputs %" PRIu64
                  ", outputs %" PRIu64 ", intermediate values %" PRIu64,
                  what, sum, max, n->model, n->weights, n->inputs, n->outputs, n->slabs);
    error_hint("use a smaller batch or input; clg_limits.max_memory_bytes sets another limit");
    return status;
}

/* Returns the bytes of the constants that the steps of a segment read and that are not on the
 * device. counted: by value; marks them. */
static uint64_t new_weight_bytes(session_exec *e, const plan_segment *s, bool *counted)
{
    uint64_t sum = 0;
    mutex_lock(&e->weights_lock);
    for (size_t i = 0; i < s->n_steps; i++)
        for (uint32_t b = 0; b < s->steps[i].n_buffers; b++) {
            const plan_placement *p = &s->steps[i].buffers[b];
            if (p->kind != PLACE_WEIGHT || e->weight_buffers[p->index] || counted[p->index])
                continue;
            counted[p->index] = true;
            add(&sum, fact_bytes(&e->weights[p->index]));
        }
    mutex_unlock(&e->weights_lock);
    return sum;
}

clg_status exec_add_new_weights(session_exec *e, const plan_segment *s, uint64_t *bytes)
{
    bool *counted = memory_zalloc(e->graph->n_values + 1, sizeof *counted);
    if (!counted) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    add(bytes, new_weight_bytes(e, s, counted));
    add(bytes, s->literal_bytes);
    memory_free(counted);
    return CLG_OK;
}

void estimate_add_buffer(clg_memory_estimate *m, uint64_t *sum, uint64_t size_bytes)
{
    *sum += size_bytes;
    if (size_bytes > m->largest_buffer_bytes) m->largest_buffer_bytes = size_bytes;
}

void estimate_add_slabs(clg_memory_estimate *m, const plan_segment *s)
{
    m->live_bytes += s->live_bytes;
    for (size_t i = 0; i < s->n_slabs; i++)
        estimate_add_buffer(m, &m->slab_bytes, s->slab_bytes[i]);
    for (size_t i = 0; i < s->n_states; i++)
        estimate_add_buffer(m, &m->slab_bytes, s->states[i].size_bytes);
}

static void add_slabs(const plan_segment *s, memory_needs *needs)
{
    for (size_t i = 0; i < s->n_slabs; i++) add(&needs->slabs, s->slab_bytes[i]);
    for (size_t i = 0; i < s->n_states; i++) add(&needs->slabs, s->states[i].size_bytes);
}

static void add_outputs(const plan_segment *s, size_t n_outputs, memory_needs *needs)
{
    for (size_t i = 0; i < n_outputs; i++)
        if (s->output_bytes[i] != PLAN_NO_OUTPUT) add(&needs->outputs, s->output_bytes[i]);
}

clg_status exec_check_plan(session_exec *e, exec_request wanted)
{
    plan *p;
    uint64_t packed_bytes;
    memory_needs needs = {.model = memory_budget_used(e->model->budget)};
    if (!e->budget) return CLG_OK;
    CLG_TRY(exec_make_dry_plan(e, &e->planning, wanted, &packed_bytes, &p));
    if (!p) return CLG_OK; /* contents of inputs are needed first */
    needs.weights = exec_weight_bytes(e);
    add(&needs.weights, packed_bytes);
    for (size_t i = 0; i < p->n_inputs; i++) add(&needs.inputs, fact_bytes(&p->inputs[i]));
    add_slabs(p->root, &needs);
    add_outputs(p->root, e->graph->n_outputs, &needs);
    clg_status status = exec_add_new_weights(e, p->root, &needs.weights);
    if (status == CLG_OK) status = check(e, &needs, "the plan");
    plan_free(p);
    return status;
}

clg_status exec_check_segment(session_exec *e, const plan_segment *segment)
{
    memory_needs needs = {.model = memory_budget_used(e->model->budget)};
    if (!e->budget) return CLG_OK;
    needs.weights = exec_weight_bytes(e);
    add_slabs(segment, &needs);
    add_outputs(segment, e->graph->n_outputs, &needs);
    CLG_TRY(exec_add_new_weights(e, segment, &needs.weights));
    return check(e, &needs, "the plan");
}

clg_status exec_check_init(session_exec *e, const plan_context *context, uint64_t *kept_bytes)
{
    plan *p;
    uint64_t packed_bytes;
    memory_needs needs = {.model = memory_budget_used(e->model->budget)};
    CLG_TRY(exec_make_dry_plan(e, context, (exec_request){0}, &packed_bytes, &p));
    if (!p) return CLG_OK;
    add_outputs(p->root, context->n_outputs, &needs);
    add(kept_bytes, needs.outputs);
    needs.outputs = *kept_bytes;
    needs.weights = packed_bytes;
    add_slabs(p->root, &needs);
    clg_status status = exec_add_new_weights(e, p->root, &needs.weights);
    if (status == CLG_OK) status = check(e, &needs, "computing the model's constants");
    plan_free(p);
    return status;
}
