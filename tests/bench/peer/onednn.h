/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes products of float32 matrices by oneDNN (libdnnl-dev, version 2), to compare with.
 * Without it at build time onednn_create returns an error.
 */
#ifndef BENCH_PEER_ONEDNN_H
#define BENCH_PEER_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct onednn_matmul onednn_matmul;

/* C [m,n] = A [m,k] x B [k,n], row after row, by the matmul primitive. A constant matrix is put
 * into the layout that the primitive likes best, once and here; the other is read as it is.
 * NULL when there is no oneDNN or it fails. `a` must live on if A is not constant, `b` if B is
 * not. onednn_free gives it back. */
onednn_matmul *onednn_create(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                             bool constant_a);
/* Computes and waits. `c` has m * n elements. */
bool onednn_run(onednn_matmul *p, float *c);
void onednn_free(onednn_matmul *p);

#endif
