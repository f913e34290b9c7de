/* SPDX-License-Identifier: Apache-2.0
 *
 * The caches of a generator: outputs of the session that are linked to its inputs. Their first
 * values, and those after a change of their size, are set as inputs. Reserved caches double when
 * they are full.
 */
#include "generate/generator.h"

#include "graph/graph_writer.h"

#include <stdio.h>
#include <string.h>

enum { LOWEST_CAPACITY = 256 };

uint64_t generator_cache_bytes(const clg_generator *g, uint64_t n_tokens)
{
    uint64_t n = 0;
    for (size_t i = 0; i < g->model.n_caches; i++)
        n += (uint64_t)g->model.caches[i].heads * (uint64_t)g->model.caches[i].size;
    return n * n_tokens * dtype_size(g->model.cache_dtype);
}

void generator_drop_caches(clg_generator *g)
{
    g->n_cached = g->capacity = 0;
    g->is_set = g->has_outputs = false;
}

/* ---- empty caches ---------------------------------------------------------------------------- */

static shape shape_of(const decoder_cache *c, size_t n_tokens)
{
    return (shape){.rank = 4, .dims = {1, c->heads, (int64_t)n_tokens, c->size}};
}

static clg_status zeros(const clg_generator *g, const shape *dims, clg_value **out_value)
{
    tensor *t;
    CLG_TRY(tensor_create(g->model.cache_dtype, dims, &t));
    const clg_status status = value_create_host(t, out_value);
    tensor_free(t);
    return status;
}

/* Sets all caches to zeros with room for n tokens; caches of the same shape share them. */
static clg_status set_zeros(clg_generator *g, size_t n)
{
    clg_value *v = NULL;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < g->model.n_caches && status == CLG_OK; i++) {
        const shape dims = shape_of(&g->model.caches[i], n);
        if (v && !shape_equal(&v->dims, &dims)) {
            value_free(v);
            v = NULL;
        }
        if (!v) status = zeros(g, &dims, &v);
        if (status == CLG_OK) status = session_set_input(g->session, g->model.caches[i].input, v);
    }
    value_free(v);
    return status;
}

/* ---- other sizes ----------------------------------------------------------------------------- */

/* Makes a model that cuts or extends each cache from n_from to n_to tokens. */
static clg_status make_resizer(const clg_generator *g, size_t n_from, size_t n_to,
                               clg_model **out_model)
{
    graph *made;
    char name[32];
    CLG_TRY(graph_create("resize", &made));
    graph_writer w = {.graph = made, .dtype = g->model.cache_dtype, .status = CLG_OK};
    w.status = graph_set_opset(made, "", GRAPH_ADDED_OPSET);
    const int64_t by = (int64_t)n_to - (int64_t)n_from;
    const value_id pads = writer_ints(&w, 8, (const int64_t[8]){0, 0, 0, 0, 0, 0, by, 0});
    for (size_t i = 0; i < g->model.n_caches; i++) {
        (void)snprintf(name, sizeof name, "from_%zu", i);
        const value_id v = writer_input(&w, name, g->model.cache_dtype, 0);
        if (w.status != CLG_OK) break;
        made->values[v].dims = shape_of(&g->model.caches[i], n_from);
        (void)snprintf(name, sizeof name, "to_%zu", i);
        (void)writer_output(&w, WRITER_ADD(&w, "Pad", v, pads), name);
    }
    if (w.status != CLG_OK) {
        graph_free(made);
        return w.status;
    }
    return model_create(made, false, out_model);
}

/* Returns the value of a cache on the device, as the last run left it, or as it was set. */
static clg_status cache_value(clg_generator *g, size_t i, clg_value **out_value)
{
    const session_input *in = &g->session->inputs[g->model.caches[i].input];
    if (in->carried) return session_output_device(g->session, g->model.caches[i].output, out_value);
    *out_value = value_retain(in->value);
    return *out_value ? CLG_OK : error_set(CLG_ERROR_INTERNAL, "a cache has no value");
}

/* Runs the resizer on the caches, and sets its results as the caches. */
static clg_status run_resizer(clg_generator *g, clg_session *resizer)
{
    clg_value *v;
    for (size_t i = 0; i < g->model.n_caches; i++) {
        CLG_TRY(cache_value(g, i, &v));
        const clg_status status = session_set_input(resizer, i, v);
        value_free(v);
        CLG_TRY(status);
    }
    CLG_TRY(session_run(resizer));
    for (size_t i = 0; i < g->model.n_caches; i++) {
        CLG_TRY(session_output_device(resizer, i, &v));
        const clg_status status = session_set_input(g->session, g->model.caches[i].input, v);
        value_free(v);
        CLG_TRY(status);
    }
    return CLG_OK;
}

static clg_status resize(clg_generator *g, size_t n_from, size_t n_to)
{
    clg_model *m;
    clg_session *resizer = NULL;
    exec_options options = g->exec;
    options.fp16 = false;
    CLG_TRY(make_resizer(g, n_from, n_to, &m));
    device_context *device = context_handle_current(g->owner);
    clg_status status = session_create(g->owner, device, m, &options, NULL, NULL, NULL, &resizer);
    context_free(device);
    model_free(m);
    if (status != CLG_OK) return status;
    status = session_enter(resizer);
    if (status == CLG_OK) {
        status = run_resizer(g, resizer);
        session_leave(resizer);
    }
    session_free(resizer);
    return status;
}

clg_status generator_cut_caches(clg_generator *g, size_t n)
{
    if (session_is_stale(g->session)) {
        generator_drop_caches(g);
        return CLG_OK;
    }
    CLG_TRY(session_enter(g->session));
    const clg_status status = resize(g, g->n_cached, n);
    session_leave(g->session);
    if (status == CLG_OK)
        g->n_cached = n;
    else
        generator_drop_caches(g);
    return status;
}

/* ---- before a run ---------------------------------------------------------------------------- */

static size_t capacity_for(const clg_generator *g, size_t n_total)
{
    size_t n = LOWEST_CAPACITY;
    if (g->model.fixed_capacity > 0) return (size_t)g->model.fixed_capacity;
    while (n < n_total) n *= 2;
    return n < g->max_context ? n : (size_t)g->max_context;
}

static clg_status set_reserved(clg_generator *g, size_t n_total)
{
    const size_t wanted = capacity_for(g, n_total);
    if (g->is_set && g->capacity >= n_total) return CLG_OK;
    CLG_TRY(g->is_set && g->n_cached > 0 ? resize(g, g->capacity, wanted) : set_zeros(g, wanted));
    g->capacity = wanted;
    return CLG_OK;
}

clg_status generator_reserve(clg_generator *g, size_t n_total)
{
    clg_status status = CLG_OK;
    if (g->cache == CLG_CACHE_NONE) return CLG_OK;
    CLG_TRY(session_enter(g->session));
    if (g->cache == CLG_CACHE_RESERVED)
        status = set_reserved(g, n_total);
    else if (!g->is_set)
        status = set_zeros(g, 0);
    session_leave(g->session);
    if (status == CLG_OK) g->is_set = true;
    return status;
}
