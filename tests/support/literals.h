/* SPDX-License-Identifier: Apache-2.0
 *
 * Array literals of strings and dimensions, for calls that take a count and an array.
 */
#ifndef CLG_TESTS_LITERALS_H
#define CLG_TESTS_LITERALS_H

#include <stdint.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__})
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

#endif
