/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates parameters, states and statistics: in the queue of the gradients, before the host knows
 * the loss, so that the device goes on while the host reads the loss and prepares the next step; or
 * when the host knows it. The kernel that updates changes nothing where the loss is not finite or a
 * kernel reported a fault (decision 92).
 */
#include "train/trainer.h"

static const shape one = {.rank = 1, .dims = {1}};

/* The inputs by which an update depends on the loss: those of the parameters, and of the
 * statistics. */
static const char *const losses[] = {"loss", "statistics_loss"};
static const char *const faults[] = {"fault", "statistics_fault"};

static size_t n_dependents(const clg_trainer *t) { return t->statistics.n > 0 ? 2 : 1; }

/* Sets an input of the updates' session, which was entered. */
static clg_status give(clg_trainer *t, const char *name, clg_value *v)
{
    size_t index;
    CLG_TRY(session_find_input(t->updates, name, &index));
    return session_set_input(t->updates, index, v);
}

/* Gives the numbers of the step in progress. They are kept until nothing in flight reads them. */
static clg_status give_numbers(clg_trainer *t)
{
    double numbers[OPTIMIZER_N_NUMBERS];
    const shape dims = {.rank = 1, .dims = {OPTIMIZER_N_NUMBERS}};
    tensor *content;
    clg_value *v;
    optimizer_numbers(&t->update.options, schedule_rate(&t->schedule, t->n_steps),
                      t->n_steps - t->n_skipped, t->n_batches, numbers);
    CLG_TRY(tensor_create(t->parameters.dtype, &dims, &content));
    for (size_t i = 0; i < OPTIMIZER_N_NUMBERS; i++)
        tensor_set_float(content, (int64_t)i, numbers[i]);
    clg_status status = value_create_host(content, &v);
    tensor_free(content);
    if (status != CLG_OK) return status;
    status = give(t, "numbers", v);
    if (status == CLG_OK)
        t->numbers = v;
    else
        value_free(v);
    return status;
}

/* Gives 0 in place of the loss or the fault, in an update whose loss the host knows. */
static clg_status give_zero(clg_trainer *t, const char *name)
{
    size_t index;
    tensor *content;
    clg_value *v;
    CLG_TRY(session_find_input(t->updates, name, &index));
    CLG_TRY(tensor_create(session_input_port(t->updates, index)->dtype, &one, &content));
    clg_status status = value_create_host(content, &v);
    tensor_free(content);
    if (status != CLG_OK) return status;
    status = session_set_input(t->updates, index, v);
    value_free(v);
    return status;
}

/* ---- when the loss is known ------------------------------------------------------------------ */

static clg_status update_entered(clg_trainer *t, double *out_norm)
{
    clg_value *norm;
    const size_t n_states = optimizer_n_states(&t->update.options);
    value_free(t->numbers);
    t->numbers = NULL;
    CLG_TRY(give_numbers(t));
    for (size_t i = 0; i < n_dependents(t) && t->update.clip_norm == 0; i++) {
        CLG_TRY(give_zero(t, losses[i]));
        CLG_TRY(give_zero(t, faults[i]));
    }
    CLG_TRY(session_run(t->updates));
    t->has_run_updates = true;
    if (t->update.clip_norm == 0) return CLG_OK;
    CLG_TRY(session_output_host(t->updates, 1 + n_states, &norm));
    *out_norm = tensor_get_float(norm->host, 0);
    value_free(norm);
    return CLG_OK;
}

clg_status trainer_update(clg_trainer *t, double *out_norm)
{
    CLG_TRY(session_enter(t->updates));
    const clg_status status = update_entered(t, out_norm);
    session_leave(t->updates);
    return status;
}

/* ---- with the gradients ---------------------------------------------------------------------- */

/* Sets *out to whether the update may be enqueued before the loss is known: nothing that it gives
 * is needed in this step, no session of the application reads the parameters meanwhile, and it
 * builds nothing, for which it would have to run alone. */
static clg_status may_follow(clg_trainer *t, bool *out)
{
    clg_status status;
    *out = false;
    if (t->update.clip_norm > 0 || t->n_batches > 1 || t->is_shared || !t->watch.is_done ||
        !t->has_run_updates || t->gradients->exec->options.limits.max_run_ms != 0)
        return CLG_OK;
    CLG_TRY(session_refresh(t->updates));
    CANCEL_WITHIN(status, &t->cancel, NULL, session_plan_run(t->updates, out));
    return status;
}

/* Gives the loss and the fault of the run in flight, where the device computes them. */
static clg_status give_loss(clg_trainer *t, const enqueued_run *gradients, bool *out_is_given)
{
    clg_value *loss, *fault = NULL;
    CLG_TRY(session_wrap_output(gradients, t->parameters.n, &one, &loss));
    clg_status status = session_wrap_fault(gradients, &one, &fault);
    for (size_t i = 0; i < n_dependents(t) && status == CLG_OK && loss; i++) {
        status = give(t, losses[i], loss);
        if (status == CLG_OK) status = give(t, faults[i], fault);
    }
    *out_is_given = loss != NULL;
    value_free(loss);
    value_free(fault);
    return status;
}

/* Enqueues the update after the gradients in flight. */
static clg_status enqueue_update(clg_trainer *t, const enqueued_run *gradients)
{
    bool is_given;
    enqueued_run *run;
    CLG_TRY(give_loss(t, gradients, &is_given));
    if (!is_given) return CLG_OK;
    CLG_TRY(give_numbers(t));
    CLG_TRY(session_enqueue(t->updates, t->gradients, &run));
    t->has_updated = t->is_updating = true;
    return run ? session_let_run(run) : CLG_OK;
}

/* Computes the gradients, with the update after them. A failure to enqueue the update does not fail
 * the step: it is run when the loss is known. */
static clg_status compute_and_update(clg_trainer *t)
{
    enqueued_run *run;
    clg_status status;
    CANCEL_WITHIN(status, &t->cancel, NULL, session_enqueue(t->gradients, t->gradients, &run));
    if (status != CLG_OK || !run) return status;
    clg_value *last = t->numbers;
    t->numbers = NULL;
    const clg_status enqueued = enqueue_update(t, run);
    status = session_conclude(run, t->has_updated);
    value_free(last);
    return status == CLG_OK && t->has_updated ? enqueued : status;
}

clg_status trainer_run_gradients(clg_trainer *t)
{
    bool follows;
    clg_status status;
    t->has_updated = false;
    CLG_TRY(may_follow(t, &follows));
    if (follows) return compute_and_update(t);
    CANCEL_WITHIN(status, &t->cancel, NULL, session_run_refreshed(t->gradients));
    return status;
}

clg_status trainer_settle(clg_trainer *t)
{
    if (!t->is_updating) return CLG_OK;
    t->is_updating = false;
    const clg_status status = session_finish(t->gradients);
    value_free(t->numbers);
    t->numbers = NULL;
    return status;
}
