/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights from Philox 4x32-10, a counter-based generator (Salmon, Moraes, Dror and Shaw, Parallel
 * Random Numbers: As Easy as 1, 2, 3, 2011). All arithmetic is exact or correctly rounded, so that
 * a seed gives the same bits on every machine. See weights.h.
 */
#include "weights.h"

#include "options.h"

#include <math.h>
#include <string.h>

/* Replaces a counter by four random words. */
static void philox(uint32_t c[4], uint64_t key)
{
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 10; i++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ key0;
        c[1] = (uint32_t)p1;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ key1;
        c[3] = (uint32_t)p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* Fills with uniform numbers in (-bound, bound). part: 0 weights, 1 bias. Element i is word i % 4
 * of counter i / 4; u = (w / 256 + 1/2) / 2^24. */
static void fill(const weights_layer *layer, uint32_t part, double bound, float *to, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        const uint64_t counter = i / 4;
        uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), layer->index, part};
        philox(c, layer->seed);
        for (size_t k = 0; k < 4 && i + k < n; k++) {
            const double u = ((double)(c[k] >> 8) + 0.5) * 0x1p-24;
            to[i + k] = (float)((2 * u - 1) * bound);
        }
    }
}

int weights_scheme_of(const char *word, weights_scheme *out_scheme)
{
    static const char *const words[] = {"pytorch", "kaiming", "xavier", NULL};
    size_t i = 0;
    const int code = word ? option_word("--init", word, words, sizeof *words, &i) : CODE_DONE;
    *out_scheme = (weights_scheme)i;
    return code;
}

void weights_fill(const weights_layer *layer, float *weights, size_t n)
{
    double bound = 0;
    switch (layer->scheme) {
    case WEIGHTS_PYTORCH: bound = sqrt(1 / layer->fan_in); break;
    case WEIGHTS_KAIMING: bound = sqrt(6 / layer->fan_in); break;
    case WEIGHTS_XAVIER: bound = sqrt(6 / (layer->fan_in + layer->fan_out)); break;
    }
    fill(layer, 0, bound, weights, n);
}

void weights_fill_bias(const weights_layer *layer, float *bias, size_t n)
{
    if (layer->scheme == WEIGHTS_PYTORCH)
        fill(layer, 1, sqrt(1 / layer->fan_in), bias, n);
    else
        memset(bias, 0, n * sizeof *bias);
}
