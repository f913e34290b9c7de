/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements splitmix.h.
 */
#include "splitmix.h"

#define STEP UINT64_C(0x9e3779b97f4a7c15) /* 2^64 divided by the golden ratio */

uint64_t splitmix(uint64_t x)
{
    x += STEP;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

double splitmix_real(uint64_t *state)
{
    const uint64_t number = splitmix(*state);
    *state += STEP;
    return (double)(number >> 11) * 0x1p-53;
}
