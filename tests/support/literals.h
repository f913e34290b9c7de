/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists written where they are, for calls that take a number and a list.
 */
#ifndef CLG_TESTS_LITERALS_H
#define CLG_TESTS_LITERALS_H

#include <stdint.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__})
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

#endif
