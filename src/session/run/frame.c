/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements frames (the device resources of a session, frame.h): reserves memory, creates and
 * compiles kernels, and sets their arguments.
 */
#include "session/run/frame.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/hash.h"
#include "session/run/kernel_key.h"

#include <string.h>

/* Limits of the plans whose kernel objects a frame keeps; the least recently used ones are dropped.
 * A driver's kernel objects take kilobytes each, so that fewer plans with many steps are kept. */
#define MAX_FRAME_PLANS 16
#define MIN_FRAME_PLANS 2
#define MAX_FRAME_STEPS 4096

/* Returns a seed for random numbers that differs for each frame. */
static uint64_t fresh_seed(const frame *f)
{
    static atomic_uint_least64_t n_frames;
    const uint64_t sources[] = {time_now_ns(), (uint64_t)(uintptr_t)f,
                                atomic_fetch_add(&n_frames, 1)};
    return hash_bytes(sources, sizeof sources, 0);
}

static clg_status create_begun(frame *f)
{
    static const int32_t zeros[BEGUN_WORDS] = {0};
    CLG_TRY(ocl_buffer_create(f->exec->context->ocl, sizeof zeros, OCL_BUFFER_DEVICE, &f->begun));
    return ocl_queue_write(f->queue, f->begun, 0, zeros, sizeof zeros, false);
}

clg_status frame_create(session_exec *e, size_t n_inputs, size_t n_outputs,
                        const frame_owner *owner, frame **out_frame)
{
    *out_frame = NULL;
    frame *f = memory_zalloc(1, sizeof *f);
    if (!f) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    f->exec = e;
    f->owner = owner;
    if (owner->is_session) atomic_fetch_add(&e->n_frames, 1);
    f->stamp = 1;
    f->pace = 1.0;
    f->seed = fresh_seed(f);
    launch_limit_init(&f->limit, &e->context->budget, e->context->now_ns);
    f->n_inputs = n_inputs;
    f->n_outputs = n_outputs;
    f->inputs = memory_zalloc(n_inputs + 1, sizeof *f->inputs);
    f->outputs = memory_zalloc(n_outputs + 1, sizeof *f->outputs);
    clg_status status = f->inputs && f->outputs ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK)
        status = owner->is_session ? ocl_queue_create(e->context->ocl, &f->queue)
                                   : ocl_queue_create_own(e->context->ocl, &f->queue);
    if (status == CLG_OK)
        status = ocl_buffer_create(e->context->ocl, FAULT_WORDS * sizeof(int32_t),
                                   OCL_BUFFER_DEVICE, &f->fault);
    if (status == CLG_OK) status = frame_clear_fault(f);
    if (status == CLG_OK && ocl_context_threads_sleep(e->context->ocl)) status = create_begun(f);
    if (status != CLG_OK) {
        frame_free(f);
        return status;
    }
    *out_frame = f;
    return CLG_OK;
}

clg_status frame_prefix_node(const frame *f, const plan_step *s, clg_status status)
{
    char name[NODE_TEXT_BYTES];
    if (s->node >= f->exec->graph->n_nodes) return status;
    return error_prefix(status, "%s", node_text(&f->exec->graph->nodes[s->node], name));
}

/* Frees the kernels in reverse order: drivers keep those of a program in a list with the newest
 * first, and search it from there (PoCL: 32 s for 100,000 kernels in the order of creation). */
static void free_segment(frame *f, frame_segment *s)
{
    for (size_t i = s->kernels ? s->segment->n_steps : 0; i-- > 0;) frame_drop_kernel(f, s, i);
    memory_free(s->kernels);
    memory_free(s->parts);
    memory_free(s->bound);
    plan_segment_free(s->segment);
    memory_free(s);
}

static void free_plan(frame *f, frame_plan *p)
{
    while (p->segments) {
        frame_segment *next = p->segments->next;
        free_segment(f, p->segments);
        p->segments = next;
    }
    plan_free(p->plan);
    memory_free(p);
}

void frame_free(frame *f)
{
    if (!f) return;
    ocl_queue_free(f->queue);
    while (f->plans) {
        frame_plan *next = f->plans->next;
        free_plan(f, f->plans);
        f->plans = next;
    }
    kernel_pool_deinit(&f->spare);
    launch_limit_deinit(&f->limit);
    for (size_t i = 0; f->inputs && i < f->n_inputs; i++) ocl_buffer_free(f->inputs[i].buffer);
    for (size_t i = 0; f->outputs && i < f->n_outputs; i++) ocl_buffer_free(f->outputs[i].buffer);
    for (size_t i = 0; i < f->n_slabs; i++) ocl_buffer_free(f->slabs[i].buffer);
    for (size_t i = 0; i < f->n_states; i++) ocl_buffer_free(f->states[i].buffer);
    ocl_buffer_free(f->fault);
    ocl_buffer_free(f->begun);
    memory_free(f->inputs);
    memory_free(f->outputs);
    memory_free(f->slabs);
    memory_free(f->states);
    memory_free(f->state_bytes);
    memory_free(f->ran);
    if (f->owner->is_session) atomic_fetch_sub(&f->exec->n_frames, 1);
    memory_free(f);
}

/* ---- memory ---------------------------------------------------------------------------------- */

clg_status frame_take_over(frame *f, frame *old)
{
    CLG_TRY(ocl_queue_finish(f->queue));
    ocl_queue *queue = f->queue;
    f->queue = old->queue;
    old->queue = queue;
    for (size_t i = 0; i < f->n_inputs && i < old->n_inputs; i++) {
        frame_memory memory = f->inputs[i];
        f->inputs[i] = old->inputs[i];
        old->inputs[i] = memory;
        frame_touch(f, &f->inputs[i]);
    }
    return CLG_OK;
}

static clg_status reserve_slabs(frame *f, const plan_segment *segment)
{
    if (segment->n_slabs > f->n_slabs) {
        CLG_TRY(MEMORY_RESERVE(f->slabs, f->slabs_capacity, segment->n_slabs));
        memset(f->slabs + f->n_slabs, 0, (segment->n_slabs - f->n_slabs) * sizeof *f->slabs);
        f->n_slabs = segment->n_slabs;
    }
    for (size_t i = 0; i < segment->n_slabs; i++) {
        frame_memory *m = &f->slabs[i];
        ocl_buffer *old =
            m->buffer && ocl_buffer_size(m->buffer) < segment->slab_bytes[i] ? m->buffer : NULL;
        if (!old) {
            CLG_TRY(frame_reserve(f, m, segment->slab_bytes[i], OCL_BUFFER_DEVICE));
            continue;
        }
        /* A later segment needs a larger slab: copy the values that earlier ones left in it. */
        ocl_buffer *grown;
        CLG_TRY(frame_create_buffer(f, frame_with_room(f, m, segment->slab_bytes[i]),
                                    segment->slab_bytes[i], OCL_BUFFER_DEVICE, &grown));
        clg_status status = segment->parent
                                ? ocl_queue_copy(f->queue, old, 0, grown, 0, ocl_buffer_size(old))
                                : CLG_OK;
        ocl_buffer_free(old);
        m->buffer = grown;
        frame_touch(f, m);
        CLG_TRY(status);
    }
    return CLG_OK;
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Returns the ancestor of a segment (or itself) at a depth. */
static const plan_segment *segment_at(const plan_segment *segment, uint32_t depth)
{
    while (segment && segment->depth > depth) segment = segment->parent;
    return segment;
}

static void from_memory(const frame_memory *m, bound_buffer *out)
{
    out->buffer = m->buffer;
    out->offset_bytes = (int64_t)m->offset_bytes;
    out->stamp = m->stamp;
}

clg_status frame_resolve(frame *f, const plan_segment *segment, const plan_placement *place,
                         bound_buffer *out)
{
    *out = (bound_buffer){NULL, 0, 0};
    switch (place->kind) {
    case PLACE_SLAB: from_memory(&f->slabs[place->index], out); break;
    case PLACE_INPUT: from_memory(&f->inputs[place->index], out); break;
    case PLACE_OUTPUT: from_memory(&f->outputs[place->index], out); break;
    case PLACE_STATE: from_memory(&f->states[place->index], out); break;
    case PLACE_WEIGHT: CLG_TRY(f->owner->weight_buffer(f->exec, place->index, &out->buffer)); break;
    case PLACE_PACKED: CLG_TRY(exec_packed_buffer(f->exec, place->index, &out->buffer)); break;
    case PLACE_LITERAL:
        CLG_TRY(exec_literals(f->exec, (plan_segment *)segment_at(segment, place->index),
                              &out->buffer));
        break;
    case PLACE_NONE: break;
    }
    out->offset_bytes += place->offset_bytes;
    if (!out->buffer) return error_set(CLG_ERROR_INTERNAL, "an operand of a step has no memory");
    return CLG_OK;
}

/* Returns whether one of n buffers is not where it was. */
static bool are_others(const bound_buffer *buffers, const bound_buffer *before, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (buffers[i].stamp != before[i].stamp) return true;
    return false;
}

/* Sets the kernel arguments of a segment's steps whose buffers changed since the last time. */
static clg_status bind_steps(frame *f, frame_segment *prepared)
{
    const plan_segment *segment = prepared->segment;
    bound_buffer fresh[STEP_MAX_ARGS];
    size_t at = 0;
    bool first = prepared->bound_stamp == 0;
    prepared->bound_stamp = 0; /* remains so when this fails half-way */
    for (size_t i = 0; i < segment->n_steps; i++) {
        const plan_step *s = &segment->steps[i];
        CLG_TRY(cancel_check("the run"));
        for (uint32_t b = 0; b < s->n_buffers; b++)
            CLG_TRY(frame_resolve(f, segment, &s->buffers[b], &fresh[b]));
        const launch_reports reports = {.fault = f->fault,
                                        .node = (int32_t)s->node,
                                        .begun = f->begun,
                                        .step = frame_step_number(i)};
        if (prepared->kernels[i] &&
            (first || are_others(fresh, &prepared->bound[at], s->n_buffers)))
            CLG_TRY(launch_set_args(prepared->kernels[i], s->what, fresh, &reports));
        if (s->n_buffers) memcpy(&prepared->bound[at], fresh, s->n_buffers * sizeof *fresh);
        at += s->n_buffers;
    }
    for (size_t i = 0; i < segment->n_appends; i++)
        if (segment->appends[i].size_bytes > 0) /* else it has no memory */
            CLG_TRY(frame_resolve(f, segment, &segment->appends[i].from, &prepared->bound[at + i]));
    prepared->bound_stamp = f->stamp;
    return CLG_OK;
}

/* Takes a step's kernel from the pool, or creates one that is not built yet (a draft). `made`: the
 * kernel_key of each text -> the step whose kernel was created first; it adds this one. */
static clg_status make_kernel(frame *f, frame_segment *prepared, size_t i, hash_map *made)
{
    const kernel_ref ref = frame_kernel_ref(prepared, i);
    const kernel_key key = kernel_key_of(&ref);
    ocl_kernel **kernel = &prepared->kernels[i];
    *kernel = kernel_pool_take(&f->spare, &ref);
    if (*kernel) return CLG_OK;
    const size_t first = hash_map_get(made, &key, sizeof key);
    if (first != HASH_MAP_NONE) return ocl_kernel_create_alike(prepared->kernels[first], kernel);
    CLG_TRY(ocl_kernel_create_draft(f->exec->context->ocl, &ref, kernel));
    return hash_map_set(made, &key, sizeof key, i);
}

/* Makes the kernels that are missing. */
static clg_status make_kernels(frame *f, frame_segment *prepared)
{
    const plan_segment *segment = prepared->segment;
    const limit_phase phase = limits_set_phase(LIMIT_COMPILE);
    hash_map made = {0};
    clg_status status = CLG_OK;
    for (size_t i = 0; i < segment->n_steps && status == CLG_OK; i++) {
        const plan_step *s = &segment->steps[i];
        if (s->what->kind != STEP_KERNEL || prepared->kernels[i]) continue;
        status = cancel_check("the run");
        if (status == CLG_OK) status = make_kernel(f, prepared, i, &made);
        if (status != CLG_OK && status != CLG_ERROR_CANCELLED)
            (void)frame_prefix_node(f, s, status);
    }
    hash_map_deinit(&made);
    (void)limits_set_phase(phase);
    return status;
}

static clg_status make_segment(frame *f, plan_segment *segment, frame_segment **out_prepared)
{
    size_t n_bound = 0;
    for (size_t i = 0; i < segment->n_steps; i++) n_bound += segment->steps[i].n_buffers;
    frame_segment *prepared = memory_zalloc(1, sizeof *prepared);
    if (!prepared) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    prepared->segment = plan_segment_retain(segment);
    prepared->n_bound = n_bound;
    prepared->kernels = memory_zalloc(segment->n_steps + 1, sizeof *prepared->kernels);
    prepared->bound = memory_zalloc(n_bound + segment->n_appends + 1, sizeof *prepared->bound);
    clg_status status =
        prepared->kernels && prepared->bound ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK) status = frame_split(f, prepared);
    if (status == CLG_OK) status = make_kernels(f, prepared);
    if (status != CLG_OK) {
        free_segment(f, prepared);
        return status;
    }
    *out_prepared = prepared;
    return CLG_OK;
}

static size_t count_steps(const frame_plan *p)
{
    size_t n = 0;
    for (const frame_segment *s = p->segments; s; s = s->next) n += s->segment->n_steps;
    return n;
}

static void drop_old_plans(frame *f)
{
    frame_plan **link = &f->plans;
    for (size_t n = 0, n_steps = 0; *link; n++, link = &(*link)->next) {
        n_steps += count_steps(*link);
        if (n >= MAX_FRAME_PLANS || (n >= MIN_FRAME_PLANS && n_steps > MAX_FRAME_STEPS)) break;
    }
    while (*link) {
        frame_plan *old = *link;
        *link = old->next;
        free_plan(f, old);
    }
}

/* Finds the frame's record of plan p, or adds one; it becomes the most recently used. */
static clg_status find_frame_plan(frame *f, plan *p, frame_plan **out_plan)
{
    for (frame_plan **link = &f->plans; *link; link = &(*link)->next) {
        frame_plan *found = *link;
        if (found->plan != p) continue;
        *link = found->next;
        found->next = f->plans;
        f->plans = found;
        *out_plan = found;
        return CLG_OK;
    }
    frame_plan *made = memory_zalloc(1, sizeof *made);
    if (!made) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    made->plan = plan_retain(p);
    made->next = f->plans;
    f->plans = made;
    *out_plan = made;
    drop_old_plans(f);
    return CLG_OK;
}

/* Drops the kernels of segments that were removed from the plan's tree. */
static void drop_detached(frame *f, frame_plan *owner)
{
    for (frame_segment **link = &owner->segments; *link;) {
        frame_segment *s = *link;
        if (!atomic_load(&s->segment->detached)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        free_segment(f, s);
    }
}

/* Allocates room for the launches of all steps, and for their NDRanges. */
static clg_status allocate_launches(const frame_segment *prepared, ocl_launch **out_launches,
                                    launch_range **out_ranges)
{
    size_t n = 1;
    for (size_t i = 0; i < prepared->segment->n_steps; i++) n += frame_count_parts(prepared, i);
    *out_launches = memory_zalloc(n, sizeof **out_launches);
    *out_ranges = memory_zalloc(n, sizeof **out_ranges);
    return *out_launches && *out_ranges ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Adds the launch of a kernel step: if it is divided, the first and the last part, one of which has
 * the size of any part. Returns the number of launches. */
static size_t add_launches(const frame_segment *prepared, size_t i, ocl_launch *launches,
                           launch_range *ranges, size_t n)
{
    const step *s = prepared->segment->steps[i].what;
    const uint32_t n_parts = frame_count_parts(prepared, i);
    for (uint32_t part = 0; part<n_parts; part += n_parts> 1 ? n_parts - 1 : 1) {
        launch_range *r = &ranges[n];
        launch_part_range(s, (launch_part){part, n_parts}, r);
        launches[n++] = (ocl_launch){.kernel = prepared->kernels[i],
                                     .n_dims = r->n_dims,
                                     .global = r->global,
                                     .local = r->local,
                                     .offset = n_parts > 1 ? r->offset : NULL};
    }
    return n;
}

/* Adds the calls of CLBlast for a step. Returns the number of launches. */
static size_t add_gemms(const frame_segment *prepared, size_t i, const bound_buffer *bound,
                        ocl_launch *launches, size_t n)
{
    const uint32_t n_parts = frame_count_parts(prepared, i);
    for (uint32_t part = 0; part < n_parts; part++) {
        ocl_gemm *g = &launches[n++].gemm;
        *g = launch_gemm(prepared->segment->steps[i].what, bound);
        launch_part_gemm((launch_part){part, n_parts}, g);
    }
    return n;
}

/* Compiles the kernels that are not built yet, with the arguments that were just set, and has
 * helper processes try calls of CLBlast, which compiles its kernels when it is called. */
static clg_status build_kernels(frame *f, frame_segment *prepared)
{
    const plan_segment *segment = prepared->segment;
    const limit_phase phase = limits_set_phase(LIMIT_COMPILE);
    size_t n = 0, at = 0;
    launch_range *ranges = NULL;
    ocl_launch *launches = NULL;
    clg_status status = allocate_launches(prepared, &launches, &ranges);
    for (size_t i = 0; i < segment->n_steps && status == CLG_OK; i++) {
        const step *s = segment->steps[i].what;
        if (prepared->kernels[i] && prepared->built_stamp == 0)
            n = add_launches(prepared, i, launches, ranges, n);
        if (s->kind == STEP_BLAS_GEMM) {
            n = add_gemms(prepared, i, &prepared->bound[at], launches, n);
            prepared->has_gemms = true;
        }
        at += segment->steps[i].n_buffers;
    }
    if (status == CLG_OK)
        status =
            ocl_launches_prepare(f->exec->context->ocl, launches, n, f->progress, f->progress_user);
    memory_free(launches);
    memory_free(ranges);
    prepared->built_stamp = status == CLG_OK ? f->stamp : 0;
    (void)limits_set_phase(phase);
    return status;
}

clg_status frame_prepare(frame *f, plan *p, plan_segment *segment, frame_segment **out_prepared)
{
    frame_plan *owner;
    frame_segment *prepared;
    CLG_TRY(find_frame_plan(f, p, &owner));
    CLG_TRY(reserve_slabs(f, segment));
    CLG_TRY(frame_reserve_states(f, segment));
    for (prepared = owner->segments; prepared && prepared->segment != segment;)
        prepared = prepared->next;
    if (!prepared) {
        drop_detached(f, owner);
        CLG_TRY(make_segment(f, segment, &prepared));
        prepared->next = owner->segments;
        owner->segments = prepared;
    }
    if (prepared->limit_epoch != f->limit.epoch) { /* measurements changed the parts */
        CLG_TRY(frame_split(f, prepared));
        CLG_TRY(make_kernels(f, prepared));
    }
    if (prepared->bound_stamp != f->stamp) CLG_TRY(bind_steps(f, prepared));
    if (prepared->built_stamp == 0 || (prepared->has_gemms && prepared->built_stamp != f->stamp))
        CLG_TRY(build_kernels(f, prepared));
    *out_prepared = prepared;
    return CLG_OK;
}

bool frame_is_ready(const frame *f, const plan *p, const plan_segment *segment)
{
    if (!f->plans || f->plans->plan != p) return false;
    for (const frame_segment *s = f->plans->segments; s; s = s->next)
        if (s->segment == segment)
            return s->limit_epoch == f->limit.epoch && s->bound_stamp == f->stamp &&
                   s->built_stamp != 0 && (!s->has_gemms || s->built_stamp == f->stamp);
    return false;
}

bool frame_has_built(const frame *f, const plan *p)
{
    if (!f->plans || f->plans->plan != p) return false;
    for (const frame_segment *s = f->plans->segments; s; s = s->next)
        if (s->segment == p->root) return s->limit_epoch == f->limit.epoch && s->built_stamp != 0;
    return false;
}

/* ---- faults ---------------------------------------------------------------------------------- */

clg_status frame_check_fault(const frame *f, const int32_t *words)
{
    char name[NODE_TEXT_BYTES];
    if (words[0] == 0) return CLG_OK;
    int32_t n = FAULT_NODE(words[0]);
    const char *where = n >= 0 && (size_t)n < f->exec->graph->n_nodes
                            ? node_text(&f->exec->graph->nodes[n], name)
                            : "a node";
    const char *what = step_fault_text(FAULT_KERNEL_CODE(words[0]));
    return error_set(CLG_ERROR_DATA, "%s: %s: %d", where, what, words[1]);
}

clg_status frame_clear_fault(frame *f)
{
    static const int32_t zeros[FAULT_WORDS] = {0};
    CLG_TRY(ocl_queue_write(f->queue, f->fault, 0, zeros, sizeof zeros, false));
    f->fault_dirty = false;
    return CLG_OK;
}
