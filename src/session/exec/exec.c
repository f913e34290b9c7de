/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates, shares and frees execs (the optimised graph, weights and plans that sessions of one
 * model, context and options share; exec.h), and caches their plans.
 */
#include "session/exec/exec.h"
#include "session/selftest/selftest.h"

#include "base/cancel.h"
#include "passes/passes.h"
#include "plan/tuning_table.h"

#include <string.h>

/* Limits of the plans kept for different input shapes; the least recently used ones are dropped. At
 * least MIN_PLANS are kept, whatever their size. A plan takes a kilobyte per step, more where its
 * shapes depend on data. */
#define MAX_PLANS 64
#define MIN_PLANS 4
#define MAX_PLAN_BYTES ((size_t)32 << 20)

/* ---- options --------------------------------------------------------------------------------- */

static bool same_names(name_list a, name_list b)
{
    if (a.count != b.count) return false;
    for (size_t i = 0; i < a.count; i++)
        if (strcmp(a.names[i], b.names[i]) != 0) return false;
    return true;
}

static bool same_limits(const clg_limits *a, const clg_limits *b)
{
    return a->max_memory_bytes == b->max_memory_bytes && a->max_steps == b->max_steps &&
           a->max_compile_ms == b->max_compile_ms && a->max_run_ms == b->max_run_ms;
}

static bool same_options(const exec_options *a, const exec_options *b)
{
    return a->kernel_class == b->kernel_class && a->no_blas == b->no_blas &&
           a->strict == b->strict && a->max_iterations == b->max_iterations &&
           same_limits(&a->limits, &b->limits) && a->keep_all == b->keep_all &&
           a->is_front == b->is_front && a->fp16 == b->fp16 &&
           same_names(a->keep_fp32, b->keep_fp32) && same_names(a->disabled, b->disabled) &&
           same_names(a->preferred, b->preferred) && same_names(a->keep, b->keep);
}

/* Copies the list's strings to the arena. */
static clg_status copy_names(arena *memory, name_list *list)
{
    const char **copy = arena_alloc(memory, list->count + 1, sizeof *copy);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        copy[i] = arena_strdup(memory, list->names[i]);
        if (!copy[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    list->names = copy;
    return CLG_OK;
}

clg_status exec_options_copy(arena *memory, const exec_options *from, exec_options *out_options)
{
    *out_options = *from;
    name_list *const lists[] = {&out_options->keep_fp32, &out_options->disabled,
                                &out_options->preferred, &out_options->keep};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) CLG_TRY(copy_names(memory, lists[i]));
    return CLG_OK;
}

/* ---- the graph to run ------------------------------------------------------------------------ */

/* Clones the model's graph and makes outputs of the values that options.keep and keep_all
 * select. */
static clg_status keep_values(const session_exec *e, graph **out_graph)
{
    graph *g;
    CLG_TRY(graph_clone(e->model->graph, &g));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < e->options.keep.count && status == CLG_OK; i++) {
        value_id v = graph_find_value(g, e->options.keep.names[i]);
        if (v == VALUE_NONE)
            status = error_set(CLG_ERROR_NOT_FOUND, "the model has no value named '%s'",
                               e->options.keep.names[i]);
        else if (!g->values[v].is_output)
            status = graph_add_output(g, v);
    }
    for (size_t n = 0; e->options.keep_all && n < g->n_nodes && status == CLG_OK; n++)
        for (size_t i = 0; i < g->nodes[n].n_outputs && status == CLG_OK; i++) {
            value_id v = g->nodes[n].outputs[i];
            if (v != VALUE_NONE && !g->values[v].is_output && g->values[v].name[0])
                status = graph_add_output(g, v);
        }
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    *out_graph = g;
    return CLG_OK;
}

/* Sets e->graph to the model's graph after the optimisation passes. */
static clg_status optimise(session_exec *e)
{
    pass_options options = {.kernel_class = e->options.kernel_class,
                            .lanes = caps_simd_lanes(ocl_context_caps(e->context->ocl)),
                            .max_buffer_bytes = ocl_context_caps(e->context->ocl)->max_alloc_bytes,
                            .disabled = e->options.disabled,
                            .fp16 = e->options.fp16,
                            .keep_fp32 = e->options.keep_fp32};
    if (!e->options.keep_all && e->options.keep.count == 0)
        return passes_run(e->model->graph, &options, &e->graph);
    graph *kept = NULL;
    CLG_TRY(keep_values(e, &kept));
    clg_status status = passes_run(kept, &options, &e->graph);
    graph_free(kept);
    return status;
}

/* Allocates the arrays by value, node and input, and sets the facts of constants. */
static clg_status set_constants(session_exec *e)
{
    size_t n = e->graph->n_values;
    e->weights = arena_alloc(&e->memory, n + 1, sizeof *e->weights);
    e->weight_buffers = arena_alloc(&e->memory, n + 1, sizeof(ocl_buffer *));
    e->weight_is_bound = arena_alloc(&e->memory, n + 1, sizeof(bool));
    e->weight_may_go = arena_alloc(&e->memory, n + 1, sizeof(bool));
    e->n_readers = arena_alloc(&e->memory, n + 1, sizeof(uint8_t));
    e->node_is_init = arena_alloc(&e->memory, e->graph->n_nodes + 1, sizeof(bool));
    e->host_inputs = arena_alloc(&e->memory, e->graph->n_inputs + 1, sizeof(bool));
    if (!e->weights || !e->weight_buffers || !e->weight_is_bound || !e->weight_may_go ||
        !e->n_readers || !e->node_is_init || !e->host_inputs)
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t v = 0; v < n; v++) {
        const tensor *t = e->graph->values[v].constant;
        if (t) e->weights[v] = (value_fact){.dtype = t->dtype, .dims = t->dims, .known = t};
    }
    return CLG_OK;
}

/* Tests a candidate. Before the first self-test that must run, compiles the kernels of the whole
 * plan ahead. */
static clg_status test_impl(session_exec *e, const lower_context *lc, const candidate *impl,
                            impl_check *out)
{
    bool is_known = true;
    if (e->ahead_of) CLG_TRY(context_knows(e->context, lc, impl, &is_known));
    if (!is_known) {
        const value_fact *inputs = e->ahead_of;
        e->ahead_of = NULL;
        CLG_TRY(exec_compile_ahead(e, inputs));
    }
    return context_validate_impl(e->context, lc, impl, out);
}

/* Implements impl_validator.check. Plans of growing shapes repeat their kernels: what has passed is
 * found again by the addresses of its texts, without reading them. */
static clg_status check_impl(void *self, const lower_context *lc, const candidate *impl,
                             impl_check *out)
{
    session_exec *e = self;
    strbuf key;
    strbuf_init(&key, 0);
    selftest_variant_addresses(impl, &key);
    clg_status status = key.status;
    *out = (impl_check){.passes = true, .is_final = true};
    if (status == CLG_OK &&
        hash_map_get(&e->passed, strbuf_data(&key), key.size_bytes) == HASH_MAP_NONE) {
        status = test_impl(e, lc, impl, out);
        if (status == CLG_OK && out->passes && out->is_final)
            status = hash_map_set(&e->passed, strbuf_data(&key), key.size_bytes, 0);
    }
    strbuf_deinit(&key);
    return status;
}

static clg_status build_front(session_exec *e)
{
    CLG_TRY(graph_clone(e->model->graph, &e->graph));
    return set_constants(e);
}

static clg_status exec_build(session_exec *e, clg_progress_callback progress, void *user)
{
    if (progress && !progress(user, "optimising the graph", 0, 2))
        return error_set(CLG_ERROR_CANCELLED, "the session was cancelled while it was being made");
    CLG_TRY(model_require_data(e->model));
    if (e->options.is_front) return build_front(e);
    CLG_TRY(optimise(e));
    CLG_TRY(set_constants(e));
    e->planning = (plan_context){
        .graph = e->graph,
        .caps = ocl_context_caps(e->context->ocl),
        .budget = e->context->budget,
        .kernel_class = e->options.kernel_class,
        .allow_blas = !e->options.no_blas && ocl_blas_available(e->context->ocl),
        .strict = e->options.strict,
        .max_steps = e->options.limits.max_steps,
        .blas_accepts = ocl_blas_accepts,
        .weights = e->weights,
        .node_is_init = e->node_is_init,
        .outputs = e->graph->outputs,
        .n_outputs = e->graph->n_outputs,
        .n_required = e->options.keep_all ? e->model->graph->n_outputs : e->graph->n_outputs,
        .owner = {e, exec_pack},
        .device = e->context->info.name,
        .driver = e->context->info.driver,
        .tiers = exec_tiers(e),
        .validator = {e, e->context->trusting ? NULL : check_impl},
        .compiler = {e->context, context_compiles},
        .texts = &e->texts,
        .preferred = e->options.preferred.names,
        .n_preferred = e->options.preferred.count,
        .choices = e->choices,
        .notes_choices = e->context->profiling};
    CLG_TRY(exec_find_init(e));
    CLG_TRY(exec_find_in_place(e));
    if (progress && !progress(user, "computing constants", 1, 2))
        return error_set(CLG_ERROR_CANCELLED, "the session was cancelled while it was being made");
    return exec_run_init(e);
}

/* ---- sharing --------------------------------------------------------------------------------- */

static void exec_destroy(session_exec *e)
{
    for (plan *p = e->plans; p;) {
        plan *next = p->next;
        plan_free(p);
        p = next;
    }
    plan_memo_free(e->planning.memo);
    hash_map_deinit(&e->passed);
    step_texts_deinit(&e->texts);
    exec_free_weights(e);
    graph_free(e->graph);
    tuning_table_free(e->choices);
    arena_deinit(&e->memory);
    mutex_deinit(&e->weights_lock);
    mutex_deinit(&e->plan_lock);
    mutex_deinit(&e->build_lock);
    model_free(e->model);
    context_free(e->context);
    memory_budget_free(e->budget);
    memory_free(e);
}

static clg_status init_locks(session_exec *e)
{
    CLG_TRY(mutex_init(&e->build_lock));
    clg_status status = mutex_init(&e->plan_lock);
    if (status != CLG_OK) goto no_plan_lock;
    status = mutex_init(&e->weights_lock);
    if (status == CLG_OK) return CLG_OK;
    mutex_deinit(&e->plan_lock);
no_plan_lock:
    mutex_deinit(&e->build_lock);
    return status;
}

static clg_status exec_alloc(device_context *context, clg_model *model, const exec_options *options,
                             session_exec **out_exec)
{
    session_exec *e = memory_zalloc(1, sizeof *e);
    if (!e) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&e->refs);
    clg_status status = init_locks(e);
    if (status != CLG_OK) {
        memory_free(e);
        return status;
    }
    e->context = context_retain(context);
    e->model = model_retain(model);
    e->choices = tuning_table_retain(context->choices);
    status = exec_options_copy(&e->memory, options, &e->options);
    if (status == CLG_OK && options->limits.max_memory_bytes)
        status = memory_budget_create(options->limits.max_memory_bytes,
                                      memory_budget_used(model->budget), &e->budget);
    if (status != CLG_OK) {
        exec_destroy(e);
        return status;
    }
    *out_exec = e;
    return CLG_OK;
}

/* Sets *out_exec to a reference to the registry's exec with this model, these options and the
 * current tuning table; if there is none, adds a new one, which is not built yet. */
static clg_status find_or_add(device_context *context, clg_model *model,
                              const exec_options *options, session_exec **out_exec)
{
    clg_status status = CLG_OK;
    session_exec *e;
    mutex_lock(&context->registry_lock);
    context_load_choices(context);
    for (e = context->execs; e; e = e->next)
        if (e->model == model && e->choices == context->choices &&
            same_options(&e->options, options))
            break;
    if (e) {
        exec_retain(e);
    } else {
        status = exec_alloc(context, model, options, &e);
        if (status == CLG_OK) {
            e->next = context->execs;
            context->execs = e;
        }
    }
    mutex_unlock(&context->registry_lock);
    *out_exec = status == CLG_OK ? e : NULL;
    return status;
}

static void leave_registry(session_exec *e)
{
    for (session_exec **link = &e->context->execs; *link; link = &(*link)->next)
        if (*link == e) {
            *link = e->next;
            return;
        }
}

/* Builds e unless that was done before. *out_again: another thread tried and failed, so that the
 * caller must find or add another exec. */
static clg_status build_once(session_exec *e, clg_progress_callback progress, void *user,
                             bool *out_again)
{
    clg_status status = CLG_OK;
    *out_again = false;
    mutex_lock(&e->build_lock);
    if (e->build == EXEC_TO_BUILD) {
        memory_budget *before = memory_budget_set(e->budget);
        status = exec_build(e, progress, user);
        (void)memory_budget_set(before);
        e->build = status == CLG_OK ? EXEC_BUILT : EXEC_FAILED;
        if (status != CLG_OK) {
            mutex_lock(&e->context->registry_lock);
            leave_registry(e);
            mutex_unlock(&e->context->registry_lock);
        }
    } else {
        *out_again = e->build == EXEC_FAILED;
    }
    mutex_unlock(&e->build_lock);
    return status;
}

clg_status exec_get(device_context *context, clg_model *model, const exec_options *options,
                    clg_progress_callback progress, void *user, session_exec **out_exec)
{
    *out_exec = NULL;
    for (;;) {
        session_exec *e;
        bool again;
        CLG_TRY(find_or_add(context, model, options, &e));
        clg_status status = build_once(e, progress, user, &again);
        if (status == CLG_OK && !again) {
            *out_exec = e;
            return CLG_OK;
        }
        exec_free(e);
        if (!again) return status;
    }
}

session_exec *exec_retain(session_exec *e)
{
    refcount_retain(&e->refs);
    return e;
}

void exec_free(session_exec *e)
{
    if (!e) return;
    device_context *context = e->context;
    mutex_lock(&context->registry_lock);
    bool last = refcount_release(&e->refs);
    if (last) leave_registry(e);
    mutex_unlock(&context->registry_lock);
    if (last) exec_destroy(e);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static uint32_t in_place_at(const uint32_t *in_place, size_t input)
{
    return in_place ? in_place[input] : PLAN_APART;
}

static bool is_for(const plan *p, exec_request wanted)
{
    for (size_t i = 0; i < p->n_inputs; i++)
        if (in_place_at(p->in_place, i) != in_place_at(wanted.in_place, i) ||
            !aggregate_equal(&p->inputs[i], &wanted.inputs[i]))
            return false;
    return true;
}

static plan *find_plan(session_exec *e, exec_request wanted)
{
    for (plan **link = &e->plans; *link; link = &(*link)->next) {
        plan *p = *link;
        if (!is_for(p, wanted)) continue;
        *link = p->next;
        p->next = e->plans;
        e->plans = p;
        return p;
    }
    return NULL;
}

static void drop_old_plans(session_exec *e)
{
    plan **link = &e->plans;
    for (size_t n = 0, n_bytes = 0; *link; n++, link = &(*link)->next) {
        n_bytes += plan_size_bytes(*link);
        if (n >= MAX_PLANS || (n >= MIN_PLANS && n_bytes > MAX_PLAN_BYTES)) break;
    }
    while (*link) {
        plan *old = *link;
        *link = old->next;
        plan_free(old);
        e->n_plans--;
    }
}

static void drop_plans(session_exec *e)
{
    while (e->plans) {
        plan *old = e->plans;
        e->plans = old->next;
        plan_free(old);
    }
    e->n_plans = 0;
    plan_memo_clear(e->planning.memo);
}

static clg_status make_plan(session_exec *e, exec_request wanted, plan **out_plan)
{
    bool needed[256] = {false};
    bool *needs = needed, *allocated = NULL;
    if (e->graph->n_inputs > sizeof needed) {
        needs = allocated = memory_zalloc(e->graph->n_inputs, sizeof(bool));
        if (!needs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    /* With the second plan, more are likely to follow. */
    if (e->n_plans > 0 && !e->planning.memo) CLG_TRY(plan_memo_create(e->graph, &e->planning.memo));
    e->ahead_of = ocl_has_helper(e->context->ocl) ? wanted.inputs : NULL;
    clg_status status = exec_check_plan(e, wanted);
    if (status == CLG_OK)
        status = plan_create(&e->planning, wanted.inputs, wanted.in_place, needs, out_plan);
    e->ahead_of = NULL;
    if (status == CLG_OK && !*out_plan)
        for (size_t i = 0; i < e->graph->n_inputs; i++) e->host_inputs[i] |= needs[i];
    memory_free(allocated);
    return status;
}

clg_status exec_plan(session_exec *e, exec_request wanted, plan **out_plan)
{
    clg_status status = CLG_OK;
    *out_plan = NULL;
    const limit_phase phase = limits_set_phase(LIMIT_COMPILE);
    mutex_lock(&e->plan_lock);
    if (exec_outgrows_plans(e, wanted)) drop_plans(e);
    plan *p = find_plan(e, wanted);
    if (!p) {
        status = make_plan(e, wanted, &p);
        exec_end_planning(e);
        if (p) {
            p->next = e->plans;
            e->plans = p;
            e->n_plans++;
            drop_old_plans(e);
            atomic_fetch_add(&e->context->plans_made, 1);
        }
    }
    if (p) *out_plan = plan_retain(p);
    mutex_unlock(&e->plan_lock);
    (void)limits_set_phase(phase);
    return status;
}

plan *exec_last_plan(session_exec *e)
{
    mutex_lock(&e->plan_lock);
    plan *p = e->plans ? plan_retain(e->plans) : NULL;
    mutex_unlock(&e->plan_lock);
    return p;
}

clg_status exec_plan_dry(session_exec *e, exec_request wanted, plan **out_plan)
{
    *out_plan = NULL;
    mutex_lock(&e->plan_lock);
    plan *p = find_plan(e, wanted);
    const clg_status status =
        p ? CLG_OK : exec_make_dry_plan(e, &e->planning, wanted, NULL, out_plan);
    if (p) *out_plan = plan_retain(p);
    mutex_unlock(&e->plan_lock);
    return status;
}

void exec_forget_plans(session_exec *e)
{
    mutex_lock(&e->plan_lock);
    drop_plans(e);
    mutex_unlock(&e->plan_lock);
}

/* Ends the planning of a segment: checks what it needs. *segment is freed on failure. */
static clg_status end_segment(session_exec *e, clg_status status, plan_segment **segment)
{
    exec_end_planning(e);
    if (status == CLG_OK && *segment) status = exec_check_segment(e, *segment);
    if (status == CLG_OK) return CLG_OK;
    plan_segment_free(*segment);
    *segment = NULL;
    return status;
}

clg_status exec_continue(session_exec *e, plan_segment *segment, tensor *const *contents,
                         plan_segment **out_child)
{
    *out_child = NULL;
    const limit_phase phase = limits_set_phase(LIMIT_COMPILE);
    mutex_lock(&e->plan_lock);
    clg_status status = plan_continue(&e->planning, segment, contents, out_child);
    status = end_segment(e, status, out_child);
    mutex_unlock(&e->plan_lock);
    (void)limits_set_phase(phase);
    return status;
}

clg_status exec_next_iteration(session_exec *e, plan_segment *segment, bool again, int64_t count,
                               plan_segment **out_child)
{
    *out_child = NULL;
    const limit_phase phase = limits_set_phase(LIMIT_COMPILE);
    mutex_lock(&e->plan_lock);
    clg_status status = plan_next_iteration(&e->planning, segment, again, count, out_child);
    status = end_segment(e, status, out_child);
    mutex_unlock(&e->plan_lock);
    (void)limits_set_phase(phase);
    return status;
}

void exec_dump_plan(session_exec *e, const plan *p, struct strbuf *out_text)
{
    mutex_lock(&e->plan_lock); /* other threads may add segments */
    plan_dump(&e->planning, p, out_text);
    mutex_unlock(&e->plan_lock);
}

clg_place exec_node_place(session_exec *e, const plan *p, node_id n)
{
    uint8_t place = UINT8_MAX;
    if (e->node_is_init[n]) return CLG_PLACE_LOAD;
    mutex_lock(&e->plan_lock);
    for (const plan_segment *s = p->root; s && place == UINT8_MAX; s = s->children)
        place = s->node_places[n];
    mutex_unlock(&e->plan_lock);
    return place == UINT8_MAX ? CLG_PLACE_DEVICE : (clg_place)place;
}

bool exec_needs_content(session_exec *e, size_t i)
{
    mutex_lock(&e->plan_lock);
    bool needs = e->host_inputs[i];
    mutex_unlock(&e->plan_lock);
    return needs;
}
