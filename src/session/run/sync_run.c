/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a session synchronously: finds the plan for the inputs, enqueues uploads, steps and
 * downloads in one queue, and waits once, at the end. It waits more often only where the host must
 * read values to continue planning (plan segments), and in long loops. Also prepares sessions
 * (compiles ahead) and keeps run profiles.
 */
#include "base/cancel.h"
#include "base/clock.h"
#include "session/run/run_state.h"

#define MAX_IN_FLIGHT 4096 /* steps enqueued before a run waits, in loops that wait for nothing */
#define LONG_WAIT_NS 100000000 /* a cancelled run that waits longer names the launch */

/* ---- segments -------------------------------------------------------------------------------- */

/* Finds the memory of the values that the host reads after a segment. Called before its launches,
 * because it may take the weights lock, under which another thread may wait for these launches to
 * end (ocl/queue/launch_guard.h). */
static clg_status find_reads(run_state *r, bound_buffer *out_where)
{
    for (size_t i = 0; i < r->segment->n_reads; i++) {
        const plan_port *port = &r->segment->reads[i];
        int64_t n = 0;
        if (!port->known) CLG_TRY(shape_n_elements(&port->dims, &n));
        if (n > 0)
            CLG_TRY(frame_resolve(r->session->frame, r->segment, &port->place, &out_where[i]));
    }
    return CLG_OK;
}

/* Creates a tensor for a value that the host reads after a segment, and enqueues the read. */
static clg_status read_content(run_state *r, const plan_port *port, const bound_buffer *where,
                               tensor **out_content)
{
    if (port->known) {
        *out_content = tensor_retain((tensor *)port->known);
        return CLG_OK;
    }
    CLG_TRY(tensor_create(port->dtype, &port->dims, out_content));
    if ((*out_content)->size_bytes == 0) return CLG_OK;
    return ocl_queue_read(r->session->frame->queue, where->buffer, (size_t)where->offset_bytes,
                          (*out_content)->data, (*out_content)->size_bytes, false);
}

/* Returns an error if a kernel reported a fault. A preparation ignores faults: zeros may be invalid
 * data, and only compiling the kernels matters. */
static clg_status check_fault(const run_state *r)
{
    return r->mode == RUN_FOR_REAL ? frame_check_fault(r->session->frame, r->fault) : CLG_OK;
}

static clg_status read_fault(run_state *r)
{
    if (!r->may_have_fault) return CLG_OK;
    return ocl_queue_read(r->session->frame->queue, r->session->frame->fault, 0, r->fault,
                          sizeof r->fault, false);
}

/* Enqueues the reads after a segment that is not the last one, and waits. */
static clg_status wait_for_segment(run_state *r, const bound_buffer *reads, tensor **contents)
{
    frame *f = r->session->frame;
    clg_status status = CLG_OK;
    for (size_t i = 0; status == CLG_OK && i < r->segment->n_reads; i++)
        status = read_content(r, &r->segment->reads[i], &reads[i], &contents[i]);
    if (status == CLG_OK) status = read_fault(r);
    clg_status finished = ocl_queue_finish(f->queue);
    CLG_TRY(status);
    CLG_TRY(finished);
    if (r->n_unwaited == 0) frame_finished(f, r->prepared);
    r->n_unwaited = 0;
    r->may_have_fault = false;
    return check_fault(r);
}

/* ---- loops that wait for nothing ----------------------------------------------------------- */

/* Returns what followed r->segment after an earlier iteration of this run, if the frame has it
 * prepared, so that the run need not wait now; else NULL. Takes no lock, under which another thread
 * may wait for the launches in flight (ocl/queue/launch_guard.h). */
static plan_segment *find_turn(run_state *r)
{
    if (r->n_unwaited + r->segment->n_steps > MAX_IN_FLIGHT) return NULL;
    for (size_t i = 0; i < 2; i++) {
        plan_segment *to = r->turns[i].to;
        if (r->turns[i].from == r->segment && frame_is_ready(r->session->frame, r->plan, to))
            return plan_segment_retain(to);
    }
    return NULL;
}

/* Records that `to` follows r->segment, in place of the older of the two records. */
static void keep_turn(run_state *r, plan_segment *to)
{
    const size_t i = r->turns[0].from == r->segment ? 0 : 1;
    if (i == 1 && r->turns[1].from != r->segment) {
        plan_segment_free(r->turns[0].from);
        plan_segment_free(r->turns[0].to);
        r->turns[0] = r->turns[1];
    } else {
        plan_segment_free(r->turns[i].from);
        plan_segment_free(r->turns[i].to);
    }
    r->turns[i].from = plan_segment_retain(r->segment);
    r->turns[i].to = plan_segment_retain(to);
}

/* ---- the next segment ------------------------------------------------------------------------ */

/* Finds or plans the segment that follows at the end of an iteration, or before the first one.
 * Without a read it does not wait, unless the next segment is new or many steps are in flight. */
static clg_status next_iteration(run_state *r, const bound_buffer *reads, tensor **contents,
                                 plan_segment **out_child)
{
    session_exec *e = r->session->exec;
    const bool has_read = r->segment->n_reads > 0;
    bool again;
    int64_t count;
    if (has_read) CLG_TRY(wait_for_segment(r, reads, contents));
    CLG_TRY(loop_counts_next(&r->counts, e, r->segment, contents[0], r->mode == RUN_ON_ZEROS,
                             &again, &count));
    if (!has_read && again && (*out_child = find_turn(r)) != NULL) {
        r->n_unwaited += r->segment->n_steps + 1;
        return CLG_OK;
    }
    if (!has_read) CLG_TRY(wait_for_segment(r, reads, contents));
    CLG_TRY(exec_next_iteration(e, r->segment, again, count, out_child));
    if (!has_read && again) keep_turn(r, *out_child);
    return CLG_OK;
}

/* Reads what the segment's successor depends on, and finds or plans it. */
static clg_status next_segment(run_state *r, const bound_buffer *reads, plan_segment **out_child)
{
    tensor *contents[OP_MAX_INTS] = {NULL};
    clg_status status;
    if (r->segment->next.base) {
        status = next_iteration(r, reads, contents, out_child);
    } else {
        status = wait_for_segment(r, reads, contents);
        if (status == CLG_OK)
            status = exec_continue(r->session->exec, r->segment, contents, out_child);
    }
    for (size_t i = 0; i < OP_MAX_INTS; i++) tensor_free(contents[i]);
    return status;
}

/* Returns whether a failed preparation ends here without an error: values computed from zeros may
 * be invalid as shapes, so that the following segments cannot be prepared. */
static bool is_end_of_zeros(const run_state *r, clg_status status)
{
    return r->mode == RUN_ON_ZEROS &&
           (status == CLG_ERROR_SHAPE || status == CLG_ERROR_DATA ||
            status == CLG_ERROR_OUT_OF_DEVICE_MEMORY || status == CLG_ERROR_LIMIT);
}

/* Keeps a segment to the end of the run, since the profile refers to its steps. */
static clg_status keep_segment(run_state *r)
{
    CLG_TRY(MEMORY_RESERVE(r->ran, r->ran_capacity, r->n_ran + 1));
    r->ran[r->n_ran++] = plan_segment_retain(r->segment);
    return CLG_OK;
}

static clg_status run_segments(run_state *r)
{
    clg_session *s = r->session;
    r->segment = plan_segment_retain(r->plan->root);
    for (;;) {
        plan_segment *child = NULL;
        bound_buffer reads[OP_MAX_INTS] = {{NULL}};
        CLG_TRY(run_bind_outputs(r, r->segment));
        CLG_TRY(frame_prepare(s->frame, r->plan, r->segment, &r->prepared));
        CLG_TRY(find_reads(r, reads));
        if (s->exec->context->profiling) CLG_TRY(keep_segment(r));
        r->may_have_fault = r->may_have_fault || r->segment->has_fault_args;
        CLG_TRY(frame_enqueue(s->frame, r->prepared));
        if (r->segment->last) return CLG_OK;
        clg_status status = next_segment(r, reads, &child);
        if (is_end_of_zeros(r, status)) return CLG_OK;
        CLG_TRY(status);
        plan_segment_free(r->segment);
        r->segment = child;
        CLG_TRY(cancel_check("the run"));
    }
}

/* ---- profile --------------------------------------------------------------------------------- */

static void fill_profile(const clg_session *s, const plan_step *what, clg_step_profile *out)
{
    const node *n = what->inner                            ? what->inner
                    : what->node < s->exec->graph->n_nodes ? &s->exec->graph->nodes[what->node]
                                                           : NULL;
    static const char *const kinds[] = {"", "clblast", "copy", "fill"};
    out->node = n ? n->name : "";
    out->op_type = n ? n->op_type : "";
    out->impl = what->variant;
    out->problem = what->problem;
    out->impls = what->impls;
    out->kernel =
        what->what->kind == STEP_KERNEL ? what->what->kernel.entry : kinds[what->what->kind];
    out->flops += what->what->flops;
    out->bytes += step_bytes(what->what);
}

/* Stores the profile of the run. The times of a step's commands are added up, since CLBlast
 * launches several kernels. */
static clg_status keep_profile(clg_session *s)
{
    ocl_sample *samples;
    size_t n;
    CLG_TRY(ocl_queue_take_samples(s->frame->queue, &samples, &n));
    memory_free(s->profile);
    s->n_profile = 0;
    s->profile = memory_zalloc(s->frame->n_ran + 1, sizeof *s->profile);
    if (!s->profile) {
        memory_free(samples);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < n; i++)
        if (samples[i].tag < s->frame->n_ran && samples[i].start_ns < first)
            first = samples[i].start_ns;
    for (size_t i = 0; i < n; i++) {
        const ocl_sample *x = &samples[i];
        if (x->tag >= s->frame->n_ran) continue;
        frame_note_time(s->frame, x->tag, x->end_ns - x->start_ns);
        clg_step_profile *out = &s->profile[x->tag];
        if (out->duration_us == 0) {
            fill_profile(s, s->frame->ran[x->tag].what, out);
            out->start_us = (double)(x->start_ns - first) * 1e-3;
        }
        out->duration_us += (double)(x->end_ns - x->start_ns) * 1e-3;
        out->queued_us +=
            x->start_ns > x->queued_ns ? (double)(x->start_ns - x->queued_ns) * 1e-3 : 0;
    }
    s->n_profile = s->frame->n_ran;
    memory_free(samples);
    return frame_learn_times(s->frame);
}

/* Discards time stamps that a failed run left, so that they do not count for this one. */
static void forget_samples(clg_session *s)
{
    ocl_sample *samples;
    size_t n;
    if (!s->exec->context->profiling) return;
    if (ocl_queue_take_samples(s->frame->queue, &samples, &n) == CLG_OK) memory_free(samples);
}

/* ---- whole runs ------------------------------------------------------------------------------ */

/* Enqueues the whole run, except for waiting at the end. */
static clg_status enqueue_all(run_state *r)
{
    clg_session *s = r->session;
    s->frame->n_ran = 0;
    forget_samples(s);
    CLG_TRY(run_find_plan(r));
    if (s->frame->fault_dirty) CLG_TRY(frame_clear_fault(s->frame));
    CLG_TRY(run_bind_inputs(r));
    CLG_TRY(run_segments(r));
    ocl_queue_set_tag(s->frame->queue, UINT32_MAX); /* downloads are not steps */
    if (r->mode == RUN_FOR_REAL) {
        CLG_TRY(run_fetch_outputs(r));
        CLG_TRY(run_remap_inputs(r));
    }
    return read_fault(r);
}

clg_status run_wait(ocl_queue *q, clg_status status)
{
    error_record record;
    if (status == CLG_OK) return ocl_queue_finish(q);
    error_save(status, &record);
    if (ocl_queue_finish(q) == CLG_ERROR_DEVICE_LOST && ocl_context_is_lost(ocl_queue_context(q)))
        return status == CLG_ERROR_DEVICE_LOST ? error_restore(&record) : CLG_ERROR_DEVICE_LOST;
    return error_restore(&record);
}

/* Names the launch for which a cancelled run waited long, since it cannot be interrupted. */
static clg_status explain_wait(const frame *f, uint64_t waited_ns)
{
    char name[NODE_TEXT_BYTES];
    const node_id n = f->longest_node;
    if (waited_ns < LONG_WAIT_NS) return CLG_ERROR_CANCELLED;
    return error_set(CLG_ERROR_CANCELLED,
                     "the run was cancelled; it waited %.1f s for launches in progress, which "
                     "cannot be interrupted: %s",
                     (double)waited_ns * 1e-9,
                     n < f->exec->graph->n_nodes ? node_text(&f->exec->graph->nodes[n], name)
                                                 : "those in the queue");
}

clg_status run_enqueue(run_state *r)
{
    frame *f = r->session->frame;
    f->is_cancellable = r->session->token || r->session->exec->options.limits.max_run_ms;
    f->queued_ns = f->estimated_ns = f->longest_ns = 0.0;
    f->longest_node = NODE_NONE;
    const clg_status status = enqueue_all(r);
    ocl_queue_set_tag(f->queue, UINT32_MAX);
    return status;
}

clg_status run_conclude(run_state *r, clg_status status)
{
    clg_session *s = r->session;
    run_return_inputs(r);
    if (status == CLG_OK) status = check_fault(r);
    s->frame->fault_dirty = status != CLG_OK || r->fault[0] != 0;
    if (status == CLG_OK && s->exec->context->profiling) status = keep_profile(s);
    if (status == CLG_OK && r->mode == RUN_FOR_REAL) status = run_publish_outputs(r);
    return status;
}

static clg_status run_all(run_state *r)
{
    clg_session *s = r->session;
    clg_status status = run_enqueue(r);
    const uint64_t since_ns = time_now_ns();
    status = run_wait(s->frame->queue, status);
    if (status == CLG_OK && s->exec->options.limits.max_run_ms) status = cancel_check("the run");
    if (status == CLG_ERROR_CANCELLED) status = explain_wait(s->frame, time_now_ns() - since_ns);
    if (status == CLG_OK && r->n_unwaited == 0) frame_finished(s->frame, r->prepared);
    return run_conclude(r, status);
}

clg_status run_begin(clg_session *s, run_mode mode, run_state *out_run)
{
    *out_run = (run_state){.session = s, .mode = mode};
    out_run->facts = memory_zalloc(s->n_inputs + 1, sizeof *out_run->facts);
    out_run->in_place = memory_zalloc(s->n_inputs + 1, sizeof *out_run->in_place);
    out_run->pending = memory_zalloc(s->n_outputs + 1, sizeof *out_run->pending);
    out_run->wholes = memory_zalloc(s->n_outputs + 1, sizeof *out_run->wholes);
    return out_run->facts && out_run->in_place && out_run->pending && out_run->wholes
               ? CLG_OK
               : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Puts back the memory of inputs that a preparation worked on copies of. */
static void put_back(run_state *r)
{
    frame *f = r->session->frame;
    for (size_t i = 0; r->kept && i < r->session->n_inputs; i++) {
        if (!r->kept[i].buffer) continue;
        frame_drop(f, &f->inputs[i]);
        f->inputs[i] = r->kept[i];
        frame_touch(f, &f->inputs[i]);
    }
    memory_free(r->kept);
}

void run_end(run_state *r)
{
    put_back(r);
    for (size_t i = 0; i < r->session->n_inputs; i++) {
        tensor_free(r->session->inputs[i].content);
        r->session->inputs[i].content = NULL;
    }
    for (size_t i = 0; r->pending && i < r->session->n_outputs; i++) tensor_free(r->pending[i]);
    for (size_t i = 0; r->wholes && i < r->session->n_outputs; i++) value_free(r->wholes[i]);
    memory_free(r->wholes);
    for (size_t i = 0; i < r->n_ran; i++) plan_segment_free(r->ran[i]);
    memory_free(r->ran);
    for (size_t i = 0; i < 2; i++) {
        plan_segment_free(r->turns[i].from);
        plan_segment_free(r->turns[i].to);
    }
    loop_counts_deinit(&r->counts);
    plan_segment_free(r->segment);
    plan_free(r->plan);
    arena_deinit(&r->memory);
    memory_free(r->facts);
    memory_free(r->in_place);
    memory_free(r->pending);
}

static clg_status try_run(clg_session *s, run_mode mode)
{
    run_state r;
    clg_status status = run_begin(s, mode, &r);
    if (status == CLG_OK) status = run_all(&r);
    run_end(&r);
    return status;
}

/* Runs the session. Its outputs are invalid until a run succeeds. If the driver's compiler crashed
 * on a kernel, plans again without it; the loop terminates because each retry excludes at least one
 * more kernel. */
static clg_status run_repeatedly(clg_session *s, run_mode mode)
{
    ocl_context *ocl = s->exec->context->ocl;
    for (size_t i = 0; i < s->n_outputs; i++) s->outputs[i].valid = false;
    size_t n_refusals = 0; /* 0, to retry also if the kernel was refused before this run */
    clg_status status = try_run(s, mode);
    while (status == CLG_ERROR_KERNEL_BUILD && ocl_n_refusals(ocl) > n_refusals) {
        n_refusals = ocl_n_refusals(ocl);
        exec_forget_plans(s->exec);
        status = try_run(s, mode);
    }
    if (status == CLG_OK && mode == RUN_ON_ZEROS) {
        ocl_queue_prepared(s->frame->queue);
        ocl_programs_save(ocl);
    }
    if (status == CLG_OK && mode == RUN_FOR_REAL) {
        ocl_queue_run_ended(s->frame->queue);
        ocl_programs_save_when_settled(ocl);
        ocl_tiers_go_on(ocl);
    }
    return status;
}

/* Runs within the limits of the session's options. */
static clg_status run_in_mode(clg_session *s, run_mode mode)
{
    clg_status status;
    limits_scope scope;
    limits_enter(&scope, &s->exec->options.limits, s->exec->budget,
                 mode == RUN_FOR_REAL ? LIMIT_RUN : LIMIT_COMPILE);
    CANCEL_WITHIN(status, s->token, &s->cancel, run_repeatedly(s, mode));
    return limits_leave(&scope, status);
}

clg_status session_run_refreshed(clg_session *s)
{
    CLG_TRY(ocl_context_require(s->exec->context->ocl));
    return run_in_mode(s, RUN_FOR_REAL);
}

clg_status session_run(clg_session *s)
{
    if (s->multi) return s->several->run(s);
    CLG_TRY(session_refresh(s));
    return run_in_mode(s, RUN_FOR_REAL);
}

static clg_status make_plan_for_zeros(clg_session *s, bool is_dry, plan **out_plan)
{
    run_state r;
    clg_status status = run_begin(s, RUN_ON_ZEROS, &r);
    r.is_dry = is_dry;
    if (status == CLG_OK) status = run_find_plan(&r);
    if (status == CLG_OK) *out_plan = plan_retain(r.plan);
    run_end(&r);
    return status;
}

static clg_status plan_for_zeros(clg_session *s, bool is_dry, plan **out_plan)
{
    clg_status status;
    limits_scope scope;
    *out_plan = NULL;
    limits_enter(&scope, &s->exec->options.limits, s->exec->budget, LIMIT_COMPILE);
    CANCEL_WITHIN(status, s->token, &s->cancel, make_plan_for_zeros(s, is_dry, out_plan));
    return limits_leave(&scope, status);
}

clg_status session_plan(clg_session *s, plan **out_plan)
{
    *out_plan = NULL;
    if (!session_has_plans(s)) return session_refuse_several("have one plan");
    return plan_for_zeros(s, false, out_plan);
}

clg_status session_plan_dry(clg_session *s, plan **out_plan)
{
    return plan_for_zeros(s, true, out_plan);
}

/* ---- preparing ------------------------------------------------------------------------------- */

/* A preparation with its caller's progress callback. */
typedef struct preparation {
    clg_session *session;
    clg_progress_callback progress; /* may be NULL */
    void *user;
} preparation;

/* Implements clg_progress_callback: also stops when the session was cancelled. */
static bool may_go_on(void *user, const char *what, size_t done, size_t total)
{
    const preparation *p = user;
    if (cancel_is_requested()) return false;
    return !p->progress || p->progress(p->user, what, done, total);
}

static clg_status build_programs(preparation *w, const plan *p)
{
    const plan_segment *root = p->root;
    size_t n = 0;
    const kernel_ref **refs = memory_zalloc(root->n_steps + 1, sizeof *refs);
    if (!refs) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < root->n_steps; i++)
        if (root->steps[i].what->kind == STEP_KERNEL) refs[n++] = &root->steps[i].what->kernel;
    clg_status status = ocl_programs_build(w->session->exec->context->ocl, refs, n, may_go_on, w);
    memory_free(refs);
    return status;
}

/* Compiles all kernels of the plan's first segment, in this process. */
static clg_status build_ahead(preparation *w)
{
    plan *p;
    clg_status status = plan_for_zeros(w->session, false, &p);
    if (status != CLG_OK) return status;
    status = build_programs(w, p);
    plan_free(p);
    return status;
}

static clg_status prepare(clg_session *s, clg_progress_callback progress, void *user)
{
    preparation w = {s, progress, user};
    clg_status status = ocl_has_helper(s->exec->context->ocl) ? CLG_OK : build_ahead(&w);
    if (status == CLG_OK && !may_go_on(&w, "first run", 0, 1))
        return error_set(CLG_ERROR_CANCELLED, "the preparation was cancelled");
    if (status == CLG_OK) {
        s->frame->progress = may_go_on;
        s->frame->progress_user = &w;
        status = run_in_mode(s, RUN_ON_ZEROS);
        s->frame->progress = NULL;
    }
    /* Strings are empty in a preparation, which some operators reject as invalid data: no error
     * here. */
    return status == CLG_ERROR_DATA ? CLG_OK : status;
}

clg_status session_prepare(clg_session *s, clg_progress_callback progress, void *user)
{
    if (s->multi) return s->several->prepare(s, progress, user);
    clg_status status;
    limits_scope scope;
    limits_enter(&scope, &s->exec->options.limits, s->exec->budget, LIMIT_COMPILE);
    CANCEL_WITHIN(status, s->token, &s->cancel, prepare(s, progress, user));
    return limits_leave(&scope, status);
}
