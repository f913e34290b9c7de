/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a token from the logits of the last run. The most likely one is an output of the run
 * itself. Else a second session reads the logits on the device: it applies the repetition penalty,
 * and finds the largest, the k largest, or returns all; the host draws among them (decision 83).
 */
#include "generate/generator.h"
#include "generate/sampler.h"
#include "graph/graph_writer.h"

#include <math.h>
#include <string.h>

enum { LOWEST_IDS = 64 };

/* Inputs of the session; those after the logits only with a penalty. */
enum { CHOOSE_LOGITS, CHOOSE_IDS, CHOOSE_PENALTY };
static const char *const input_names[] = {"logits", "ids", "penalty"};

void generator_reset_choosing(clg_generator *g)
{
    session_free(g->choosing.session);
    g->choosing.session = NULL;
}

/* ---- tokens of the sequence ------------------------------------------------------------------ */

void generator_forget_seen(clg_generator *g, size_t n)
{
    choosing *c = &g->choosing;
    if (c->n_seen <= n) return;
    for (size_t i = 0; i < c->n_ids; i++) c->is_seen[c->ids[i]] = 0;
    c->n_seen = c->n_ids = 0;
}

/* Makes ids the distinct tokens of the sequence, and fills its room, a power of two so that few
 * shapes occur, with the first of them: they are changed again, to the same. */
static clg_status update_ids(clg_generator *g)
{
    choosing *c = &g->choosing;
    if (!c->is_seen) c->is_seen = memory_zalloc((size_t)g->model.vocabulary, 1);
    if (!c->is_seen) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (; c->n_seen < g->n_tokens; c->n_seen++) {
        const int64_t token = g->tokens[c->n_seen];
        if (c->is_seen[token]) continue;
        if (c->n_ids == c->n_ids_room) {
            const size_t room = c->n_ids_room ? 2 * c->n_ids_room : LOWEST_IDS;
            int64_t *larger = memory_resize(c->ids, room * sizeof *larger);
            if (!larger) return CLG_ERROR_OUT_OF_HOST_MEMORY;
            c->ids = larger;
            c->n_ids_room = room;
        }
        c->is_seen[token] = 1;
        c->ids[c->n_ids++] = token;
    }
    for (size_t i = c->n_ids; i < c->n_ids_room; i++) c->ids[i] = c->ids[0];
    return CLG_OK;
}

/* ---- the session ----------------------------------------------------------------------------- */

/* Divides positive logits of `ids` by the penalty, multiplies the others. */
static value_id add_penalty(graph_writer *w, value_id logits)
{
    const value_id ids = writer_input(w, input_names[CHOOSE_IDS], CLG_INT64, DIM_UNKNOWN),
                   penalty = writer_input(w, input_names[CHOOSE_PENALTY], CLG_FLOAT32, 1),
                   x = WRITER_ADD(w, "Gather", logits, ids),
                   is_positive = WRITER_ADD(w, "Greater", x, writer_number(w, 0)),
                   changed = WRITER_ADD(w, "Where", is_positive, WRITER_ADD(w, "Div", x, penalty),
                                        WRITER_ADD(w, "Mul", x, penalty));
    return WRITER_ADD(w, "ScatterElements", logits, ids, changed);
}

static void add_top_k(graph_writer *w, value_id logits, int64_t k)
{
    node_id n;
    value_id out[2] = {VALUE_NONE, VALUE_NONE};
    const value_id in[2] = {logits, writer_ints(w, 1, &k)};
    if (w->status == CLG_OK) w->status = graph_add_value(w->graph, "top_logits", &out[0]);
    if (w->status == CLG_OK) w->status = graph_add_value(w->graph, "top_tokens", &out[1]);
    if (w->status == CLG_OK)
        w->status = graph_add_node(w->graph, "", "TopK", "top", 2, in, 2, out, &n);
    for (size_t i = 0; i < 2; i++) (void)writer_output(w, out[i], NULL);
}

static clg_status make_graph(graph *g, const choosing *c, int64_t vocabulary)
{
    graph_writer w = {.graph = g, .dtype = CLG_FLOAT32, .status = CLG_OK};
    w.status = graph_set_opset(g, "", GRAPH_ADDED_OPSET);
    value_id v = writer_input(&w, input_names[CHOOSE_LOGITS], CLG_FLOAT32, vocabulary);
    if (c->has_penalty) v = add_penalty(&w, v);
    if (c->draws && c->k > 0) {
        add_top_k(&w, v, c->k);
    } else if (c->draws) {
        (void)writer_output(&w, v, "all_logits");
    } else {
        const value_id token = writer_set_int(&w, WRITER_ADD(&w, "ArgMax", v), "axis", 0);
        (void)writer_output(&w, WRITER_ADD(&w, "Gather", v, token), "top_logits");
        (void)writer_output(&w, token, "top_tokens");
    }
    return w.status;
}

static clg_status make_session(clg_generator *g)
{
    graph *made;
    clg_model *m;
    exec_options options = g->exec;
    options.fp16 = false;
    CLG_TRY(graph_create("choose", &made));
    clg_status status = make_graph(made, &g->choosing, g->model.vocabulary);
    if (status != CLG_OK) {
        graph_free(made);
        return status;
    }
    CLG_TRY(model_create(made, false, &m));
    device_context *device = context_handle_current(g->owner);
    status =
        session_create(g->owner, device, m, &options, g->token, NULL, NULL, &g->choosing.session);
    context_free(device);
    model_free(m);
    return status;
}

/* Makes a session for the settings, unless the one that is there fits. */
static clg_status fit_session(clg_generator *g, bool has_penalty, bool draws)
{
    const uint64_t all = (uint64_t)g->model.vocabulary;
    choosing *c = &g->choosing;
    const uint32_t k = draws && g->sampling.top_k < all ? g->sampling.top_k : 0;
    if (c->session && c->has_penalty == has_penalty && c->draws == draws && c->k == k)
        return CLG_OK;
    generator_reset_choosing(g);
    c->has_penalty = has_penalty;
    c->draws = draws;
    c->k = k;
    return make_session(g);
}

/* ---- a choice -------------------------------------------------------------------------------- */

static clg_status refuse_nan(void)
{
    return error_set(CLG_ERROR_DATA, "a logit of the model is NaN");
}

static clg_status run_session(clg_generator *g, clg_call_output *outputs, size_t n_outputs)
{
    choosing *c = &g->choosing;
    const float penalty = (float)g->sampling.repetition_penalty;
    const int64_t one = 1, n_ids = (int64_t)c->n_ids_room;
    clg_value *logits;
    CLG_TRY(session_enter(g->session));
    clg_status status = session_output_device(g->session, DECODER_LOGITS, &logits);
    session_leave(g->session);
    CLG_TRY(status);
    const clg_call_input in[] = {
        {.name = input_names[CHOOSE_LOGITS], .value = logits},
        {input_names[CHOOSE_IDS], CLG_INT64, 1, &n_ids, c->ids, c->n_ids_room * sizeof *c->ids,
         NULL},
        {input_names[CHOOSE_PENALTY], CLG_FLOAT32, 1, &one, &penalty, sizeof penalty, NULL}};
    status = session_enter(c->session);
    if (status == CLG_OK) {
        status = session_call(c->session, in, c->has_penalty ? 3 : 1, outputs, n_outputs);
        session_leave(c->session);
    }
    value_free(logits);
    return status;
}

/* Draws among n candidates, whose logits and tokens (NULL: 0 to n - 1) the session gave. */
static clg_status draw(const clg_generator *g, const float *logits, const int64_t *tokens, size_t n,
                       int64_t *out_token)
{
    clg_status status = CLG_OK;
    sampler_candidate *candidates = memory_alloc(n * sizeof *candidates);
    if (!candidates) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n && status == CLG_OK; i++) {
        candidates[i] = (sampler_candidate){logits[i], tokens ? tokens[i] : (int64_t)i};
        if (isnan(logits[i])) status = refuse_nan();
    }
    if (status == CLG_OK) *out_token = sampler_choose(candidates, n, &g->sampling, g->n_tokens);
    memory_free(candidates);
    return status;
}

/* Runs the session, and draws among its candidates or takes the only one. */
static clg_status choose_among(clg_generator *g, int64_t *out_token)
{
    const choosing *c = &g->choosing;
    const bool is_all = c->draws && c->k == 0;
    const size_t n = is_all ? (size_t)g->model.vocabulary : c->draws ? c->k : 1;
    float *logits = memory_zalloc(n, sizeof *logits);
    int64_t *tokens = is_all ? NULL : memory_zalloc(n, sizeof *tokens);
    clg_call_output out[2] = {
        {.name = is_all ? "all_logits" : "top_logits",
         .data = logits,
         .capacity_bytes = n * sizeof *logits},
        {.name = "top_tokens", .data = tokens, .capacity_bytes = n * sizeof *tokens}};
    clg_status status = logits && (is_all || tokens) ? run_session(g, out, is_all ? 1 : 2)
                                                     : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK && c->draws) {
        status = draw(g, logits, tokens, n, out_token);
    } else if (status == CLG_OK && tokens) {
        *out_token = tokens[0];
        if (isnan(logits[0])) status = refuse_nan();
    }
    memory_free(logits);
    memory_free(tokens);
    return status;
}

static clg_status choose(clg_generator *g, int64_t *out_token)
{
    const double penalty = g->sampling.repetition_penalty;
    const bool has_penalty = penalty > 0 && penalty != 1;
    const bool draws = g->sampling.temperature > 0 && g->sampling.top_k != 1;
    if (!has_penalty && !draws) {
        *out_token = g->top_token;
        return isnan(g->top_logit) ? refuse_nan() : CLG_OK;
    }
    if (has_penalty) CLG_TRY(update_ids(g));
    CLG_TRY(fit_session(g, has_penalty, draws));
    return choose_among(g, out_token);
}

clg_status generator_choose(clg_generator *g, int64_t *out_token)
{
    const clg_status status = choose(g, out_token);
    if (status == CLG_ERROR_DEVICE_LOST) generator_drop_caches(g);
    return status;
}
