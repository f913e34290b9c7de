/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a generator's session over tokens of the sequence, in chunks.
 */
#include "generate/generator.h"

#include "base/cancel.h"
#include "base/clock.h"

#include <string.h>

/* Masks of reserved caches have a multiple of this many positions, so that shapes change rarely. */
enum { MASK_STEP = 64 };

/* Tokens that a run computes: begin .. begin + n - 1. */
typedef struct chunk {
    size_t begin, n, total; /* total: begin + n */
    size_t n_mask;          /* positions of the mask */
} chunk;

/* The inputs of a run, other than caches, and where the data of the next one goes. */
typedef struct call_inputs {
    clg_call_input items[N_INPUT_ROLES];
    int64_t dims[N_INPUT_ROLES][2];
    size_t n;
    char *next;
} call_inputs;

/* Stores number i of an input of int64, int32 or bool. */
static void store(void *data, clg_dtype dtype, size_t i, int64_t number)
{
    if (dtype == CLG_INT64)
        ((int64_t *)data)[i] = number;
    else if (dtype == CLG_INT32)
        ((int32_t *)data)[i] = (int32_t)number;
    else
        ((uint8_t *)data)[i] = number != 0;
}

static int64_t number_of(const clg_generator *g, input_role role, const chunk *c, size_t i)
{
    switch (role) {
    case INPUT_TOKENS: return g->tokens[c->begin + i];
    case INPUT_MASK: return i < c->total;
    case INPUT_POSITIONS:
    case INPUT_CACHE_POSITIONS: return (int64_t)(c->begin + i);
    case INPUT_TOTAL: return (int64_t)c->total;
    case INPUT_LAST: return (int64_t)c->total - 1;
    case INPUT_PAST: return (int64_t)c->begin;
    case INPUT_NEW: return (int64_t)c->n;
    case INPUT_ONE: return 1;
    case INPUT_HAS_PAST: return c->begin > 0;
    case N_INPUT_ROLES: break;
    }
    return 0;
}

static size_t length_of(input_role role, const chunk *c)
{
    if (role == INPUT_MASK) return c->n_mask;
    return role <= INPUT_CACHE_POSITIONS ? c->n : 1;
}

static void add_input(const clg_generator *g, input_role role, const chunk *c, call_inputs *in)
{
    const value *port = session_input_port(g->session, g->model.inputs[role]);
    const size_t n = length_of(role, c);
    const int rank = port->dims.rank;
    int64_t *dims = in->dims[in->n];
    dims[0] = rank == 1 ? (int64_t)n : 1;
    dims[1] = (int64_t)n;
    for (size_t i = 0; i < n; i++) store(in->next, port->dtype, i, number_of(g, role, c, i));
    in->items[in->n++] = (clg_call_input){.name = port->name,
                                          .dtype = port->dtype,
                                          .rank = (size_t)rank,
                                          .dims = dims,
                                          .data = in->next,
                                          .size_bytes = n * dtype_size(port->dtype)};
    in->next += n * sizeof(int64_t);
}

/* Fills in the inputs; their data is in the generator's memory. */
static clg_status fill_inputs(clg_generator *g, const chunk *c, call_inputs *in)
{
    size_t n = N_INPUT_ROLES;
    for (size_t role = 0; role < N_INPUT_ROLES; role++) n += length_of((input_role)role, c);
    CLG_TRY(MEMORY_RESERVE(g->input_data, g->input_capacity, n));
    in->n = 0;
    in->next = (char *)g->input_data;
    for (size_t role = 0; role < N_INPUT_ROLES; role++)
        if (g->model.inputs[role] != PORT_NONE) add_input(g, (input_role)role, c, in);
    return CLG_OK;
}

static size_t mask_length(const clg_generator *g, size_t total)
{
    if (g->cache != CLG_CACHE_RESERVED || !g->model.can_pad_mask) return total;
    const size_t whole = (total + MASK_STEP - 1) / MASK_STEP * MASK_STEP;
    return whole < g->capacity ? whole : g->capacity;
}

static clg_status call(clg_generator *g, const chunk *c)
{
    call_inputs in;
    clg_call_output out[2] = {{.name = decoder_output_names[DECODER_TOKEN],
                               .data = &g->top_token,
                               .capacity_bytes = sizeof g->top_token},
                              {.name = decoder_output_names[DECODER_TOP],
                               .data = &g->top_logit,
                               .capacity_bytes = sizeof g->top_logit}};
    CLG_TRY(fill_inputs(g, c, &in));
    CLG_TRY(session_enter(g->session));
    const clg_status status = session_call(g->session, in.items, in.n, out, 2);
    session_leave(g->session);
    return status;
}

static clg_status run_chunk(clg_generator *g, size_t begin, size_t n)
{
    chunk c = {begin, n, begin + n, 0};
    const uint64_t start_ns = time_now_ns();
    CLG_TRY(cancel_check("the generation"));
    clg_status status = generator_reserve(g, c.total);
    c.n_mask = mask_length(g, c.total);
    if (status == CLG_OK) status = call(g, &c);
    if (status != CLG_OK) {
        generator_drop_caches(g);
        return status;
    }
    const double seconds = (double)(time_now_ns() - start_ns) * 1e-9;
    const bool is_new =
        c.total > g->n_appended && (n == 1 || (g->cache == CLG_CACHE_NONE && g->n_cached > 0));
    *(is_new ? &g->stats.n_new_tokens : &g->stats.n_prompt_tokens) += is_new ? 1 : n;
    *(is_new ? &g->stats.new_s : &g->stats.prompt_s) += seconds;
    g->stats.n_runs++;
    g->n_cached = c.total;
    return CLG_OK;
}

/* Makes the caches end before the last token, which is then computed. */
static clg_status step_back(clg_generator *g)
{
    if (g->cache == CLG_CACHE_RESERVED) {
        g->n_cached = g->n_tokens - 1;
        return CLG_OK;
    }
    if (g->cache == CLG_CACHE_GROWING && g->n_tokens > 1)
        return generator_cut_caches(g, g->n_tokens - 1);
    generator_drop_caches(g);
    return CLG_OK;
}

/* Returns how many of the tokens that are left the next run computes. In models with a branch for
 * the first run, exporters traced the other one with one token, and its mask need not fit more. */
static size_t chunk_of(const clg_generator *g, size_t left)
{
    if (g->model.inputs[INPUT_HAS_PAST] != PORT_NONE) return g->n_cached == 0 ? left : 1;
    return left > g->chunk ? g->chunk : left;
}

clg_status generator_evaluate(clg_generator *g)
{
    if (session_is_stale(g->session)) generator_drop_caches(g); /* they were on a lost device */
    if (g->has_outputs) return CLG_OK;
    if (g->n_tokens == 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the sequence is empty: append a token first");
    if (g->cache == CLG_CACHE_NONE) {
        CLG_TRY(run_chunk(g, 0, g->n_tokens));
        g->has_outputs = true;
        return CLG_OK;
    }
    if (g->n_cached >= g->n_tokens) CLG_TRY(step_back(g));
    while (g->n_cached < g->n_tokens)
        CLG_TRY(run_chunk(g, g->n_cached, chunk_of(g, g->n_tokens - g->n_cached)));
    g->has_outputs = true;
    return CLG_OK;
}
