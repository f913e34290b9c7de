/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes float32 matrix products by oneDNN (libdnnl-dev, version 2), for comparison in
 * benchmarks. In a build without oneDNN, onednn_create returns NULL.
 */
#ifndef BENCH_PEER_ONEDNN_H
#define BENCH_PEER_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct onednn_matmul onednn_matmul;

/* Creates the product C [m,n] = A [m,k] x B [k,n], row-major, by the matmul primitive. The constant
 * matrix is converted here, once, to the layout that the primitive prefers; the other is read in
 * place. Returns NULL when oneDNN is missing or fails. `a` must stay valid if A is not constant,
 * `b` if B is not. Release with onednn_free. */
onednn_matmul *onednn_create(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                             bool constant_a);
/* Computes C, of m * n elements, into `c`, and waits for it. Returns false on failure. */
bool onednn_run(onednn_matmul *p, float *c);
void onednn_free(onednn_matmul *p);

#endif
