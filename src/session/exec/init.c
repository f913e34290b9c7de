/* SPDX-License-Identifier: Apache-2.0
 *
 * The init plan: computes the nodes that depend on constants only, on the device, when a session is
 * created. Results that other nodes use are kept as weights; small ones are also read back, since
 * shapes may depend on them. To limit the constants that are on the device at once, the nodes are
 * divided into parts that share no large values, and run in batches of parts. A part runs again if
 * its result is needed after it was released (weights are released after packing). See decision 8.
 */
#include "base/cancel.h"
#include "base/work_count.h"
#include "session/exec/exec.h"
#include "session/run/frame.h"
#include "session/run/loop_counts.h"

#define MAX_READ_BACK_FLOATS 64 /* elements of a float result; enough for the scales of Resize */
#define SMALL_CONSTANT_BYTES ((size_t)64 << 10) /* smaller constants do not connect parts */
#define INIT_BYTES                                                                                 \
    ((uint64_t)32 << 20) /* limit of constants on the device at a time; one part may exceed it */
#define MANY_READERS 2   /* counting stops here; an output or capture counts as this */

/* Returns whether v is absent, a constant, or depends on constants only. */
static bool is_weight(const session_exec *e, const bool *from_init, value_id v)
{
    return v == VALUE_NONE || e->graph->values[v].constant || from_init[v];
}

/* Adds n consumers of v; the count saturates. */
static void count_reader(uint8_t *n_readers, value_id v, uint8_t n)
{
    if (v != VALUE_NONE && n_readers[v] < MANY_READERS) n_readers[v] += n;
}

/* Counts node n as a consumer of its inputs. Values that its subgraphs capture count as consumed by
 * several nodes. */
static void count_inputs(const node *n, uint8_t *n_readers)
{
    for (size_t i = 0; i < n->n_inputs; i++) count_reader(n_readers, n->inputs[i], 1);
    for (size_t a = 0; a < n->n_attributes; a++) {
        const graph *inner =
            n->attributes[a].type == ATTRIBUTE_GRAPH ? n->attributes[a].as.graph : NULL;
        for (size_t v = 0; inner && v < inner->n_values; v++)
            if (inner->values[v].is_outer)
                count_reader(n_readers, inner->values[v].outer, MANY_READERS);
    }
}

/* ---- parts: nodes of the init plan that share values ----------------------------------------- */

/* Returns the first node of n's part, which represents it (union-find with path halving). */
static node_id find_part(node_id *parts, node_id n)
{
    for (; parts[n] != n; n = parts[n]) {
        parts[n] = parts[parts[n]];
        work_count_add(1);
    }
    return n;
}

/* Unites the parts of node n and of the last node before it that has v as an input or output. */
static void meet(session_exec *e, node_id *met, value_id v, node_id n)
{
    const node_id other = met[v];
    met[v] = n;
    if (other == NODE_NONE) return;
    const node_id a = find_part(e->init_parts, other), b = find_part(e->init_parts, n);
    e->init_parts[a > b ? a : b] = a > b ? b : a;
}

/* Returns whether all nodes that have v as an input or output must be in one part. Not for a small
 * constant: it is uploaded for each part. */
static bool binds(const session_exec *e, value_id v)
{
    const tensor *t = v == VALUE_NONE ? NULL : e->graph->values[v].constant;
    return v != VALUE_NONE && (!t || t->size_bytes > SMALL_CONSTANT_BYTES);
}

/* Sets e->init_parts to the connected components of the init nodes, by values that bind them. */
static void find_parts(session_exec *e, node_id *met)
{
    const graph *g = e->graph;
    for (value_id v = 0; v < g->n_values; v++) met[v] = NODE_NONE;
    for (node_id i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        e->init_parts[i] = i;
        for (size_t k = 0; e->node_is_init[i] && k < n->n_inputs + n->n_outputs; k++) {
            const value_id v = k < n->n_inputs ? n->inputs[k] : n->outputs[k - n->n_inputs];
            if (binds(e, v)) meet(e, met, v, i);
        }
    }
    for (node_id i = 0; i < g->n_nodes; i++) e->init_parts[i] = e->init_parts[e->init_parts[i]];
}

clg_status exec_find_init(session_exec *e)
{
    const graph *g = e->graph;
    bool *from_init = memory_zalloc(g->n_values + 1, sizeof *from_init);
    uint8_t *wanted =
        memory_zalloc(g->n_values + 1, sizeof *wanted); /* uses outside of the init plan */
    node_id *met = memory_zalloc(g->n_values + 1, sizeof *met);
    e->init_outputs = arena_alloc(&e->memory, g->n_values + 1, sizeof *e->init_outputs);
    e->init_parts = arena_alloc(&e->memory, g->n_nodes + 1, sizeof *e->init_parts);
    clg_status status = from_init && wanted && met && e->init_outputs && e->init_parts
                            ? CLG_OK
                            : CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (node_id n = 0; status == CLG_OK && n < g->n_nodes; n++) {
        const node *d = &g->nodes[n];
        bool init = op_folds(d);
        status = cancel_check("computing constants");
        for (size_t i = 0; i < d->n_inputs && init; i++)
            init = is_weight(e, from_init, d->inputs[i]);
        e->node_is_init[n] = init;
        for (size_t i = 0; i < d->n_outputs; i++)
            if (d->outputs[i] != VALUE_NONE) from_init[d->outputs[i]] = init;
    }
    for (node_id n = 0; status == CLG_OK && n < g->n_nodes; n++) {
        count_inputs(&g->nodes[n], e->n_readers);
        if (!e->node_is_init[n]) count_inputs(&g->nodes[n], wanted);
    }
    for (size_t i = 0; status == CLG_OK && i < g->n_outputs; i++) {
        count_reader(e->n_readers, g->outputs[i], MANY_READERS);
        count_reader(wanted, g->outputs[i], 1);
    }
    for (value_id v = 0; status == CLG_OK && v < g->n_values; v++)
        if (wanted[v] && from_init[v]) e->init_outputs[e->n_init_outputs++] = v;
    if (status == CLG_OK) find_parts(e, met);
    memory_free(from_init);
    memory_free(wanted);
    memory_free(met);
    return status;
}

/* ---- running it ------------------------------------------------------------------------------ */

/* Adds t to e->held, taking ownership of the reference, also on failure. */
static clg_status hold(session_exec *e, tensor *t)
{
    clg_status status = MEMORY_RESERVE(e->held, e->held_capacity, e->n_held + 1);
    if (status != CLG_OK) {
        tensor_free(t);
        return status;
    }
    e->held[e->n_held++] = t;
    return CLG_OK;
}

/* Reads a value from the device into a new tensor. */
static clg_status read_port(frame *f, const plan_segment *segment, const plan_port *port,
                            tensor **out_tensor)
{
    tensor *t;
    bound_buffer where;
    CLG_TRY(tensor_create(port->dtype, &port->dims, &t));
    clg_status status = CLG_OK;
    if (t->size_bytes) status = frame_resolve(f, segment, &port->place, &where);
    if (t->size_bytes && status == CLG_OK)
        status = ocl_queue_read(f->queue, where.buffer, (size_t)where.offset_bytes, t->data,
                                t->size_bytes, true);
    if (status != CLG_OK) {
        tensor_free(t);
        return status;
    }
    *out_tensor = t;
    return CLG_OK;
}

/* Sets contents[i] to the tensor of each of the segment's reads. The caller frees the tensors, also
 * on failure. */
static clg_status read_contents(frame *f, const plan_segment *segment, tensor **contents)
{
    for (size_t i = 0; i < segment->n_reads; i++) {
        if (segment->reads[i].known)
            contents[i] = tensor_retain((tensor *)segment->reads[i].known);
        else
            CLG_TRY(read_port(f, segment, &segment->reads[i], &contents[i]));
    }
    return CLG_OK;
}

static clg_status reserve_outputs(frame *f, const plan_segment *segment)
{
    for (size_t i = 0; i < f->n_outputs; i++)
        if (segment->output_bytes[i] != PLAN_NO_OUTPUT)
            CLG_TRY(frame_reserve(f, &f->outputs[i], segment->output_bytes[i], OCL_BUFFER_DEVICE));
    return CLG_OK;
}

/* Runs one segment, waits for it and checks for faults. */
static clg_status run_segment(frame *f, plan *p, plan_segment *segment)
{
    frame_segment *prepared;
    int32_t fault[FAULT_WORDS] = {0};
    CLG_TRY(reserve_outputs(f, segment));
    CLG_TRY(frame_prepare(f, p, segment, &prepared));
    CLG_TRY(frame_enqueue(f, prepared));
    if (segment->has_fault_args)
        CLG_TRY(ocl_queue_read(f->queue, f->fault, 0, fault, sizeof fault, true));
    CLG_TRY(ocl_queue_finish(f->queue));
    return frame_check_fault(f, fault);
}

static clg_status next_iteration(const plan_context *context, frame *f, plan_segment *segment,
                                 const tensor *condition, loop_counts *counts,
                                 plan_segment **out_next)
{
    bool again;
    int64_t count;
    CLG_TRY(loop_counts_next(counts, f->exec, segment, condition, false, &again, &count));
    return plan_next_iteration(context, segment, again, count, out_next);
}

/* Reads what planning needs after a segment, and plans the next one. */
static clg_status next_segment(const plan_context *context, frame *f, plan_segment *segment,
                               loop_counts *counts, plan_segment **out_next)
{
    tensor *contents[OP_MAX_INTS] = {NULL};
    clg_status status = read_contents(f, segment, contents);
    if (status == CLG_OK)
        status = segment->next.base
                     ? next_iteration(context, f, segment, contents[0], counts, out_next)
                     : plan_continue(context, segment, contents, out_next);
    for (size_t i = 0; i < OP_MAX_INTS; i++) tensor_free(contents[i]);
    return status;
}

/* Runs all segments of a plan. *out_last is a reference to the last one run, also on failure. */
static clg_status run_segments(const plan_context *context, frame *f, plan *p,
                               plan_segment **out_last)
{
    loop_counts counts = {0};
    clg_status status = CLG_OK;
    *out_last = plan_segment_retain(p->root);
    while (status == CLG_OK) {
        plan_segment *next = NULL;
        status = run_segment(f, p, *out_last);
        if (status != CLG_OK || (*out_last)->last) break;
        status = next_segment(context, f, *out_last, &counts, &next);
        if (status != CLG_OK) break;
        plan_segment_free(*out_last);
        *out_last = next;
    }
    loop_counts_deinit(&counts);
    return status;
}

/* Returns whether a result is small enough to be read back for shape inference. */
static bool worth_reading(const plan_port *port)
{
    int64_t n;
    if (shape_n_elements(&port->dims, &n) != CLG_OK) return false;
    return n <= (dtype_is_float(port->dtype) ? MAX_READ_BACK_FLOATS : OP_MAX_KNOWN_ELEMENTS);
}

/* Keeps result `index` of the init plan as a weight: its fact, its buffer, and its elements if
 * small. */
static clg_status keep_result(session_exec *e, frame *f, const plan_segment *last, size_t index)
{
    const plan_port *port = &last->outputs[index];
    value_fact *fact = &e->weights[port->value];
    if (fact->dtype != CLG_DTYPE_NONE) { /* recomputed: other threads may be reading the fact */
        exec_keep_weight(e, port->value, f->outputs[index].buffer);
        return CLG_OK;
    }
    *fact = (value_fact){.dtype = port->dtype, .dims = port->dims};
    if (port->known) {
        fact->known = port->known;
        return hold(e, tensor_retain((tensor *)port->known));
    }
    exec_keep_weight(e, port->value, f->outputs[index].buffer);
    if (!worth_reading(port)) return CLG_OK;
    tensor *t;
    CLG_TRY(read_port(f, last, port, &t));
    fact->known = t;
    return hold(e, t);
}

static const frame_owner of_init_plan = {false, exec_init_buffer};

/* Returns what the nodes of a mask are planned with. */
static plan_context part_context(const session_exec *e, const bool *mask, const value_fact *weights,
                                 const value_id *outputs, size_t n_outputs)
{
    plan_context c = e->planning;
    c.is_init_plan = true;
    c.memo = NULL; /* planned once, or again while a plan that uses the memo is made */
    c.node_is_init = mask;
    c.weights = weights;
    c.outputs = outputs;
    c.n_outputs = c.n_required = n_outputs;
    return c;
}

/* Plans and runs the nodes of a mask, and keeps the outputs as weights. */
static clg_status run_part(session_exec *e, const bool *mask, const value_fact *weights,
                           const value_id *outputs, size_t n_outputs)
{
    const plan_context c = part_context(e, mask, weights, outputs, n_outputs);
    plan *p = NULL;
    plan_segment *last = NULL;
    frame *f = NULL;
    clg_status status = plan_create(&c, NULL, NULL, NULL, &p);
    if (status == CLG_OK) status = frame_create(e, 0, n_outputs, &of_init_plan, &f);
    if (status == CLG_OK) f->is_cancellable = true;
    if (status == CLG_OK) status = run_segments(&c, f, p, &last);
    for (size_t i = 0; status == CLG_OK && i < n_outputs; i++) {
        status = cancel_check("computing constants");
        if (status == CLG_OK) status = keep_result(e, f, last, i);
    }
    plan_segment_free(last);
    frame_free(f);
    plan_free(p);
    exec_drop_constants(e);
    return status;
}

/* ---- part by part ---------------------------------------------------------------------------- */

/* Parts that are run together. */
typedef struct batch {
    bool *in_mask, *done; /* by node; by index of init_outputs */
    uint64_t *part_bytes; /* by first node of a part: bytes of its constant inputs */
    uint64_t kept_bytes;  /* of the results of batches before, as estimated */
    value_id *outputs;
    size_t n_outputs;
} batch;

static void sum_bytes(const session_exec *e, batch *b)
{
    for (node_id i = 0; i < e->graph->n_nodes; i++) {
        const node *n = &e->graph->nodes[i];
        for (size_t k = 0; e->node_is_init[i] && k < n->n_inputs; k++) {
            const tensor *t =
                n->inputs[k] == VALUE_NONE ? NULL : e->graph->values[n->inputs[k]].constant;
            if (t) b->part_bytes[e->init_parts[i]] += t->size_bytes;
        }
    }
}

/* Selects the next parts to run together: at least one, and more as long as their constants have at
 * most INIT_BYTES together. */
static void next_batch(const session_exec *e, batch *b)
{
    const graph *g = e->graph;
    uint64_t bytes = 0;
    b->n_outputs = 0;
    for (node_id i = 0; i < g->n_nodes; i++) b->in_mask[i] = false;
    for (size_t i = 0; i < e->n_init_outputs; i++) {
        if (b->done[i]) continue;
        const value_id v = e->init_outputs[i];
        const node_id part = e->init_parts[g->values[v].producer];
        if (!b->in_mask[part]) {
            if (b->n_outputs > 0 && bytes + b->part_bytes[part] > INIT_BYTES) continue;
            bytes += b->part_bytes[part];
            b->in_mask[part] = true;
        }
        b->done[i] = true;
        b->outputs[b->n_outputs++] = v;
    }
    for (node_id i = 0; i < g->n_nodes; i++)
        if (e->node_is_init[i] && b->in_mask[e->init_parts[i]]) b->in_mask[i] = true;
}

/* Runs a batch, and again after the driver's compiler crashed on a kernel, which is then excluded.
 * The loop terminates because each retry excludes at least one more kernel. */
static clg_status rerun_part(session_exec *e, batch *b)
{
    ocl_context *ocl = e->context->ocl;
    size_t n_refusals;
    clg_status status;
    do {
        n_refusals = ocl_n_refusals(ocl);
        status = run_part(e, b->in_mask, e->weights, b->outputs, b->n_outputs);
    } while (status == CLG_ERROR_KERNEL_BUILD && ocl_n_refusals(ocl) > n_refusals);
    return status;
}

/* Checks what a batch needs while the results of earlier ones are kept. */
static clg_status check_part(session_exec *e, batch *b)
{
    const plan_context c = part_context(e, b->in_mask, e->weights, b->outputs, b->n_outputs);
    return exec_check_init(e, &c, &b->kept_bytes);
}

/* Does something with each batch. */
static clg_status each_batch(session_exec *e, batch *b,
                             clg_status (*work)(session_exec *e, batch *b))
{
    for (;;) {
        CLG_TRY(cancel_check("computing constants"));
        next_batch(e, b);
        if (b->n_outputs == 0) return CLG_OK;
        CLG_TRY(work(e, b));
    }
}

clg_status exec_run_init(session_exec *e)
{
    const size_t n_nodes = e->graph->n_nodes, n = e->n_init_outputs;
    if (n == 0) return CLG_OK;
    batch b = {.in_mask = memory_zalloc(n_nodes + 1, sizeof *b.in_mask),
               .done = memory_zalloc(n, sizeof *b.done),
               .part_bytes = memory_zalloc(n_nodes + 1, sizeof *b.part_bytes),
               .outputs = memory_zalloc(n, sizeof *b.outputs)};
    clg_status status =
        b.in_mask && b.done && b.part_bytes && b.outputs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) sum_bytes(e, &b);
    if (status == CLG_OK && e->budget) {
        status = each_batch(e, &b, check_part);
        for (size_t i = 0; i < n; i++) b.done[i] = false;
    }
    if (status == CLG_OK) status = each_batch(e, &b, rerun_part);
    memory_free(b.in_mask);
    memory_free(b.done);
    memory_free(b.part_bytes);
    memory_free(b.outputs);
    return status;
}

/* ---- recomputing ----------------------------------------------------------------------------- */

/* Sets mask to the nodes of a part, and weights to the facts of all weights except the part's
 * results, which are to be computed again. */
static void mask_part(const session_exec *e, node_id part, bool *mask, value_fact *weights)
{
    const graph *g = e->graph;
    for (value_id v = 0; v < g->n_values; v++) weights[v] = e->weights[v];
    for (node_id i = 0; i < g->n_nodes; i++) {
        mask[i] = e->node_is_init[i] && e->init_parts[i] == part;
        for (size_t k = 0; mask[i] && k < g->nodes[i].n_outputs; k++)
            if (g->nodes[i].outputs[k] != VALUE_NONE)
                weights[g->nodes[i].outputs[k]] = (value_fact){0};
    }
}

/* Lists the results of a part that are not on the device; returns their number. */
static size_t find_gone(session_exec *e, node_id part, value_id *outputs)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n_init_outputs; i++) {
        const value_id v = e->init_outputs[i];
        if (e->init_parts[e->graph->values[v].producer] == part && exec_is_gone(e, v))
            outputs[n++] = v;
    }
    return n;
}

clg_status exec_restore(session_exec *e, value_id v)
{
    const node_id part = e->init_parts[e->graph->values[v].producer];
    bool *mask = memory_zalloc(e->graph->n_nodes + 1, sizeof *mask);
    value_fact *weights = memory_zalloc(e->graph->n_values + 1, sizeof *weights);
    value_id *outputs = memory_zalloc(e->n_init_outputs + 1, sizeof *outputs);
    clg_status status = mask && weights && outputs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) {
        mask_part(e, part, mask, weights);
        status = run_part(e, mask, weights, outputs, find_gone(e, part, outputs));
    }
    memory_free(mask);
    memory_free(weights);
    memory_free(outputs);
    return status;
}
