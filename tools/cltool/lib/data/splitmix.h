/* SPDX-License-Identifier: Apache-2.0
 *
 * The random generator splitmix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number
 * Generators, 2014): its numbers follow from the seed alone, and are the same on every machine.
 */
#ifndef CLTOOL_SPLITMIX_H
#define CLTOOL_SPLITMIX_H

#include <stdint.h>

/* Returns the generator's number for the state x, which mixes all of its bits. */
uint64_t splitmix(uint64_t x);
/* Returns a number in [0, 1) and moves the state on. */
double splitmix_real(uint64_t *state);

#endif
