/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes products of float32 matrices by oneDNN (libdnnl-dev, version 2), to compare with.
 * Without it at build time onednn_create returns NULL.
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
/* Computes C into `c`, of m * n elements, and waits; returns false on failure. */
bool onednn_run(onednn_matmul *p, float *c);
void onednn_free(onednn_matmul *p);

#endif
