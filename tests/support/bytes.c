/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates test data for parsers. See bytes.h.
 */
#include "support/bytes.h"

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *copy_exactly(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    if (n > 0) memcpy(copy, data, n);
    return copy;
}

static uint8_t digit(char c) { return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10); }

uint8_t *bytes_from_hex(const char *hex, size_t *out_n)
{
    *out_n = strlen(hex) / 2;
    uint8_t *bytes = malloc(*out_n > 0 ? *out_n : 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < *out_n; i++)
        bytes[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    return bytes;
}

void bytes_each_prefix(const uint8_t *data, size_t n, bytes_check check, void *user)
{
    for (size_t length = 0; length < n; length++) {
        uint8_t *copy = copy_exactly(data, length);
        check(user, copy, length);
        free(copy);
    }
}

void bytes_each_damage(const uint8_t *data, size_t n, bytes_check check, void *user)
{
    static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x20, 0x55};
    uint8_t *copy = copy_exactly(data, n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < sizeof changes; j++) {
            copy[i] = data[i] ^ changes[j];
            check(user, copy, n);
        }
        copy[i] = data[i];
    }
    free(copy);
}
