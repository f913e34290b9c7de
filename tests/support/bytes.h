/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates test data for parsers: decodes hexadecimal, truncates data at every length, and changes
 * every byte. Data are passed in allocations of exactly their size, so that the address sanitizer
 * detects reads beyond the end.
 */
#ifndef CLG_TESTS_BYTES_H
#define CLG_TESTS_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* Decodes lower-case hexadecimal. Returns the bytes, which the caller frees with free(), and their
 * number. */
uint8_t *bytes_from_hex(const char *hex, size_t *out_n);

typedef void (*bytes_check)(void *user, const uint8_t *data, size_t n);
/* Calls check with every proper prefix of the data. */
void bytes_each_prefix(const uint8_t *data, size_t n, bytes_check check, void *user);
/* Calls check with a copy of the data in which one byte is changed: five changes for every byte. */
void bytes_each_damage(const uint8_t *data, size_t n, bytes_check check, void *user);

#endif
