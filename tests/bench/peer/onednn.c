/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes float32 matrix products by oneDNN's matmul primitive. See onednn.h.
 */
#include "peer/onednn.h"

#include <stddef.h>

#ifdef BENCH_ONEDNN

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

enum { A, B, C, N_MATRICES };

struct onednn_matmul {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[N_MATRICES];
};

static bool good(dnnl_status_t status) { return status == dnnl_success; }

/* Creates a memory object for a row-major matrix in the caller's memory. */
static bool plain(onednn_matmul *p, const dnnl_dims_t dims, const float *data, dnnl_memory_t *out)
{
    dnnl_memory_desc_t md;
    return good(dnnl_memory_desc_init_by_tag(&md, 2, dims, dnnl_f32, dnnl_ab)) &&
           good(dnnl_memory_create(out, &md, p->engine, (void *)(uintptr_t)data));
}

/* Copies the matrix to the layout that the primitive prefers. */
static bool reordered(onednn_matmul *p, const dnnl_dims_t dims, const float *data,
                      const dnnl_memory_desc_t *wanted, dnnl_memory_t *out)
{
    dnnl_memory_t from = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t copy = NULL;
    const dnnl_memory_desc_t *source;
    bool ok = plain(p, dims, data, &from) && good(dnnl_memory_get_memory_desc(from, &source)) &&
              good(dnnl_memory_create(out, wanted, p->engine, DNNL_MEMORY_ALLOCATE)) &&
              good(dnnl_reorder_primitive_desc_create(&desc, source, p->engine, wanted, p->engine,
                                                      NULL)) &&
              good(dnnl_primitive_create(&copy, desc));
    if (ok) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, *out}};
        ok = good(dnnl_primitive_execute(copy, p->stream, 2, args)) &&
             good(dnnl_stream_wait(p->stream));
    }
    dnnl_primitive_destroy(copy);
    dnnl_primitive_desc_destroy(desc);
    dnnl_memory_destroy(from);
    return ok;
}

static bool make(onednn_matmul *p, const dnnl_dims_t dims[N_MATRICES],
                 const float *const data[N_MATRICES], int constant)
{
    dnnl_memory_desc_t md[N_MATRICES];
    for (int i = 0; i < N_MATRICES; i++)
        if (!good(dnnl_memory_desc_init_by_tag(&md[i], 2, dims[i], dnnl_f32,
                                               i == constant ? dnnl_format_tag_any : dnnl_ab)))
            return false;
    dnnl_matmul_desc_t op;
    dnnl_primitive_desc_t desc = NULL;
    if (!good(dnnl_engine_create(&p->engine, dnnl_cpu, 0)) ||
        !good(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags)) ||
        !good(dnnl_matmul_desc_init(&op, &md[A], &md[B], NULL, &md[C])) ||
        !good(dnnl_primitive_desc_create(&desc, &op, NULL, p->engine, NULL)))
        return false;
    bool ok = good(dnnl_primitive_create(&p->primitive, desc));
    for (int i = 0; i < N_MATRICES && ok; i++)
        ok = i == constant
                 ? reordered(p, dims[i], data[i],
                             dnnl_primitive_desc_query_md(
                                 desc, i == A ? dnnl_query_src_md : dnnl_query_weights_md, 0),
                             &p->memory[i])
                 : plain(p, dims[i], data[i], &p->memory[i]);
    dnnl_primitive_desc_destroy(desc);
    return ok;
}

onednn_matmul *onednn_create(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                             bool constant_a)
{
    const dnnl_dims_t dims[N_MATRICES] = {{m, k}, {k, n}, {m, n}};
    const float *const data[N_MATRICES] = {a, b, NULL};
    onednn_matmul *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    if (make(p, dims, data, constant_a ? A : B)) return p;
    onednn_free(p);
    return NULL;
}

bool onednn_run(onednn_matmul *p, float *c)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->memory[A]},
                                    {DNNL_ARG_WEIGHTS, p->memory[B]},
                                    {DNNL_ARG_DST, p->memory[C]}};
    return good(dnnl_memory_set_data_handle(p->memory[C], c)) &&
           good(dnnl_primitive_execute(p->primitive, p->stream, 3, args)) &&
           good(dnnl_stream_wait(p->stream));
}

void onednn_free(onednn_matmul *p)
{
    if (!p) return;
    for (int i = 0; i < N_MATRICES; i++) dnnl_memory_destroy(p->memory[i]);
    dnnl_primitive_destroy(p->primitive);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
    free(p);
}

#else

onednn_matmul *onednn_create(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                             bool constant_a)
{
    (void)m, (void)n, (void)k, (void)a, (void)b, (void)constant_a;
    return NULL;
}

bool onednn_run(onednn_matmul *p, float *c)
{
    (void)p, (void)c;
    return false;
}

void onednn_free(onednn_matmul *p) { (void)p; }

#endif
