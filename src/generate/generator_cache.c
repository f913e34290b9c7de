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

/* Makes a model that cuts or extends a cache like c from n_from to n_to tokens. */
static clg_status make_resizer(const clg_generator *g, const decoder_cache *c, size_t n_from,
                               size_t n_to, clg_model **out_model)
{
    graph *made;
    CLG_TRY(graph_create("resize", &made));
    graph_writer w = {.graph = made, .dtype = g->model.cache_dtype, .status = CLG_OK};
    w.status = graph_set_opset(made, "", GRAPH_ADDED_OPSET);
    const int64_t by = (int64_t)n_to - (int64_t)n_from;
    const value_id pads = writer_ints(&w, 8, (const int64_t[8]){0, 0, 0, 0, 0, 0, by, 0}),
                   v = writer_input(&w, "from", g->model.cache_dtype, 0);
    if (w.status == CLG_OK) {
        made->values[v].dims = shape_of(c, n_from);
        (void)writer_output(&w, WRITER_ADD(&w, "Pad", v, pads), "to");
    }
    if (w.status != CLG_OK) {
        graph_free(made);
        return w.status;
    }
    return model_create(made, false, out_model);
}

static clg_status open_resizer(const clg_generator *g, const decoder_cache *c, size_t n_from,
                               size_t n_to, clg_session **out_session)
{
    clg_model *m;
    exec_options options = g->exec;
    options.fp16 = false;
    CLG_TRY(make_resizer(g, c, n_from, n_to, &m));
    device_context *device = context_handle_current(g->owner);
    const clg_status status =
        session_create(g->owner, device, m, &options, NULL, NULL, NULL, out_session);
    context_free(device);
    model_free(m);
    return status;
}

/* Runs the resizer on a cache, with the result in a buffer. */
static clg_status resize_into(clg_session *resizer, clg_value *from, const shape *dims,
                              ocl_buffer *to)
{
    clg_value *v;
    CLG_TRY(context_wrap_buffer(resizer->exec->context, ocl_buffer_retain(to), 0, from->dtype, dims,
                                &v));
    clg_status status = session_set_input(resizer, 0, from);
    if (status == CLG_OK) status = session_bind_output(resizer, 0, v);
    if (status == CLG_OK) status = session_run(resizer);
    value_free(v);
    if (status == CLG_OK) status = session_bind_output(resizer, 0, NULL);
    if (status == CLG_OK) status = session_set_input(resizer, 0, NULL);
    return status;
}

/* Runs the resizer on a cache, and gives the result, with room for n tokens, to the session. */
static clg_status run_resizer(clg_generator *g, size_t i, size_t n, clg_session *resizer)
{
    const decoder_cache *c = &g->model.caches[i];
    const shape dims = shape_of(c, n);
    const size_t bytes =
        (size_t)shape_product(&dims, 0, dims.rank) * dtype_size(g->model.cache_dtype);
    clg_value *from;
    ocl_buffer *to = NULL;
    CLG_TRY(session_input_value(g->session, c->input, &from));
    clg_status status = session_enter(resizer);
    if (status == CLG_OK) {
        status = ocl_buffer_create(resizer->exec->context->ocl, bytes, OCL_BUFFER_DEVICE, &to);
        if (status == CLG_OK) status = resize_into(resizer, from, &dims, to);
        session_leave(resizer);
    }
    value_free(from);
    if (status == CLG_OK) status = session_give_input(g->session, c->input, &dims, to);
    if (status != CLG_OK) ocl_buffer_free(to);
    return status;
}

/* Cuts or extends the caches, one after another: only one at a time exists in both sizes. After an
 * error some may have the new size, and all must be dropped. */
static clg_status resize(clg_generator *g, size_t n_from, size_t n_to)
{
    const decoder_cache *caches = g->model.caches, *like = NULL;
    clg_session *resizer = NULL;
    clg_status status = CLG_OK;
    for (size_t i = 0; i < g->model.n_caches && status == CLG_OK; i++) {
        if (!like || like->heads != caches[i].heads || like->size != caches[i].size) {
            session_free(resizer);
            resizer = NULL;
            like = &caches[i];
            status = open_resizer(g, like, n_from, n_to, &resizer);
        }
        if (status == CLG_OK) status = run_resizer(g, i, n_to, resizer);
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
