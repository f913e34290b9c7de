/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiled kernels of 8-bit GEMMs and convolutions for GPUs (cl/quant/qgemm_simt.cl,
 * cl/quant/qconv_simt.cl): their limits, parameters and NDRanges. Operands are packed into 32-bit
 * words of four 8-bit values that are adjacent along k.
 */
#ifndef CLG_OPS_QTILE_SIMT_H
#define CLG_OPS_QTILE_SIMT_H

#include "ops/lowering/simt_tile.h"

#define QTILE_WORD_BYTES 4
/* The largest m, n or k: the kernels count in int32 up to the end of the last tile. */
#define QTILE_MAX_COUNT (INT32_MAX - 1024)

/* Sets *out to the product of n factors, which are >= 0, or to 0 after an overflow. Returns whether
 * the product is at most `max`. */
bool qtile_fits(size_t n, const int64_t *factors, int64_t max, int64_t *out);
#define QTILE_FITS(max, out, ...)                                                                  \
    qtile_fits(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}, max,  \
               out)

/* The tile for which packing programs are compiled. Packing does not depend on it: a fixed one
 * avoids further programs. */
extern const simt_tile qtile_packing;

/* Properties of the operands for which a tiled kernel is compiled. */
typedef struct qtile_dtypes {
    clg_dtype a, b, y;
    bool a_zero, b_zero; /* whether each zero point is present */
} qtile_dtypes;

/* Returns the macro definitions (prelude) of a tiled kernel, and one more: name=value. */
const char *qtile_prelude(step_builder *b, const qtile_dtypes *d, const simt_tile *t, int dot,
                          const char *name, int value);
/* Sets the NDRange of a tiled kernel: `deep` (batches or groups) times a work-group for each tile
 * of the m x n results. */
void qtile_range(lower_context *c, step *s, const simt_tile *t, int64_t m, int64_t n, int64_t deep);
/* Sets the NDRange of a packing kernel: a work-item for each of `across` contiguous words in each
 * of down * deep rows. */
void qtile_packing_range(lower_context *c, step *s, int64_t across, int64_t down, int64_t deep);

#endif
