/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a batch again with all its values as outputs, and looks at them in the order of the nodes.
 * See diagnosis.h.
 */
#include "train/diagnosis.h"

#include "base/strbuf.h"

#include <math.h>
#include <string.h>

/* What is looked for. */
typedef enum fault { FAULT_NAN, FAULT_NOT_FINITE } fault;

static bool has_fault(const tensor *t, fault what)
{
    if (!dtype_is_float(t->dtype)) return false;
    for (int64_t i = 0; i < t->n_elements; i++) {
        const double number = tensor_get_float(t, i);
        if (what == FAULT_NAN ? isnan(number) : !isfinite(number)) return true;
    }
    return false;
}

/* Sets *out to whether a value, wherever it is, has elements that are not finite. */
static clg_status value_is_not_finite(const clg_value *v, bool *out)
{
    tensor *content;
    *out = false;
    if (v->kind != CLG_VALUE_TENSOR || !dtype_is_float(v->dtype)) return CLG_OK;
    CLG_TRY(value_read_tensor(v, &content));
    *out = has_fault(content, FAULT_NOT_FINITE);
    tensor_free(content);
    return CLG_OK;
}

/* ---- inputs and parameters ------------------------------------------------------------------- */

static bool is_parameter(const clg_trainer *t, const char *name)
{
    return parameters_get(&t->parameters, name) || parameters_get(&t->statistics, name);
}

/* Appends the first of the inputs that is not finite: data (of_data), or parameters and
 * statistics. */
static clg_status look_at_inputs(const clg_trainer *t, bool of_data, strbuf *out)
{
    char shown[NAME_TEXT_BYTES];
    const clg_session *s = t->gradients;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const char *name = session_input_port(s, i)->name;
        bool has = false;
        if (is_parameter(t, name) == of_data || !s->inputs[i].value) continue;
        CLG_TRY(value_is_not_finite(s->inputs[i].value, &has));
        if (!has) continue;
        strbuf_printf(out, "the %s '%s'", of_data ? "input" : "parameter", name_text(name, shown));
        return CLG_OK;
    }
    return CLG_OK;
}

/* ---- outputs of nodes ------------------------------------------------------------------------ */

typedef struct outputs {
    const char **names; /* in the order of the nodes */
    const node **nodes; /* whose they are */
    size_t n;
} outputs;

static clg_status list_outputs(const graph *g, outputs *out)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i].n_outputs;
    *out = (outputs){.names = memory_zalloc(n, sizeof *out->names),
                     .nodes = memory_zalloc(n, sizeof *out->nodes)};
    if (!out->names || !out->nodes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_outputs; k++) {
            const value_id v = g->nodes[i].outputs[k];
            if (v == VALUE_NONE || !g->values[v].name[0]) continue;
            out->nodes[out->n] = &g->nodes[i];
            out->names[out->n++] = g->values[v].name;
        }
    return CLG_OK;
}

static void outputs_deinit(outputs *o)
{
    memory_free(o->names);
    memory_free(o->nodes);
}

/* Runs the batch in a separate session, which keeps the outputs. Its caller has entered it. */
static clg_status run_again(const clg_trainer *t, clg_session *s, const outputs *o)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        CLG_TRY(session_set_input(s, i, t->gradients->inputs[i].value));
    CLG_TRY(session_keep_values(s, o->names, o->n));
    trainer_seed(t, s);
    return session_run(s);
}

/* Appends the first output with the fault. */
static clg_status find_first(clg_session *s, const outputs *o, fault what, strbuf *out)
{
    char shown[NAME_TEXT_BYTES], of[NODE_TEXT_BYTES];
    for (size_t i = 0; i < o->n; i++) {
        size_t index;
        clg_value *v;
        CLG_TRY(session_find_output(s, o->names[i], &index));
        CLG_TRY(session_output_host(s, index, &v));
        const bool has = v->kind == CLG_VALUE_TENSOR && has_fault(v->host, what);
        value_free(v);
        if (!has) continue;
        strbuf_printf(out, "'%s', of %s", name_text(o->names[i], shown),
                      node_text(o->nodes[i], of));
        return CLG_OK;
    }
    return CLG_OK;
}

/* Appends the first output of a node that is not finite, and the first NaN if that is another one:
 * infinities may be on purpose, as in the masks of attention. */
static clg_status find_both(clg_session *s, const outputs *o, strbuf *out)
{
    strbuf first;
    CLG_TRY(find_first(s, o, FAULT_NOT_FINITE, out));
    strbuf_init(&first, 0);
    clg_status status = find_first(s, o, FAULT_NAN, &first);
    if (status == CLG_OK) status = first.status;
    if (status == CLG_OK && strbuf_data(&first)[0] &&
        strcmp(strbuf_data(&first), strbuf_data(out)) != 0)
        strbuf_printf(out, "; the first NaN is %s", strbuf_data(&first));
    strbuf_deinit(&first);
    return status;
}

static clg_status look_at_nodes(const clg_trainer *t, strbuf *out)
{
    outputs o;
    clg_session *s = NULL;
    clg_status status = list_outputs(t->cut->graph, &o);
    if (status == CLG_OK) status = session_clone(t->gradients, &s);
    if (status == CLG_OK) status = session_enter(s);
    if (status == CLG_OK) {
        status = run_again(t, s, &o);
        if (status == CLG_OK) status = find_both(s, &o, out);
        session_leave(s);
    }
    session_free(s);
    outputs_deinit(&o);
    return status;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Reports what is not finite. first: the first such value; empty: unknown. Frees it. */
static clg_status report(const clg_trainer *t, const char *what, double number, strbuf *first)
{
    const char *text = first->status == CLG_OK ? strbuf_data(first) : "";
    const clg_status status = error_set(
        CLG_ERROR_DATA, "%s of step %llu is %g, at a rate of %g%s%s", what,
        (unsigned long long)t->n_steps + 1, number, schedule_rate(&t->schedule, t->n_steps),
        text[0] ? "; the first value that is not finite is " : "", text);
    strbuf_deinit(first);
    return status;
}

clg_status diagnosis_of_loss(clg_trainer *t, double loss)
{
    strbuf first;
    strbuf_init(&first, 0);
    clg_status status = look_at_inputs(t, true, &first);
    if (status == CLG_OK && !strbuf_data(&first)[0]) status = look_at_inputs(t, false, &first);
    if (status == CLG_OK && !strbuf_data(&first)[0]) status = look_at_nodes(t, &first);
    if (status != CLG_ERROR_CANCELLED) return report(t, "the loss", loss, &first);
    strbuf_deinit(&first);
    return status;
}

clg_status diagnosis_of_norm(clg_trainer *t, double norm)
{
    char shown[NAME_TEXT_BYTES];
    strbuf first;
    bool has = false;
    strbuf_init(&first, 0);
    for (size_t i = 0; i < t->parameters.n && !has; i++) {
        if (value_is_not_finite(t->views[TRAINER_GRADIENTS][i], &has) != CLG_OK) break;
        if (has)
            strbuf_printf(&first, "the gradient of '%s'", name_text(t->parameters.names[i], shown));
    }
    return report(t, "the norm of the gradients", norm, &first);
}
