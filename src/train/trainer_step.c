/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a training, and what is read of a trainer.
 */
#include "base/log.h"
#include "train/diagnosis.h"

#include <math.h>
#include <string.h>

clg_status trainer_enter(clg_trainer *t)
{
    CLG_TRY(fork_check());
    if (atomic_exchange(&t->busy, true))
        return error_set(CLG_ERROR_BUSY, "the trainer is busy with another call");
    cancel_reset(&t->cancel);
    return CLG_OK;
}

void trainer_leave(clg_trainer *t) { atomic_store(&t->busy, false); }

static bool has_input(const clg_session *s, const char *name)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (strcmp(session_input_port(s, i)->name, name) == 0) return true;
    return false;
}

clg_status trainer_set_input(clg_trainer *t, const char *name, clg_value *value)
{
    char shown[NAME_TEXT_BYTES];
    if (parameters_get(&t->parameters, name) || parameters_get(&t->statistics, name))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "'%s' is a parameter, not an input",
                         name_text(name, shown));
    /* A form may not read an input, such as training_mode. */
    const bool trains = has_input(t->gradients, name);
    if (trains || !has_input(t->evaluation, name)) CLG_TRY(trainer_give(t->gradients, name, value));
    return has_input(t->evaluation, name) ? trainer_give(t->evaluation, name, value) : CLG_OK;
}

/* Reads the numbers that are n outputs, from `index` on, of a session that has run. */
static clg_status read_numbers(clg_session *s, size_t index, size_t n, double *out)
{
    clg_value *v;
    for (size_t i = 0; i < n; i++) {
        CLG_TRY(session_output_host(s, index + i, &v));
        out[i] = tensor_get_float(v->host, 0);
        value_free(v);
    }
    return CLG_OK;
}

static clg_status run(clg_session *s, size_t index, size_t n, double *out)
{
    CLG_TRY(session_enter(s));
    clg_status status = session_run(s);
    if (status == CLG_OK) status = read_numbers(s, index, n, out);
    session_leave(s);
    return status;
}

/* Reads the loss, and metrics if there are any, which are the outputs from `index` on. */
static clg_status read_loss(clg_session *s, size_t index, bool has_metrics, clg_measures *out)
{
    double numbers[1 + N_METRICS] = {0};
    CLG_TRY(read_numbers(s, index, has_metrics ? 1 + N_METRICS : 1, numbers));
    out->loss = numbers[0];
    out->n_right = (uint64_t)numbers[1 + METRIC_RIGHT];
    out->n_counted = (uint64_t)numbers[1 + METRIC_COUNTED];
    return CLG_OK;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static clg_status bind_outputs(clg_session *s, size_t first, size_t n, clg_value *const *to)
{
    for (size_t i = 0; i < n; i++) CLG_TRY(session_bind_output(s, first + i, to[i]));
    return CLG_OK;
}

/* Makes the batch read the statistics that the one before it gave. */
static clg_status chain_statistics(clg_trainer *t)
{
    clg_value *const *now = t->views[t->n_done == 0       ? TRAINER_STATISTICS
                                     : t->n_done % 2 == 1 ? TRAINER_NEW
                                                          : TRAINER_NEWER];
    for (size_t i = 0; i < t->statistics.n; i++)
        CLG_TRY(session_set_input(t->gradients, t->statistic_inputs[i], now[i]));
    return bind_outputs(t->gradients, trainer_first_statistic(t), t->statistics.n,
                        t->views[t->n_done % 2 == 0 ? TRAINER_NEW : TRAINER_NEWER]);
}

/* Prepares the session, which was entered, for a batch. */
static clg_status set_batch(clg_trainer *t)
{
    clg_session *s = t->gradients;
    if (t->n_batches > 1 && t->n_done <= 1)
        CLG_TRY(bind_outputs(s, 0, t->parameters.n,
                             t->views[t->n_done == 0 ? TRAINER_GRADIENTS : TRAINER_BATCH]));
    if (t->n_batches > 1) CLG_TRY(chain_statistics(t));
    trainer_seed(t, s);
    return session_refresh(s);
}

static clg_status compute_entered(clg_trainer *t, clg_measures *out)
{
    if (t->is_updating && session_is_stale(t->gradients)) CLG_TRY(trainer_settle(t));
    CLG_TRY(set_batch(t));
    CLG_TRY(trainer_run_gradients(t));
    return read_loss(t->gradients, t->parameters.n, t->has_step_metrics, out);
}

static clg_status compute_batch(clg_trainer *t, clg_measures *out)
{
    CLG_TRY(session_enter(t->updates));
    clg_status status = session_enter(t->gradients);
    if (status == CLG_OK) {
        status = compute_entered(t, out);
        session_leave(t->gradients);
    }
    session_leave(t->updates);
    return status;
}

/* Explains a loss that is not finite. */
static clg_status refuse_loss(clg_trainer *t, double loss)
{
    clg_status status;
    CLG_TRY(trainer_settle(t));
    CANCEL_WITHIN(status, &t->cancel, NULL, diagnosis_of_loss(t, loss));
    return status;
}

/* Adds the gradients of a batch to those of the step. */
static clg_status add_batch(clg_trainer *t, const clg_measures *m)
{
    if (!isfinite(m->loss) && t->on_nan == CLG_ON_NAN_STOP) return refuse_loss(t, m->loss);
    if (t->n_done == 0) {
        t->has_nan = false;
        t->loss_sum = 0;
        t->n_right = t->n_counted = 0;
    }
    t->has_nan = t->has_nan || !isfinite(m->loss);
    if (t->n_done > 0 && !t->has_nan) CLG_TRY(run(t->sums, 0, 0, NULL));
    t->loss_sum += m->loss;
    t->n_right += m->n_right;
    t->n_counted += m->n_counted;
    t->n_done++;
    return CLG_OK;
}

/* Updates the parameters, unless that is in flight; the kernel does not where the norm of the
 * gradients is not finite. */
static clg_status update(clg_trainer *t, clg_train_stats *stats)
{
    if (t->has_updated) return CLG_OK;
    CLG_TRY(watch_step(&t->watch, &t->parameters, t->views[TRAINER_GRADIENTS]));
    CLG_TRY(trainer_update(t, &stats->gradient_norm));
    if (t->update.clip_norm == 0 || isfinite(stats->gradient_norm)) return CLG_OK;
    t->has_nan = true;
    return t->on_nan == CLG_ON_NAN_STOP ? diagnosis_of_norm(t, stats->gradient_norm) : CLG_OK;
}

clg_status trainer_enter_settled(clg_trainer *t)
{
    CLG_TRY(trainer_enter(t));
    const clg_status status = trainer_settle(t);
    if (status != CLG_OK) trainer_leave(t);
    return status;
}

static clg_status end_step(clg_trainer *t, clg_train_stats *stats)
{
    stats->rate = schedule_rate(&t->schedule, t->n_steps);
    stats->gradient_norm = (double)NAN;
    if (!t->has_nan) CLG_TRY(update(t, stats));
    stats->loss = t->loss_sum / (double)t->n_batches;
    stats->n_right = t->n_right;
    stats->n_counted = t->n_counted;
    t->n_steps++;
    if (!t->has_nan) return CLG_OK;
    t->n_skipped++;
    log_write(CLG_LOG_WARNING, "step %llu is skipped: %s is not finite",
              (unsigned long long)t->n_steps,
              isfinite(stats->loss) ? "the norm of the gradients" : "the loss");
    return CLG_OK;
}

clg_status trainer_step(clg_trainer *t, clg_train_stats *out_stats)
{
    clg_measures m = CLG_MEASURES_INIT;
    clg_status status = compute_batch(t, &m);
    if (status == CLG_OK) status = add_batch(t, &m);
    if (status == CLG_ERROR_CANCELLED) return status; /* the batches before it stay */
    const bool is_last = status != CLG_OK || t->n_done == t->n_batches;
    if (status == CLG_OK && is_last) status = end_step(t, out_stats);
    if (is_last) t->n_done = 0;
    out_stats->step = t->n_steps;
    out_stats->skipped = t->n_skipped;
    return status;
}

void trainer_cancel(clg_trainer *t) { cancel_trigger(&t->cancel); }

static clg_status evaluate(clg_trainer *t, clg_measures *out)
{
    CLG_TRY(session_run(t->evaluation));
    return read_loss(t->evaluation, 0, t->has_metrics, out);
}

clg_status trainer_evaluate(clg_trainer *t, clg_measures *out)
{
    clg_status status;
    CLG_TRY(session_enter(t->evaluation));
    CANCEL_WITHIN(status, &t->cancel, NULL, evaluate(t, out));
    session_leave(t->evaluation);
    return status;
}

/* ---- parameters ------------------------------------------------------------------------------ */

clg_status trainer_view(const clg_trainer *t, trainer_tensor which, const char *name,
                        clg_value **out_view)
{
    char shown[NAME_TEXT_BYTES];
    const parameter *p = parameters_get(&t->parameters, name);
    if (!p && which == TRAINER_PARAMETERS) {
        which = TRAINER_STATISTICS;
        p = parameters_get(&t->statistics, name);
    }
    if (!p)
        return error_set(CLG_ERROR_NOT_FOUND, "there is no parameter '%s'", name_text(name, shown));
    *out_view = t->views[which][p - trainer_list(t, which)->items];
    return CLG_OK;
}

/* Replaces an initializer by what the parameter or statistic is now. */
static clg_status write_back(const clg_trainer *t, graph *g, trainer_tensor which, size_t i)
{
    const parameter *p = &trainer_list(t, which)->items[i];
    value *v = &g->values[graph_find_value(g, p->name)];
    tensor *now;
    CLG_TRY(value_read_tensor(t->views[which][i], &now));
    tensor_free(v->constant);
    v->constant = now;
    return CLG_OK;
}

clg_status trainer_model(const clg_trainer *t, clg_model **out_model)
{
    graph *g;
    CLG_TRY(graph_clone(t->model->graph, &g));
    clg_status status = CLG_OK;
    for (size_t i = 0; i < t->parameters.n && status == CLG_OK; i++)
        status = write_back(t, g, TRAINER_PARAMETERS, i);
    for (size_t i = 0; i < t->statistics.n && status == CLG_OK; i++)
        status = write_back(t, g, TRAINER_STATISTICS, i);
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    return model_create(g, false, out_model);
}
