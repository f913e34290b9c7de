/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes test data for parsers: decodes hexadecimal, truncates it at every length, damages every
 * byte. Blocks have exactly their stated size, so that the address sanitizer detects reads beyond
 * the end.
 */
#ifndef CLG_TESTS_BYTES_H
#define CLG_TESTS_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* Decodes lower-case hexadecimal; returns the bytes, to be released with free. */
uint8_t *bytes_from_hex(const char *hex, size_t *out_n);

typedef void (*bytes_check)(void *user, const uint8_t *data, size_t n);
/* Calls check with every proper prefix of the data. */
void bytes_each_prefix(const uint8_t *data, size_t n, bytes_check check, void *user);
/* Calls check with the data after changing one byte, for every byte and five changes of it. */
void bytes_each_damage(const uint8_t *data, size_t n, bytes_check check, void *user);

#endif
