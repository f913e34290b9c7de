/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares names, ignoring the case of ASCII letters. The locale is not used, so that a selector
 * means the same device in every locale.
 */
#ifndef CLG_CAPS_WORDS_H
#define CLG_CAPS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline char words_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static inline bool words_equal_n(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (words_lower(a[i]) != words_lower(b[i])) return false;
    return true;
}

/* Returns whether name is exactly the n bytes of part. */
static inline bool words_equal(const char *name, const char *part, size_t n)
{
    return strlen(name) == n && words_equal_n(name, part, n);
}

/* Returns whether the n bytes of part occur in name. */
static inline bool words_contain_n(const char *name, const char *part, size_t n)
{
    size_t length = strlen(name);
    for (size_t i = 0; n <= length && i <= length - n; i++)
        if (words_equal_n(name + i, part, n)) return true;
    return false;
}

static inline bool words_contain(const char *name, const char *part)
{
    return words_contain_n(name, part, strlen(part));
}

static inline bool words_start(const char *name, const char *part)
{
    size_t n = strlen(part);
    return strlen(name) >= n && words_equal_n(name, part, n);
}

#endif
