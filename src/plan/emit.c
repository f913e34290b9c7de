/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a node into pending steps: describes its operands for lowering, chooses a candidate
 * implementation, adds weight packing and scratch memory, and appends the candidate's steps with
 * operands resolved to roots (blocks of memory, see state.h). See decision 5.
 */
#include "base/cancel.h"
#include "base/checked.h"
#include "plan/state.h"

#include <string.h>

static void set_operand(const plan_value *v, lower_operand *out)
{
    *out = (lower_operand){.dtype = v->fact.dtype,
                           .dims = v->fact.dims,
                           .dense = v->dense,
                           .constant = v->weight,
                           .known = v->fact.known};
    memcpy(out->strides, v->strides, sizeof out->strides);
}

clg_status emit_copy(plan_state *s, value_id v, uint32_t root, const node *n)
{
    const plan_context *context = s->context;
    lower_operand from, to;
    CLG_TRY(state_materialise(s, v));
    set_operand(&s->values[v], &from);
    to = from;
    to.dense = true;
    to.constant = false;
    to.known = NULL;
    shape_strides(&to.dims, to.strides);
    lower_context lc = {.inputs = &from,
                        .outputs = &to,
                        .n_inputs = 1,
                        .n_outputs = 1,
                        .caps = context->caps,
                        .kernel_class = context->kernel_class,
                        .memory = &s->lowering,
                        .texts = context->texts};
    step_builder_init(&lc.build, lc.memory, lc.texts);
    CLG_TRY(ops_lower_copy(&lc));
    CLG_TRY(lc.build.status);
    if (context->caps->quirks & QUIRK_COSTLY_ARGUMENTS) CLG_TRY(step_builder_pack_args(&lc.build));
    plan_choice choice;
    CLG_TRY(plan_choose(context, &lc, &choice));
    if (!choice.impl) return plan_no_choice(context, &lc);
    for (const step *what = choice.impl->steps; what; what = what->next) {
        root_ref refs[STEP_MAX_ARGS];
        uint32_t n_refs = 0;
        int64_t base = s->values[v].offset_elems;
        size_t elem = dtype_size(from.dtype);
        if (what->kind == STEP_COPY) {
            refs[n_refs++] =
                (root_ref){s->values[v].root, base * (int64_t)elem + what->from.offset_elems};
            refs[n_refs++] = (root_ref){root, what->to.offset_elems};
        } else {
            for (uint32_t i = 0; i < what->n_args; i++) {
                const step_arg *a = &what->args[i];
                if (a->kind != ARG_BUFFER) continue;
                bool input = a->buffer.space == OPERAND_INPUT;
                refs[n_refs++] =
                    (root_ref){input ? s->values[v].root : root,
                               (a->buffer.offset_elems + (input ? base : 0)) * (int64_t)elem};
            }
        }
        CLG_TRY(state_add_step(s, what, refs, n_refs, n, &choice, false));
    }
    return CLG_OK;
}

/* Replaces v, a strided view, by a dense copy, which all later consumers use too. */
static clg_status make_dense(plan_state *s, value_id v, const node *n)
{
    plan_value *value = &s->values[v];
    size_t size_bytes;
    uint32_t root;
    CLG_TRY(state_value_bytes(value, &size_bytes));
    CLG_TRY(state_add_root(s, PLACE_SLAB, 0, size_bytes, &root));
    CLG_TRY(emit_copy(s, v, root, n));
    value = &s->values[v];
    value->root = root;
    value->offset_elems = 0;
    value->dense = true;
    shape_strides(&value->fact.dims, value->strides);
    return CLG_OK;
}

clg_status emit_dense(plan_state *s, value_id v, const node *n)
{
    CLG_TRY(state_materialise(s, v));
    return s->values[v].dense ? CLG_OK : make_dense(s, v, n);
}

/* ---- operands to roots ----------------------------------------------------------------------- */

/* A node whose chosen candidate is being emitted, with the roots of its scratch and packed
 * operands. */
typedef struct emission {
    plan_state *state;
    const node *node;
    node_lowering *lowering;
    const plan_choice *choice; /* its choice */
    uint32_t scratch[CANDIDATE_MAX_SCRATCH];
    uint32_t packed[CANDIDATE_MAX_PACKINGS];
} emission;

/* Resolves operand o to a root and a byte offset. unit_bytes: size of an element of
 * o->offset_elems. */
static clg_status resolve(emission *e, const operand *o, size_t unit_bytes, root_ref *out)
{
    plan_state *s = e->state;
    value_id v = VALUE_NONE;
    *out = (root_ref){ROOT_NONE, o->offset_elems * (int64_t)unit_bytes};
    switch (o->space) {
    case OPERAND_SCRATCH: out->root = e->scratch[o->index]; return CLG_OK;
    case OPERAND_PACKED: out->root = e->packed[o->index]; return CLG_OK;
    case OPERAND_INPUT:
        if (o->index < e->node->n_inputs) v = e->node->inputs[o->index];
        if (v != VALUE_NONE) CLG_TRY(state_materialise(s, v));
        break;
    case OPERAND_OUTPUT:
        if (o->index < e->node->n_outputs) v = e->node->outputs[o->index];
        break;
    }
    if (v == VALUE_NONE || s->values[v].root == ROOT_NONE)
        return error_set(CLG_ERROR_INTERNAL,
                         "candidate '%s' of %s names an operand that is not there",
                         e->choice->impl->variant, e->node->op_type);
    out->root = s->values[v].root;
    out->offset_bytes += s->values[v].offset_elems * (int64_t)dtype_size(s->values[v].fact.dtype);
    return CLG_OK;
}

static clg_status emit_step(emission *e, const step *what)
{
    root_ref refs[STEP_MAX_ARGS];
    uint32_t n = 0;
    CLG_TRY(cancel_check("planning")); /* a sum of many inputs is many steps */
    if (what->kind == STEP_KERNEL) {
        for (uint32_t i = 0; i < what->n_dims; i++)
            if (what->global[i] == 0) return CLG_OK;
        for (uint32_t i = 0; i < what->n_args; i++)
            if (what->args[i].kind == ARG_BUFFER) {
                CLG_TRY(
                    resolve(e, &what->args[i].buffer, dtype_size(what->args[i].dtype), &refs[n]));
                n++;
            }
    } else if (what->kind == STEP_BLAS_GEMM) {
        CLG_TRY(resolve(e, &what->gemm.a, sizeof(float), &refs[n++]));
        CLG_TRY(resolve(e, &what->gemm.b, sizeof(float), &refs[n++]));
        CLG_TRY(resolve(e, &what->gemm.c, sizeof(float), &refs[n++]));
    } else {
        if (what->size_bytes == 0) return CLG_OK;
        if (what->kind == STEP_COPY) CLG_TRY(resolve(e, &what->from, 1, &refs[n++]));
        CLG_TRY(resolve(e, &what->to, 1, &refs[n++]));
    }
    return state_add_step(e->state, what, refs, n, e->node, e->choice, e->lowering->is_kept);
}

/* Returns whether the plan's owner packs v once for all plans. The init plan (constants) packs for
 * itself, since nothing else uses its packed weights. */
static bool is_packed_by_owner(const plan_state *s, const plan_value *v)
{
    return v->weight && v->offset_elems == 0 && v->dense && !s->context->is_init_plan;
}

/* Adds the packed copies of inputs that the candidate needs. The plan's owner (exec) packs weights
 * once for all runs; other values are packed in each run, before the candidate's steps. */
static clg_status emit_packings(emission *e)
{
    plan_state *s = e->state;
    for (uint32_t i = 0; i < e->choice->impl->n_packings; i++) {
        const packing *p = &e->choice->impl->packings[i];
        value_id v = p->input < e->node->n_inputs ? e->node->inputs[p->input] : VALUE_NONE;
        if (v == VALUE_NONE)
            return error_set(CLG_ERROR_INTERNAL, "packing of an absent input in '%s'",
                             e->choice->impl->variant);
        if (is_packed_by_owner(s, &s->values[v])) {
            uint32_t *index = &e->lowering->packed[i];
            if (*index == PLAN_APART)
                CLG_TRY(s->context->owner.pack(s->context->owner.self, v, &s->values[v].fact,
                                               e->choice->impl, p, index));
            CLG_TRY(state_add_root(s, PLACE_PACKED, *index, p->size_bytes, &e->packed[i]));
            continue;
        }
        CLG_TRY(state_add_root(s, PLACE_SLAB, 0, p->size_bytes, &e->packed[i]));
        for (const step *what = p->steps; what; what = what->next) CLG_TRY(emit_step(e, what));
    }
    return CLG_OK;
}

/* Places inputs inside output 0's memory where the candidate allows it (lower_context.joins), so
 * that, for example, a Concat need not copy them. */
static void join_inputs(plan_state *s, const node *n, const int64_t *joins, bool *joined)
{
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (joins[i] < 0 || n->inputs[i] == VALUE_NONE) continue;
        const int64_t size = (int64_t)dtype_size(s->values[n->inputs[i]].fact.dtype);
        joined[i] = state_join(s, n->inputs[i], s->values[n->outputs[0]].root, joins[i] * size);
    }
}

/* Returns whether a step only copies an input to memory that the input already occupies. */
static bool is_needless(const node *n, const step *what, const bool *joined)
{
    if (what->kind == STEP_COPY)
        return what->from.space == OPERAND_INPUT && joined[what->from.index];
    for (uint32_t i = 0; what->kind == STEP_KERNEL && i < what->n_args; i++) {
        const operand *o = &what->args[i].buffer;
        if (what->args[i].kind == ARG_BUFFER && o->space == OPERAND_INPUT &&
            o->index < n->n_inputs && joined[o->index])
            return true;
    }
    return false;
}

static clg_status emit_candidate(plan_state *s, const node *n, node_lowering *l)
{
    const candidate *impl = l->choice.impl;
    emission e = {.state = s, .node = n, .lowering = l, .choice = &l->choice};
    bool *joined = arena_alloc(&s->lowering, n->n_inputs + 1, sizeof *joined);
    if (!joined) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < impl->n_scratch; i++)
        CLG_TRY(state_add_root(s, PLACE_SLAB, 0, impl->scratch_bytes[i], &e.scratch[i]));
    CLG_TRY(emit_packings(&e));
    for (size_t i = 0; i < n->n_outputs; i++)
        if (i < 32 && l->in_place >> i & 1u)
            in_place_set(s, n, (uint32_t)i);
        else if (n->outputs[i] != VALUE_NONE && !s->values[n->outputs[i]].fact.known)
            CLG_TRY(state_place_value(s, n->outputs[i]));
    join_inputs(s, n, l->joins, joined);
    for (const step *what = impl->steps; what; what = what->next)
        if (!is_needless(n, what, joined)) CLG_TRY(emit_step(&e, what));
    return CLG_OK;
}

/* ---- views ----------------------------------------------------------------------------------- */

static bool strides_are_dense(const shape *dims, const int64_t *strides)
{
    int64_t expected = 1;
    for (int i = dims->rank - 1; i >= 0; i--) {
        if (dims->dims[i] == 0) return true;
        if (dims->dims[i] != 1 && strides[i] != expected) return false;
        expected *= dims->dims[i];
    }
    return true;
}

static clg_status emit_views(plan_state *s, const node *n, const lower_view *views)
{
    CLG_TRY(state_materialise(s, n->inputs[0]));
    const plan_value from = s->values[n->inputs[0]];
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == VALUE_NONE) continue;
        plan_value *to = &s->values[n->outputs[i]];
        to->root = from.root;
        to->offset_elems = from.offset_elems + views[i].offset_elems;
        memcpy(to->strides, views[i].strides, sizeof to->strides);
        to->dense = strides_are_dense(&to->fact.dims, to->strides);
        to->weight = false;
        state_share_root(s, n->outputs[i]);
    }
    return CLG_OK;
}

/* ---- a node ---------------------------------------------------------------------------------- */

/* Makes the inputs dense that lowering does not take with their strides. */
static clg_status make_inputs_dense(plan_state *s, const node *n)
{
    const shape none = shape_unknown();
    const shape *first = n->outputs[0] == VALUE_NONE ? &none : &s->values[n->outputs[0]].fact.dims;
    for (size_t i = 0; i < n->n_inputs; i++) {
        lower_operand input;
        CLG_TRY(cancel_check_step(i, "planning"));
        if (n->inputs[i] == VALUE_NONE || s->values[n->inputs[i]].dense) continue;
        set_operand(&s->values[n->inputs[i]], &input);
        if (!lower_takes(n->op, i, &input, first)) CLG_TRY(make_dense(s, n->inputs[i], n));
    }
    return CLG_OK;
}

static void set_operands(plan_state *s, const node *n, lower_operand *inputs,
                         lower_operand *outputs)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == VALUE_NONE) continue;
        plan_value *v = &s->values[n->outputs[i]];
        v->dense = true;
        shape_strides(&v->fact.dims, v->strides);
        set_operand(v, &outputs[i]);
    }
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE) set_operand(&s->values[n->inputs[i]], &inputs[i]);
}

static bool all_outputs_empty(const plan_state *s, const node *n)
{
    for (size_t i = 0; i < n->n_outputs; i++) {
        int64_t count;
        if (n->outputs[i] == VALUE_NONE) continue;
        if (shape_n_elements(&s->values[n->outputs[i]].fact.dims, &count) != CLG_OK || count != 0)
            return false;
    }
    return true;
}

/* Lowers a node and chooses a candidate. If the driver's compiler crashes on all candidates, or
 * they fail their self-tests, lowers again with ever simpler kernels (lc->caution). A view needs no
 * candidate. */
static clg_status lower_and_choose(const plan_context *context, lower_context *lc, plan_choice *out)
{
    error_record first;
    *out = (plan_choice){0};
    CLG_TRY(ops_lower_node(lc));
    if (lc->is_view) return CLG_OK;
    CLG_TRY(plan_choose(context, lc, out));
    if (out->impl) return CLG_OK;
    error_save(plan_no_choice(context, lc), &first);
    const clg_kernel_class usual = lc->kernel_class;
    const bool rejected = plan_was_rejected(lc);
    while (rejected && ++lc->caution < LOWER_N_CAUTIONS) {
        if (lc->caution == LOWER_OTHER_CLASS)
            lc->kernel_class = usual == CLG_KERNELS_SIMD ? CLG_KERNELS_SIMT : CLG_KERNELS_SIMD;
        clg_status status = ops_lower_node(lc);
        if (status != CLG_OK) break; /* the operator has no such kernels */
        status = plan_choose(context, lc, out);
        if (status != CLG_OK || out->impl) {
            lc->kernel_class = usual;
            return status;
        }
    }
    lc->kernel_class = usual;
    return error_restore(&first);
}

static clg_status emit_lowered(plan_state *s, const node *n, node_lowering *l, uint8_t *out_place)
{
    if (!l->views) return emit_candidate(s, n, l);
    *out_place = CLG_PLACE_VIEW;
    return emit_views(s, n, l->views);
}

/* Lowers node n, and emits the result or what the memo keeps of it. */
static clg_status lower_and_emit(plan_state *s, const node *n, uint32_t in_place,
                                 uint8_t *out_place)
{
    arena *memory = &s->lowering;
    node_lowering fresh = {.in_place = in_place}, *kept = NULL;
    lower_operand *inputs = arena_alloc(memory, n->n_inputs + 1, sizeof *inputs);
    lower_operand *outputs = arena_alloc(memory, n->n_outputs + 1, sizeof *outputs);
    lower_context lc = {.node = n,
                        .row = n->op,
                        .inputs = inputs,
                        .outputs = outputs,
                        .n_inputs = n->n_inputs,
                        .n_outputs = n->n_outputs,
                        .caps = s->context->caps,
                        .kernel_class = s->context->kernel_class,
                        .memory = memory,
                        .texts = s->context->texts,
                        .in_place = in_place,
                        .trial = s->context->trial,
                        .budget = s->context->budget};
    if (!inputs || !outputs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    set_operands(s, n, inputs, outputs);
    CLG_TRY(lower_and_choose(s->context, &lc, &fresh.choice));
    CLG_TRY(memo_keep(s, &lc, &fresh.choice, &kept));
    if (kept) return emit_lowered(s, n, kept, out_place);
    if (lc.is_view) fresh.views = lc.views;
    fresh.joins = lc.joins;
    for (size_t i = 0; i < CANDIDATE_MAX_PACKINGS; i++) fresh.packed[i] = PLAN_APART;
    return emit_lowered(s, n, &fresh, out_place);
}

static clg_status plan_steps(plan_state *s, const node *n, uint8_t *out_place)
{
    CLG_TRY(make_inputs_dense(s, n));
    const uint32_t in_place = in_place_find(s, n);
    node_lowering *known;
    CLG_TRY(memo_find(s, n, in_place, &known));
    return known ? emit_lowered(s, n, known, out_place) : lower_and_emit(s, n, in_place, out_place);
}

clg_status emit_node(plan_state *s, const node *n, uint8_t *out_place)
{
    *out_place = CLG_PLACE_DEVICE;
    if (all_outputs_empty(s, n)) {
        for (size_t i = 0; i < n->n_outputs; i++)
            if (n->outputs[i] != VALUE_NONE) CLG_TRY(state_place_value(s, n->outputs[i]));
        return CLG_OK;
    }
    clg_status status = plan_steps(s, n, out_place);
    arena_clear(&s->lowering);
    return status;
}
