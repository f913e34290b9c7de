/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses values of options: words of a list, numbers, bytes, shapes.
 */
#include "options.h"

#include "output.h"
#include "suggestion.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool option_pair(const char *text, char **out_name, const char **out_value)
{
    const char *equals = strchr(text, '=');
    *out_name = NULL;
    *out_value = text;
    if (!equals) return false;
    size_t n = (size_t)(equals - text);
    *out_name = must_alloc(n + 1, 1);
    memcpy(*out_name, text, n);
    *out_value = equals + 1;
    return true;
}

static const char *name_at(const char *const *names, size_t stride, size_t i)
{
    return *(const char *const *)(const void *)((const char *)names + i * stride);
}

int option_word(const char *what, const char *word, const char *const *names, size_t stride,
                size_t *out_index)
{
    const char *name = names[0];
    size_t i = 0;
    *out_index = 0;
    for (; name && strcmp(name, word) != 0; i++) name = name_at(names, stride, i + 1);
    if (name) {
        *out_index = i;
        return CODE_DONE;
    }
    if (!names[0]) return fail_usage("%s: there is no '%s'", what, printable(word));
    char *list = must_copy(names[0]);
    for (i = 1; (name = name_at(names, stride, i)) != NULL; i++) {
        char *longer = must_printf("%s, %s", list, name);
        free(list);
        list = longer;
    }
    const int code = fail_usage("%s: there is no '%s': it takes %s", what, printable(word), list);
    free(list);
    suggestion s;
    suggestion_begin(&s, word);
    for (i = 0; (name = name_at(names, stride, i)) != NULL; i++) suggestion_offer(&s, name);
    (void)suggestion_hint(&s);
    return code;
}

int option_size(const char *what, const char *text, size_t min, size_t *out_size)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    bool is_number = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    if (!is_number || n > (unsigned long long)INT64_MAX || n < min) {
        return fail_usage("%s takes a whole number of at least %zu, not '%s'", what, min, text);
    }
    *out_size = (size_t)n;
    return CODE_DONE;
}

int option_bytes(const char *what, const char *text, uint64_t *out_bytes)
{
    static const char units[] = "kmgtKMGT";
    char *copy = must_copy(text);
    size_t n = strlen(copy), number = 0;
    const char *unit = n > 0 ? strchr(units, copy[n - 1]) : NULL;
    uint64_t factor = 1;
    if (unit) copy[n - 1] = '\0';
    for (ptrdiff_t i = 0; unit && i <= (unit - units) % 4; i++) factor *= 1000;
    int code = option_size(what, copy, 1, &number);
    free(copy);
    if (code != CODE_DONE || number > UINT64_MAX / factor) {
        return fail_usage("%s takes bytes, as 1000000, 64M or 1G, not '%s'", what, text);
    }
    *out_bytes = number * factor;
    return CODE_DONE;
}

int option_real(const char *what, const char *text, double *out_real)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number)) {
        return fail_usage("%s takes a number, not '%s'", what, text);
    }
    *out_real = number;
    return CODE_DONE;
}

int option_sizes(const char *what, const char *text, size_t **out_sizes, size_t *out_n)
{
    char *copy = must_copy(text), *rest = copy, *part;
    size_t n = 0;
    int code = CODE_DONE;
    *out_sizes = must_alloc(strlen(text) + 1, sizeof **out_sizes);
    while (code == CODE_DONE && (part = split_next(&rest, ',')) != NULL) {
        code = option_size(what, part, 1, &(*out_sizes)[n++]);
    }
    free(copy);
    *out_n = n;
    return code;
}

int option_dims(const char *what, const char *text, size_t *out_rank,
                int64_t out_dims[CLG_MAX_RANK])
{
    char *copy = must_copy(text), *rest = copy, *part;
    size_t rank = 0;
    int code = CODE_DONE;
    if (strcmp(text, "scalar") == 0) rest = NULL;
    while (code == CODE_DONE && (part = split_next(&rest, 'x')) != NULL) {
        size_t n = 0;
        if (rank == CLG_MAX_RANK) {
            code = fail_usage("%s: '%s' has more than %d dimensions", what, text, CLG_MAX_RANK);
            break;
        }
        code = option_size(what, part, 0, &n);
        out_dims[rank++] = (int64_t)n;
    }
    free(copy);
    *out_rank = rank;
    return code;
}
