/* SPDX-License-Identifier: Apache-2.0
 *
 * A keyed permutation of 0 to n - 1: a Feistel network over the next power of four, applied again
 * to numbers beyond n - 1 (Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002).
 */
#include "train/data_order.h"

enum { N_ROUNDS = 6 };

/* Mixes all bits (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t permute(uint64_t key, unsigned half, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < N_ROUNDS; round++) {
        const uint64_t next = left ^ (mix(mix(key + round) ^ right) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t data_order_row(uint64_t seed, uint64_t epoch, uint64_t n_rows, uint64_t position)
{
    const uint64_t key = mix(mix(seed) + epoch);
    unsigned half = 1;
    while (half < 32 && (UINT64_C(1) << 2 * half) < n_rows) half++;
    do position = permute(key, half, position);
    while (position >= n_rows);
    return position;
}
