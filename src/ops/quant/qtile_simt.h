/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiled kernels of 8-bit matrix products and convolutions for GPUs (cl/quant/qgemm_simt.cl,
 * cl/quant/qconv_simt.cl): limits, preludes and launches. Their operands are packed in 32-bit words
 * of four 8-bit values, adjacent along k.
 */
#ifndef CLG_OPS_QTILE_SIMT_H
#define CLG_OPS_QTILE_SIMT_H

#include "ops/lowering/simt_tile.h"

#define QTILE_WORD_BYTES 4
/* The largest length that the kernels support: they count in 32 bits and round lengths up to
 * tiles. */
#define QTILE_MAX_COUNT (INT32_MAX - 1024)

/* Computes the product of the factors, which are >= 0, in *out. Returns false where it exceeds
 * `max`; *out is 0 after an overflow. */
bool qtile_fits(size_t n, const int64_t *factors, int64_t max, int64_t *out);
#define QTILE_FITS(max, out, ...)                                                                  \
    qtile_fits(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}, max,  \
               out)

/* The tile with which packing programs are built: packing does not depend on tiles. */
extern const simt_tile qtile_packing;

typedef struct qtile_dtypes {
    clg_dtype a, b, y;
    bool a_zero, b_zero; /* whether each zero point is present */
} qtile_dtypes;

/* Returns the prelude of a tiled kernel, with one more parameter, name=value. */
const char *qtile_prelude(step_builder *b, const qtile_dtypes *d, const simt_tile *t, int dot,
                          const char *name, int value);
/* Sets the NDRange of a tiled kernel: a work-group for each tile of m x n results, and `deep` of
 * them (batches or groups). */
void qtile_range(lower_context *c, step *s, const simt_tile *t, int64_t m, int64_t n, int64_t deep);
/* Sets the NDRange of packing: a work-item for each of `across` contiguous words, in each of down *
 * deep rows. */
void qtile_packing_range(lower_context *c, step *s, int64_t across, int64_t down, int64_t deep);

#endif
