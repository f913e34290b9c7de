/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_session_call: a run with the caller's inputs, whose outputs are read into the
 * caller's memory. The arguments are checked completely before anything changes. Data is lent to
 * the run (value_lend), not copied, and a listed input is unset at the end.
 */
#include "session/session.h"

#include <string.h>

/* The arguments of the call. */
typedef struct call_state {
    clg_session *session;
    const clg_call_input *inputs;
    clg_call_output *outputs;
    size_t n_inputs, n_outputs;
} call_state;

/* ---- arguments ------------------------------------------------------------------------------- */

static const char *output_name(const clg_session *s, size_t index)
{
    return s->exec->graph->values[s->exec->graph->outputs[index]].name;
}

static clg_status check_data(clg_session *s, size_t index, const clg_call_input *in)
{
    const char *name = session_input_port(s, index)->name;
    char text[SHAPE_TEXT_BYTES];
    shape dims;
    size_t size_bytes;
    if (!dtype_find(in->dtype))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "input '%s': %d is not a dtype", name,
                         (int)in->dtype);
    const clg_status status = shape_make_known(in->rank, in->dims, &dims);
    if (status != CLG_OK) return error_prefix(status, "input '%s'", name);
    CLG_TRY(session_check_tensor(s, index, in->dtype, &dims));
    if (in->dtype == CLG_STRING)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE,
                         "input '%s' has strings, which are given as a value, not as data", name);
    if (tensor_bytes_of(in->dtype, &dims, &size_bytes) != CLG_OK || size_bytes != in->size_bytes)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "input '%s': %s of shape %s takes %zu bytes, but %zu are given", name,
                         dtype_name(in->dtype), shape_text(&dims, text), size_bytes,
                         in->size_bytes);
    if (size_bytes > 0 && !in->data)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "input '%s': data is NULL", name);
    return CLG_OK;
}

/* Returns whether port i exists and has this name, as where callers list them in the model's
 * order. */
static bool is_named(const clg_session *s, const value_id *ids, size_t n, size_t i,
                     const char *name)
{
    return i < n && strcmp(s->exec->graph->values[ids[i]].name, name) == 0;
}

static clg_status check_input(const call_state *c, size_t i)
{
    clg_session *s = c->session;
    const graph *g = s->exec->graph;
    const clg_call_input *in = &c->inputs[i];
    size_t index = i;
    if (!in->name)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the name of input %zu of the call is NULL",
                         i);
    if (!is_named(s, g->inputs, g->n_inputs, i, in->name))
        CLG_TRY(session_find_input(s, in->name, &index));
    if (s->inputs[index].call)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "input '%s' is listed twice", in->name);
    CLG_TRY(in->value ? session_check_value(s, index, in->value) : check_data(s, index, in));
    s->inputs[index].call = in;
    return CLG_OK;
}

static clg_status check_output(const call_state *c, size_t i)
{
    clg_session *s = c->session;
    const graph *g = s->exec->graph;
    clg_call_output *out = &c->outputs[i];
    size_t index = i;
    if (!out->name)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the name of output %zu of the call is NULL",
                         i);
    if (!is_named(s, g->outputs, g->n_outputs, i, out->name))
        CLG_TRY(session_find_output(s, out->name, &index));
    if (s->outputs[index].call)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "output '%s' is listed twice", out->name);
    if (!out->data && out->capacity_bytes > 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "output '%s': data is NULL, but its capacity is %zu bytes", out->name,
                         out->capacity_bytes);
    s->outputs[index].call = out;
    return CLG_OK;
}

/* Refuses memory for an output that an input of the run, listed or set before, or an earlier output
 * uses: kernels and reads may be concurrent. */
static clg_status check_overlaps(const call_state *c, size_t i)
{
    const clg_call_output *out = &c->outputs[i];
    const char *with = NULL;
    if (out->capacity_bytes == 0) return CLG_OK;
    for (size_t k = 0; k < c->n_inputs && !with; k++) {
        const clg_call_input *in = &c->inputs[k];
        const clg_value *v = in->value;
        if (v ? v->host && session_memory_overlaps(out->data, out->capacity_bytes, v->host->data,
                                                   v->size_bytes)
              : session_memory_overlaps(out->data, out->capacity_bytes, in->data, in->size_bytes))
            with = in->name;
    }
    for (size_t k = 0; k < c->session->n_inputs && !with; k++) {
        const clg_value *v = c->session->inputs[k].value;
        if (v && v->host && !c->session->inputs[k].call &&
            session_memory_overlaps(out->data, out->capacity_bytes, v->host->data, v->size_bytes))
            with = session_input_port(c->session, k)->name;
    }
    for (size_t k = 0; k < i && !with; k++)
        if (session_memory_overlaps(out->data, out->capacity_bytes, c->outputs[k].data,
                                    c->outputs[k].capacity_bytes))
            with = c->outputs[k].name;
    if (!with) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "output '%s' is written to memory that '%s' uses",
                     out->name, with);
}

static clg_status check_all(const call_state *c)
{
    for (size_t i = 0; i < c->n_inputs; i++) CLG_TRY(check_input(c, i));
    for (size_t i = 0; i < c->n_outputs; i++) CLG_TRY(check_output(c, i));
    for (size_t i = 0; i < c->n_outputs; i++) CLG_TRY(check_overlaps(c, i));
    return CLG_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Sets an input to the caller's data, lent; to a copy if it has bools that are neither 0 nor 1. */
static clg_status lend_data(clg_session *s, size_t index, const clg_call_input *in)
{
    session_input *to = &s->inputs[index];
    tensor *clean;
    clg_value *v;
    shape dims;
    CLG_TRY(shape_make(in->rank, in->dims, &dims));
    if (in->dtype != CLG_BOOL || tensor_bools_are_valid(in->data, in->size_bytes)) {
        CLG_TRY(value_lend(&to->loan, in->dtype, &dims, in->data));
        return session_set_input(s, index, &to->loan.value);
    }
    CLG_TRY(tensor_from_bytes(in->dtype, &dims, in->data, in->size_bytes, NULL, &clean));
    clg_status status = value_create_host(clean, &v);
    tensor_free(clean);
    CLG_TRY(status);
    status = session_set_input(s, index, v);
    value_free(v);
    return status;
}

static clg_status set_inputs(clg_session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        const clg_call_input *in = s->inputs[i].call;
        if (!in) continue;
        CLG_TRY(in->value ? session_set_input(s, i, in->value) : lend_data(s, i, in));
    }
    return CLG_OK;
}

/* Unsets the inputs of the call. What a run fed to a linked input stays. */
static void unset_inputs(clg_session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        session_input *in = &s->inputs[i];
        if (!in->call || in->carried) continue;
        value_free(in->value);
        in->value = NULL;
    }
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Leaves tensors that are not listed on the device. */
static void choose_outputs(clg_session *s)
{
    const graph *g = s->exec->graph;
    for (size_t i = 0; i < s->n_outputs; i++) {
        session_output *out = &s->outputs[i];
        out->in_call_data = false;
        if (!out->call && !out->bound && g->values[g->outputs[i]].kind == CLG_VALUE_TENSOR)
            out->impl = OUTPUT_LEFT;
    }
}

/* Describes the result of output `index` to the caller, and makes it a value unless the run wrote
 * it into the caller's memory. */
static clg_status return_output(clg_session *s, size_t index)
{
    session_output *out = &s->outputs[index];
    clg_call_output *to = out->call;
    clg_value *v = NULL;
    if (!out->valid)
        return error_set(CLG_ERROR_NOT_FOUND, "output '%s' has no content", output_name(s, index));
    size_t size_bytes = 0;
    if (out->dtype != CLG_DTYPE_NONE && out->dtype != CLG_STRING)
        CLG_TRY(tensor_bytes_of(out->dtype, &out->dims, &size_bytes));
    const bool is_tensor = out->dtype != CLG_DTYPE_NONE;
    const bool is_empty = is_tensor && out->dtype != CLG_STRING && size_bytes == 0;
    if (out->bound)
        v = value_retain(out->bound);
    else if (!out->in_call_data && !is_empty)
        CLG_TRY(session_output_host(s, index, &v));
    to->value = v;
    to->kind = v ? v->kind : CLG_VALUE_TENSOR;
    to->dtype = v ? v->dtype : out->dtype;
    if (!is_tensor) return CLG_OK;
    to->rank = (size_t)out->dims.rank;
    for (int d = 0; d < out->dims.rank; d++) to->dims[d] = out->dims.dims[d];
    to->size_bytes = size_bytes;
    return CLG_OK;
}

static clg_status return_outputs(clg_session *s)
{
    for (size_t i = 0; i < s->n_outputs; i++)
        if (s->outputs[i].call) CLG_TRY(return_output(s, i));
    return CLG_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Sets the members for results to zero; releases values. */
static void clear_outputs(clg_call_output *outputs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        clg_call_output *out = &outputs[i];
        value_free(out->value);
        *out = (clg_call_output){
            .name = out->name, .data = out->data, .capacity_bytes = out->capacity_bytes};
    }
}

/* Ends the call: the session knows nothing of it afterwards. */
static void forget_call(clg_session *s)
{
    for (size_t i = 0; i < s->n_inputs; i++) s->inputs[i].call = NULL;
    for (size_t i = 0; i < s->n_outputs; i++) {
        s->outputs[i].call = NULL;
        s->outputs[i].impl = OUTPUT_FETCHED;
    }
}

clg_status session_call(clg_session *s, const clg_call_input *inputs, size_t n_inputs,
                        clg_call_output *outputs, size_t n_outputs)
{
    const call_state c = {s, inputs, outputs, n_inputs, n_outputs};
    clg_status status = check_all(&c);
    if (status == CLG_OK) {
        choose_outputs(s);
        status = set_inputs(s);
        if (status == CLG_OK) status = session_run(s);
        if (status == CLG_OK) status = return_outputs(s);
        unset_inputs(s);
    }
    forget_call(s);
    if (status != CLG_OK) clear_outputs(outputs, n_outputs);
    return status;
}
