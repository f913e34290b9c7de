/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles the kernels of a plan ahead of use, several in parallel in compile helper processes.
 * Normal planning tests kernels and packs weights one after another, and each would wait for its
 * own compile. So when planning meets the first kernel whose self-test must run, the same plan is
 * first made dry (nothing is tested, packed or launched), and all its kernels are compiled.
 * Planning takes milliseconds, a compile 0.1 s. This is an optimisation only: if it fails, kernels
 * are compiled when they are needed.
 */
#include "base/cancel.h"
#include "session/exec/weights.h"
#include "session/run/kernel_key.h"
#include "session/run/launch.h"

#include <string.h>

/* A buffer that has a size but no memory, for arguments of launches that are not executed. */
typedef struct draft_buffer {
    place_kind kind;
    uint32_t index;
    ocl_buffer *buffer;
} draft_buffer;

/* A packing that the dry plan requested. */
typedef struct packed_draft {
    const step *steps;
    value_id weight;
    uint32_t input; /* index of the node's input that is the weight */
    size_t weight_bytes, packed_bytes;
} packed_draft;

/* The state of exec_compile_ahead. */
typedef struct ahead {
    session_exec *exec;
    arena memory; /* copies of packings' steps */
    packed_draft *packed;
    size_t n_packed, packed_capacity;
    hash_map packed_keys;  /* of the packings noted */
    uint64_t packed_bytes; /* of those that the exec does not have, each once */
    draft_buffer *buffers;
    size_t n_buffers, buffers_capacity;
    ocl_kernel **kernels;
    size_t n_kernels, kernels_capacity;
    ocl_launch *launches;
    size_t n_launches, launches_capacity;
    hash_map forms; /* launch_form_key of those with a kernel */
    const plan_segment *segment;
    exec_request wanted;
} ahead;

/* ---- the dry plan ---------------------------------------------------------------------------- */

/* Adds the size of a packing to a->packed_bytes, unless it is there already. */
static clg_status count_packing(ahead *a, value_id weight, const packing *p)
{
    char key[PACKING_KEY_BYTES];
    CLG_TRY(weights_packing_key(weight, p, key));
    mutex_lock(&a->exec->weights_lock);
    const bool is_packed = hash_map_get_string(&a->exec->packed_keys, key) != HASH_MAP_NONE;
    mutex_unlock(&a->exec->weights_lock);
    if (is_packed || hash_map_get_string(&a->packed_keys, key) != HASH_MAP_NONE) return CLG_OK;
    a->packed_bytes += p->size_bytes;
    return hash_map_set_string(&a->packed_keys, key, 0);
}

/* Implements plan_owner.pack: records the packing, with copies of its steps, since the candidate is
 * freed after planning its node. */
static clg_status note_packing(void *self, value_id weight, const value_fact *fact,
                               const candidate *c, const packing *p, uint32_t *out_index)
{
    ahead *a = self;
    step *first = NULL, **link = &first;
    (void)c;
    CLG_TRY(MEMORY_RESERVE(a->packed, a->packed_capacity, a->n_packed + 1));
    for (const step *s = p->steps; s; s = s->next) {
        *link = step_clone(s, &a->memory, &a->exec->texts);
        if (!*link) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        link = &(*link)->next;
    }
    CLG_TRY(count_packing(a, weight, p));
    a->packed[a->n_packed] = (packed_draft){.steps = first,
                                            .weight = weight,
                                            .input = p->input,
                                            .weight_bytes = fact_bytes(fact),
                                            .packed_bytes = p->size_bytes};
    *out_index = (uint32_t)a->n_packed++;
    return CLG_OK;
}

static clg_status plan_dry(ahead *a, const plan_context *context, plan **out_plan)
{
    plan_context c = *context;
    c.owner = (plan_owner){a, note_packing};
    c.validator.check = NULL;
    c.notes_choices = false;
    c.memo = NULL; /* its packings have other indices */
    bool *needed = memory_zalloc(c.graph->n_inputs + 1, sizeof *needed);
    if (!needed) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status =
        plan_create(&c, a->wanted.inputs, a->wanted.in_place, needed, out_plan);
    for (size_t i = 0; i < c.graph->n_inputs; i++) a->exec->host_inputs[i] |= needed[i];
    memory_free(needed);
    return status;
}

clg_status exec_make_dry_plan(session_exec *e, const plan_context *context, exec_request wanted,
                              uint64_t *out_packed_bytes, plan **out_plan)
{
    ahead a = {.exec = e, .wanted = wanted};
    plan_context c = *context;
    c.tiers.choose = NULL; /* it would load programs, which take memory */
    const clg_status status = plan_dry(&a, &c, out_plan);
    if (out_packed_bytes) *out_packed_bytes = a.packed_bytes;
    hash_map_deinit(&a.packed_keys);
    memory_free(a.packed);
    arena_deinit(&a.memory);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t place_bytes(const ahead *a, place_kind kind, uint32_t index)
{
    const plan_segment *s = a->segment;
    switch (kind) {
    case PLACE_SLAB: return s->slab_bytes[index];
    case PLACE_INPUT: return fact_bytes(&a->wanted.inputs[index]);
    case PLACE_OUTPUT: return s->output_bytes[index] == PLAN_NO_OUTPUT ? 0 : s->output_bytes[index];
    case PLACE_WEIGHT: return fact_bytes(&a->exec->weights[index]);
    case PLACE_PACKED: return a->packed[index].packed_bytes;
    case PLACE_LITERAL: return s->literal_bytes;
    case PLACE_STATE:
        for (size_t i = 0; i < s->n_states; i++)
            if (s->states[i].index == index) return s->states[i].size_bytes;
        return 0;
    case PLACE_NONE: break;
    }
    return 0;
}

/* Returns the draft buffer for this memory of the plan, created when first used. */
static clg_status find_buffer(ahead *a, place_kind kind, uint32_t index, ocl_buffer **out_buffer)
{
    for (size_t i = 0; i < a->n_buffers; i++)
        if (a->buffers[i].kind == kind && a->buffers[i].index == index) {
            *out_buffer = a->buffers[i].buffer;
            return CLG_OK;
        }
    CLG_TRY(MEMORY_RESERVE(a->buffers, a->buffers_capacity, a->n_buffers + 1));
    CLG_TRY(
        ocl_buffer_create_draft(a->exec->context->ocl, place_bytes(a, kind, index), out_buffer));
    a->buffers[a->n_buffers++] = (draft_buffer){kind, index, *out_buffer};
    return CLG_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* What a compiled launch depends on. */
typedef struct launch_form_key {
    kernel_key kernel;
    uint64_t n_dims, global[3], local[3];
} launch_form_key;

/* Sets *out_is_new: whether no launch of this kernel and size was added; adds it to a->forms. A
 * graph may have a million equal launches, and one is enough to compile. */
static clg_status note_form(ahead *a, const step *s, bool *out_is_new)
{
    launch_form_key key = {.kernel = kernel_key_of(&s->kernel), .n_dims = s->n_dims};
    for (uint32_t i = 0; i < s->n_dims; i++) {
        key.global[i] = s->global[i];
        key.local[i] = s->local[i];
    }
    *out_is_new = hash_map_get(&a->forms, &key, sizeof key) == HASH_MAP_NONE;
    return *out_is_new ? hash_map_set(&a->forms, &key, sizeof key, 0) : CLG_OK;
}

static clg_status reserve_launch(ahead *a)
{
    return MEMORY_RESERVE(a->launches, a->launches_capacity, a->n_launches + 1);
}

static clg_status add_launch(ahead *a, ocl_kernel *k, const step *s)
{
    clg_status status = MEMORY_RESERVE(a->kernels, a->kernels_capacity, a->n_kernels + 1);
    if (status == CLG_OK) status = reserve_launch(a);
    if (status != CLG_OK) {
        ocl_kernel_free(k);
        return status;
    }
    a->kernels[a->n_kernels++] = k;
    a->launches[a->n_launches++] =
        (ocl_launch){.kernel = k, .n_dims = s->n_dims, .global = s->global, .local = s->local};
    return CLG_OK;
}

/* Adds a call of CLBlast, whose operands have offsets but no memory yet. */
static clg_status add_gemm(ahead *a, const plan_step *s)
{
    bound_buffer bound[3];
    CLG_TRY(reserve_launch(a));
    for (uint32_t i = 0; i < 3; i++)
        bound[i] = (bound_buffer){.offset_bytes = s->buffers[i].offset_bytes};
    a->launches[a->n_launches++] = (ocl_launch){.gemm = launch_gemm(s->what, bound)};
    return CLG_OK;
}

static clg_status add_step(ahead *a, const plan_step *s)
{
    bound_buffer bound[STEP_MAX_ARGS];
    ocl_kernel *k;
    bool is_new;
    if (s->what->kind == STEP_BLAS_GEMM) return add_gemm(a, s);
    if (s->what->kind != STEP_KERNEL) return CLG_OK;
    CLG_TRY(note_form(a, s->what, &is_new));
    if (!is_new) return CLG_OK;
    for (uint32_t i = 0; i < s->n_buffers; i++) {
        bound[i] = (bound_buffer){.offset_bytes = s->buffers[i].offset_bytes};
        CLG_TRY(find_buffer(a, s->buffers[i].kind, s->buffers[i].index, &bound[i].buffer));
    }
    CLG_TRY(ocl_kernel_create_draft(a->exec->context->ocl, &s->what->kernel, &k));
    const clg_status status =
        launch_set_args(k, s->what, bound, &(launch_reports){.node = (int32_t)s->node});
    if (status == CLG_OK) return add_launch(a, k, s->what);
    ocl_kernel_free(k);
    return status;
}

typedef struct pack_binding {
    ahead *ahead;
    uint32_t index; /* of the packing in ahead->packed */
} pack_binding;

/* Implements launch_operand: binds the draft buffer of the weight or of its packed copy. A packing
 * has no scratch memory. */
static clg_status bind_pack_operand(void *self, const operand *o, bound_buffer *to)
{
    pack_binding *b = self;
    const packed_draft *p = &b->ahead->packed[b->index];
    const bool is_weight = o->space == OPERAND_INPUT && o->index == p->input;
    return is_weight ? find_buffer(b->ahead, PLACE_WEIGHT, p->weight, &to->buffer)
                     : find_buffer(b->ahead, PLACE_PACKED, b->index, &to->buffer);
}

static clg_status add_packing(ahead *a, uint32_t index)
{
    pack_binding b = {a, index};
    for (const step *s = a->packed[index].steps; s; s = s->next) {
        ocl_kernel *k;
        bool is_new;
        if (s->kind != STEP_KERNEL) continue;
        CLG_TRY(note_form(a, s, &is_new));
        if (!is_new) continue;
        CLG_TRY(launch_draft(a->exec->context, s, bind_pack_operand, &b, &k));
        CLG_TRY(add_launch(a, k, s));
    }
    return CLG_OK;
}

static clg_status compile(ahead *a, const plan *p)
{
    a->segment = p->root;
    for (size_t i = 0; i < p->root->n_steps; i++) {
        CLG_TRY(cancel_check("compiling kernels"));
        CLG_TRY(add_step(a, &p->root->steps[i]));
    }
    for (uint32_t i = 0; i < a->n_packed; i++) CLG_TRY(add_packing(a, i));
    return ocl_launches_try(a->exec->context->ocl, a->launches, a->n_launches);
}

clg_status exec_compile_ahead(session_exec *e, const value_fact *inputs)
{
    ahead a = {.exec = e, .wanted = {inputs, NULL, e->is_preparing}};
    plan *p = NULL;
    clg_status status = plan_dry(&a, &e->planning, &p);
    if (status == CLG_OK && p) status = compile(&a, p);
    /* Newest first: PoCL looks for a kernel in a list of all that its program has, from there. */
    for (size_t i = a.n_kernels; i-- > 0;) ocl_kernel_free(a.kernels[i]);
    for (size_t i = 0; i < a.n_buffers; i++) ocl_buffer_free(a.buffers[i].buffer);
    memory_free(a.kernels);
    memory_free(a.buffers);
    memory_free(a.launches);
    memory_free(a.packed);
    hash_map_deinit(&a.packed_keys);
    hash_map_deinit(&a.forms);
    plan_free(p);
    arena_deinit(&a.memory);
    return status == CLG_ERROR_OUT_OF_HOST_MEMORY || status == CLG_ERROR_CANCELLED ? status
                                                                                   : CLG_OK;
}
