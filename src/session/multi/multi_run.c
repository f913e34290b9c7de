/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs and prepares a session over several devices: cuts the inputs into pieces, one for each
 * device, and runs them at the same time. The rows of a device that is lost meanwhile are cut again
 * for the devices that are left.
 */
#include "session/multi/multi.h"

#include "base/clock.h"
#include "base/log.h"
#include "ops/batch/batch_axes.h"

#include <string.h>

/* An input without a batch of this size or more is copied to each device once, not for each run.
 * Smaller ones stay where planning can read them. */
#define LARGE_CONSTANT_BYTES 4096
#define N_TRIALS 2 /* runs on zeros that measure the speeds in a preparation */

/* The pieces of a run. */
typedef struct multi_plan {
    clg_session *front;
    multi_session *m;
    multi_piece **pieces; /* references, in the order of the rows when the run is complete */
    size_t n_pieces, capacity;
} multi_plan;

/* ---- inputs ---------------------------------------------------------------------------------- */

static const char *input_name(const clg_session *s, size_t i)
{
    return session_input_port(s, i)->name;
}

/* Sets *out_rows to the number of rows, which all inputs with a batch must have. */
static clg_status count_rows(const clg_session *s, int64_t *out_rows)
{
    const multi_session *m = s->multi;
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const clg_value *v = s->inputs[i].value;
        if (m->input_axes[i] == BATCH_NONE) continue;
        if (!v) return error_set(CLG_ERROR_NOT_FOUND, "input '%s' is not set", input_name(s, i));
        if (v->dims.rank < 1)
            return error_set(CLG_ERROR_SHAPE, "input '%s' has no first dimension",
                             input_name(s, i));
        if (first == SIZE_MAX) {
            first = i;
            *out_rows = v->dims.dims[0];
        }
        if (v->dims.dims[0] != *out_rows)
            return error_set(CLG_ERROR_SHAPE,
                             "inputs '%s' and '%s' have %lld and %lld rows, which are to be "
                             "divided among the devices",
                             input_name(s, first), input_name(s, i), (long long)*out_rows,
                             (long long)v->dims.dims[0]);
    }
    if (*out_rows > BATCH_MAX_ROWS)
        return error_set(CLG_ERROR_SHAPE,
                         "%lld rows are more than the %lld that are divided among "
                         "devices",
                         (long long)*out_rows, (long long)BATCH_MAX_ROWS);
    return CLG_OK;
}

/* Returns whether the shapes, but for the number of rows, are those of the last run; keeps them. */
static bool compare_shapes(clg_session *s)
{
    multi_session *m = s->multi;
    bool is_alike = m->has_run;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const clg_value *v = s->inputs[i].value;
        shape dims = v && v->kind == CLG_VALUE_TENSOR ? v->dims : shape_unknown();
        if (m->input_axes[i] != BATCH_NONE) dims.dims[0] = 0;
        is_alike = is_alike && (dims.rank == RANK_UNKNOWN ? m->input_dims[i].rank == RANK_UNKNOWN
                                                          : shape_equal(&dims, &m->input_dims[i]));
        m->input_dims[i] = dims;
    }
    return is_alike;
}

/* Returns whether an input without a batch is copied to the devices. Data that is lent to a call is
 * not: the next call has other data. */
static bool is_resident(const session_input *in)
{
    const clg_value *v = in->value;
    return v != &in->loan.value && v->kind == CLG_VALUE_TENSOR && v->dtype != CLG_STRING &&
           v->host && v->size_bytes >= LARGE_CONSTANT_BYTES;
}

/* Sets *out_row_bytes to the bytes of a row of input i; refuses what cannot be divided. */
static clg_status measure_rows(const clg_session *s, size_t i, size_t *out_row_bytes)
{
    const clg_value *v = s->inputs[i].value;
    const int64_t n_rows = v->dims.dims[0];
    if (!v->host || v->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "input '%s': strings and device memory are not divided among devices",
                         input_name(s, i));
    const bool has_two_in_a_byte = dtype_size(v->dtype) == 0;
    if (has_two_in_a_byte && n_rows > 0 && v->n_elements % (2 * n_rows) != 0)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "input '%s': rows of %s that are not whole bytes cannot be divided",
                         input_name(s, i), dtype_name(v->dtype));
    *out_row_bytes = n_rows > 0 ? v->size_bytes / (size_t)n_rows : 0;
    return CLG_OK;
}

/* Adds the piece's rows of input i: in the caller's memory, or in a copy if the device may hang and
 * read them later than the caller keeps them. */
static clg_status add_rows(const clg_session *s, multi_piece *piece, size_t i, size_t at)
{
    const clg_value *v = s->inputs[i].value;
    clg_call_input *in = &piece->inputs[at];
    size_t row_bytes;
    CLG_TRY(measure_rows(s, i, &row_bytes));
    in->dtype = v->dtype;
    in->rank = (size_t)v->dims.rank;
    memcpy(piece->dims[at], v->dims.dims, in->rank * sizeof(int64_t));
    piece->dims[at][0] = piece->n_rows;
    in->dims = piece->dims[at];
    in->size_bytes = row_bytes * (size_t)piece->n_rows;
    in->data = (const char *)v->host->data + row_bytes * (size_t)piece->first_row;
    if (multi_of(s)->hang_ms == 0 || in->size_bytes == 0) return CLG_OK;
    shape dims;
    CLG_TRY(shape_make(in->rank, in->dims, &dims));
    CLG_TRY(
        tensor_from_bytes(in->dtype, &dims, in->data, in->size_bytes, NULL, &piece->copies[at]));
    in->data = piece->copies[at]->data;
    return CLG_OK;
}

/* Returns the graph whose names the piece uses: the model's, which the part's session keeps through
 * a rebuild after a loss, even if the piece hangs for longer than the front lives. */
static const graph *names_of(const multi_session *m, const multi_piece *piece)
{
    return m->parts[piece->part].session->exec->model->graph;
}

static clg_status fill_inputs(const clg_session *s, multi_piece *piece)
{
    const multi_session *m = s->multi;
    const graph *g = names_of(m, piece);
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (!s->inputs[i].value) continue; /* the part's run says so */
        const size_t at = piece->n_inputs++;
        clg_value *v = s->inputs[i].value;
        piece->inputs[at].name = g->values[g->inputs[i]].name;
        piece->ports[at] = i;
        piece->values[at] = value_retain(v);
        if (m->input_axes[i] != BATCH_NONE)
            CLG_TRY(add_rows(s, piece, i, at));
        else if (is_resident(&s->inputs[i]))
            piece->residents[at] = s->inputs[i].n_sets;
        else
            piece->inputs[at].value = v;
    }
    return CLG_OK;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static clg_status fill_piece(const clg_session *s, multi_piece *piece)
{
    const multi_session *m = s->multi;
    const graph *g = names_of(m, piece);
    piece->inputs = memory_zalloc(m->n_inputs + 1, sizeof *piece->inputs);
    piece->dims = memory_zalloc(m->n_inputs + 1, sizeof *piece->dims);
    piece->values = memory_zalloc(m->n_inputs + 1, sizeof *piece->values);
    piece->copies = memory_zalloc(m->n_inputs + 1, sizeof *piece->copies);
    piece->ports = memory_zalloc(m->n_inputs + 1, sizeof *piece->ports);
    piece->residents = memory_zalloc(m->n_inputs + 1, sizeof *piece->residents);
    piece->outputs = memory_zalloc(m->n_outputs + 1, sizeof *piece->outputs);
    if (!piece->inputs || !piece->dims || !piece->values || !piece->copies || !piece->ports ||
        !piece->residents || !piece->outputs)
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    piece->n_outputs = m->n_outputs;
    for (size_t i = 0; i < m->n_outputs; i++) {
        const multi_output *o = &m->outputs[i];
        clg_call_output *out = &piece->outputs[i];
        out->name = g->values[g->outputs[i]].name;
        if (!o->whole || o->row_bytes == 0) continue;
        out->data = (char *)o->whole + o->row_bytes * (size_t)piece->first_row;
        out->capacity_bytes = o->row_bytes * (size_t)piece->n_rows;
    }
    return fill_inputs(s, piece);
}

/* Adds an empty piece to the plan. */
static clg_status make_piece(multi_plan *p, size_t part, int64_t first_row, int64_t n_rows,
                             multi_piece **out_piece)
{
    CLG_TRY(MEMORY_RESERVE(p->pieces, p->capacity, p->n_pieces + 1));
    multi_piece *piece = memory_zalloc(1, sizeof *piece);
    if (!piece) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&piece->refs);
    piece->part = part;
    piece->first_row = first_row;
    piece->n_rows = n_rows;
    piece->result.status = CLG_ERROR_DEVICE_LOST; /* if it hangs */
    p->pieces[p->n_pieces++] = *out_piece = piece;
    return CLG_OK;
}

/* Adds a piece of the rows to the plan, and starts it. */
static clg_status add_piece(multi_plan *p, size_t part, int64_t first_row, int64_t n_rows)
{
    multi_piece *piece;
    CLG_TRY(make_piece(p, part, first_row, n_rows, &piece));
    CLG_TRY(fill_piece(p->front, piece));
    return multi_start(p->m, piece);
}

/* Adds a run on zeros, for which the part was prepared, and starts it. */
static clg_status add_trial(multi_plan *p, size_t part)
{
    multi_piece *piece;
    CLG_TRY(make_piece(p, part, 0, p->m->split[part], &piece));
    piece->is_trial = true;
    return multi_start(p->m, piece);
}

/* Starts the pieces of some rows, divided as m->next_split says. */
static clg_status start_pieces(multi_plan *p, int64_t first_row, const int64_t *rows)
{
    for (size_t i = 0; i < p->m->n_parts; i++) {
        if (rows[i] == 0) continue;
        CLG_TRY(add_piece(p, i, first_row, rows[i]));
        first_row += rows[i];
    }
    return CLG_OK;
}

static void drop_piece(multi_plan *p, size_t at)
{
    multi_piece_free(p->pieces[at]);
    p->pieces[at] = p->pieces[--p->n_pieces];
}

static void free_pieces(multi_plan *p)
{
    while (p->n_pieces) drop_piece(p, p->n_pieces - 1);
    memory_free(p->pieces);
}

/* Returns whether a call on the part failed since its device is lost. */
static bool is_loss(const multi_part *part, clg_status status)
{
    return part->is_lost || (status == CLG_ERROR_DEVICE_LOST &&
                             ocl_context_is_lost(part->session->exec->context->ocl));
}

/* Returns the first device that is left; n_parts for none. */
static size_t first_left(const multi_session *m)
{
    size_t i = 0;
    while (i < m->n_parts && m->parts[i].is_lost) i++;
    return i;
}

/* Marks a device as lost, with a warning unless there was one when it hung. */
static void lose(multi_part *part)
{
    if (!part->is_lost)
        log_write(CLG_LOG_WARNING,
                  "device %s was lost in a run over several devices: the others compute its rows",
                  part->session->owner->info->selector);
    part->is_lost = true;
}

/* Waits for the pieces; runs those of lost devices again on the others until there is none. Returns
 * the error of the first piece that failed otherwise. */
static clg_status finish_pieces(multi_plan *p)
{
    for (;;) {
        multi_wait(p->m);
        size_t at = 0;
        while (at < p->n_pieces && p->pieces[at]->result.status == CLG_OK) at++;
        if (at == p->n_pieces) return CLG_OK;
        multi_piece *failed = p->pieces[at];
        multi_part *part = &p->m->parts[failed->part];
        if (!is_loss(part, failed->result.status)) {
            const clg_status status = error_restore(&failed->result);
            return error_prefix(status, "device %s", part->session->owner->info->selector);
        }
        lose(part);
        if (first_left(p->m) == p->m->n_parts) return session_refuse_lost();
        const int64_t first_row = failed->first_row, n_rows = failed->n_rows;
        drop_piece(p, at);
        multi_split_again(p->m, n_rows);
        CLG_TRY(start_pieces(p, first_row, p->m->next_split));
    }
}

/* Sorts the pieces by their first row; there are few. */
static void sort_pieces(multi_plan *p)
{
    for (size_t i = 1; i < p->n_pieces; i++)
        for (size_t k = i; k > 0 && p->pieces[k]->first_row < p->pieces[k - 1]->first_row; k--) {
            multi_piece *swap = p->pieces[k];
            p->pieces[k] = p->pieces[k - 1];
            p->pieces[k - 1] = swap;
        }
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Takes devices that answer again back. Returns DEVICE_LOST if there is none. */
static clg_status find_devices(clg_session *s)
{
    multi_session *m = s->multi;
    mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n_parts; i++) {
        multi_part *part = &m->parts[i];
        if (!part->is_lost || part->has_hung) continue;
        part->is_lost = !session_is_stale(part->session) &&
                        ocl_context_is_lost(part->session->exec->context->ocl);
        if (part->is_lost) continue;
        part->rows_per_s = 0; /* it gets rows at once, as a new device */
        m->split_of = -1;
    }
    mutex_unlock(&m->lock);
    if (first_left(m) == m->n_parts) return session_refuse_lost();
    return session_renew_front(s);
}

static void keep_times(multi_plan *p, double whole_s)
{
    for (size_t i = 0; i < p->m->n_parts; i++) {
        multi_part *part = &p->m->parts[i];
        part->rows = 0;
        part->busy_s = 0;
        part->whole_s = whole_s;
    }
    for (size_t i = 0; i < p->n_pieces; i++) {
        multi_part *part = &p->m->parts[p->pieces[i]->part];
        part->rows += (uint64_t)p->pieces[i]->n_rows;
        part->busy_s += p->pieces[i]->seconds;
    }
}

static clg_status run_pieces(multi_plan *p, int64_t n_rows)
{
    multi_session *m = p->m;
    const uint64_t start_ns = time_now_ns();
    clg_status status =
        n_rows > 0 ? start_pieces(p, 0, m->split) : add_piece(p, first_left(m), 0, 0);
    if (status != CLG_OK) {
        multi_cancel(m); /* what was started uses the caller's memory */
        multi_wait(m);
        return status;
    }
    status = finish_pieces(p);
    if (status != CLG_OK) {
        multi_cancel(m);
        multi_wait(m);
        return status;
    }
    sort_pieces(p);
    keep_times(p, (double)(time_now_ns() - start_ns) * 1e-9);
    multi_learn(m);
    return CLG_OK;
}

clg_status multi_run(clg_session *s)
{
    multi_session *m = s->multi;
    multi_plan p = {.front = s, .m = m};
    int64_t n_rows = 0;
    for (size_t i = 0; i < s->n_outputs; i++) s->outputs[i].valid = false;
    CLG_TRY(count_rows(s, &n_rows));
    CLG_TRY(session_check_bound(s));
    CLG_TRY(find_devices(s));
    const bool is_alike = compare_shapes(s);
    if (!is_alike) multi_forget_sizes(m);
    multi_split(m, n_rows);
    clg_status status = multi_place_outputs(s, n_rows, is_alike);
    if (status == CLG_OK) status = run_pieces(&p, n_rows);
    if (status == CLG_OK) status = multi_gather(s, p.pieces, p.n_pieces);
    m->has_run = status == CLG_OK;
    m->n_rows = n_rows;
    free_pieces(&p);
    multi_forget_places(m);
    return status;
}

/* ---- preparing ------------------------------------------------------------------------------- */

/* Sets *out_dims to the shape of input i that is set or declared, free dimensions 1. */
static void shape_to_prepare(const clg_session *s, size_t i, shape *out_dims)
{
    const session_input *in = &s->inputs[i];
    *out_dims = in->value && in->value->kind == CLG_VALUE_TENSOR ? in->value->dims
                : in->hint.rank != RANK_UNKNOWN                  ? in->hint
                                                                 : session_input_port(s, i)->dims;
    for (int d = 0; d < out_dims->rank; d++)
        if (out_dims->dims[d] < 0) out_dims->dims[d] = 1;
}

/* Returns the number of rows to prepare for: one for each device if nothing says more. */
static int64_t rows_to_prepare(const clg_session *s)
{
    const multi_session *m = s->multi;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const session_input *in = &s->inputs[i];
        const bool is_known = in->hint.rank != RANK_UNKNOWN || in->value;
        shape dims;
        if (m->input_axes[i] == BATCH_NONE || !is_known) continue;
        shape_to_prepare(s, i, &dims);
        if (dims.rank > 0) return dims.dims[0];
    }
    return (int64_t)m->n_parts;
}

/* Sets the shapes of the part's rows. */
static clg_status set_shapes(const clg_session *s, multi_part *part, int64_t n_rows)
{
    const multi_session *m = s->multi;
    clg_session *to = part->session;
    CLG_TRY(session_enter(to));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < m->n_inputs && status == CLG_OK; i++) {
        shape dims;
        if (session_input_port(s, i)->kind != CLG_VALUE_TENSOR) continue;
        shape_to_prepare(s, i, &dims);
        if (dims.rank == RANK_UNKNOWN) continue;
        if (m->input_axes[i] != BATCH_NONE) dims.dims[0] = n_rows;
        status = session_set_shape(to, i, &dims);
    }
    session_leave(to);
    return status;
}

/* Prepares one part on this thread, unless it has prepared for so many rows. */
static clg_status prepare_part(const clg_session *s, multi_part *part, int64_t n_rows,
                               clg_progress_callback progress, void *user)
{
    clg_session *to = part->session;
    if (n_rows == 0 || part->warm_rows == n_rows) return CLG_OK;
    CLG_TRY(set_shapes(s, part, n_rows));
    CLG_TRY(session_enter(to));
    clg_status status = cancel_is_triggered(&s->cancel)
                            ? error_set(CLG_ERROR_CANCELLED, "the preparation was cancelled")
                            : session_refresh(to);
    if (status == CLG_OK) status = session_prepare(to, progress, user);
    session_leave(to);
    if (status != CLG_OK) return error_prefix(status, "device %s", to->owner->info->selector);
    part->warm_rows = n_rows;
    return CLG_OK;
}

/* Prepares the parts for their shares of the rows; those of a lost device go to the others. */
static clg_status prepare_parts(clg_session *s, int64_t n_rows, clg_progress_callback progress,
                                void *user)
{
    multi_session *m = s->multi;
    size_t i = 0;
    multi_split(m, n_rows);
    while (i < m->n_parts) {
        multi_part *part = &m->parts[i];
        const clg_status status = prepare_part(s, part, m->split[i], progress, user);
        i++;
        if (status == CLG_OK) continue;
        if (!is_loss(part, status)) return status;
        lose(part);
        if (first_left(m) == m->n_parts) return session_refuse_lost();
        multi_split(m, n_rows);
        i = 0; /* parts that are ready for their new shares do nothing */
    }
    return CLG_OK;
}

/* Runs all parts on zeros at the same time, and learns their speeds. */
static clg_status try_speeds(clg_session *s)
{
    multi_plan p = {.front = s, .m = s->multi};
    clg_status status = CLG_OK;
    for (size_t i = 0; i < p.m->n_parts && status == CLG_OK; i++)
        if (p.m->split[i]) status = add_trial(&p, i);
    multi_wait(p.m);
    for (size_t i = 0; i < p.n_pieces && status == CLG_OK; i++) {
        multi_part *part = &p.m->parts[p.pieces[i]->part];
        if (is_loss(part, p.pieces[i]->result.status))
            lose(part); /* the next split leaves it out */
        else
            status = error_restore(&p.pieces[i]->result);
    }
    if (status == CLG_OK) {
        keep_times(&p, 0);
        multi_learn(p.m);
    }
    free_pieces(&p);
    return status;
}

clg_status multi_prepare(clg_session *s, clg_progress_callback progress, void *user)
{
    multi_session *m = s->multi;
    CLG_TRY(find_devices(s));
    for (size_t i = 0; i < s->n_outputs; i++) s->outputs[i].valid = false;
    multi_forget_sizes(m);
    const int64_t n_rows = rows_to_prepare(s);
    for (int i = 0; i < N_TRIALS; i++) {
        CLG_TRY(prepare_parts(s, n_rows, progress, user));
        CLG_TRY(try_speeds(s));
    }
    return first_left(m) == m->n_parts ? session_refuse_lost()
                                       : prepare_parts(s, n_rows, progress, user);
}
