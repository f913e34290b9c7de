/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements limit_words.h with a table of limits.
 */
#include "limit_words.h"

#include "options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum limit_unit { UNIT_BYTES, UNIT_STEPS, UNIT_TIME } limit_unit;

static const struct limit_row {
    const char *name;
    limit_unit unit;
    size_t offset;
} rows[] = {{"memory", UNIT_BYTES, offsetof(clg_limits, max_memory_bytes)},
            {"steps", UNIT_STEPS, offsetof(clg_limits, max_steps)},
            {"compile", UNIT_TIME, offsetof(clg_limits, max_compile_ms)},
            {"run", UNIT_TIME, offsetof(clg_limits, max_run_ms)}};

/* Parses a time such as "30s" or "500ms". */
static int read_time(const char *text, uint64_t *out_ms)
{
    char *copy = must_copy(text);
    const size_t n = strlen(copy);
    const bool is_ms = n > 2 && strcmp(copy + n - 2, "ms") == 0;
    size_t number = 0;
    int code = CODE_USAGE;
    if (n > 1 && copy[n - 1] == 's') {
        copy[n - (is_ms ? 2 : 1)] = '\0';
        code = option_size("--limits", copy, 1, &number);
    }
    free(copy);
    if (code != CODE_DONE || number > UINT64_MAX / 1000)
        return fail_usage("--limits takes times as 30s or 500ms, not '%s'", text);
    *out_ms = is_ms ? number : (uint64_t)number * 1000;
    return CODE_DONE;
}

static int read_limit(const char *name, const char *text, clg_limits *limits)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t *field = (uint64_t *)(void *)((char *)limits + rows[i].offset);
        size_t n = 0;
        if (strcmp(rows[i].name, name) != 0) continue;
        if (rows[i].unit == UNIT_BYTES) return option_bytes("--limits memory", text, field);
        if (rows[i].unit == UNIT_TIME) return read_time(text, field);
        const int code = option_size("--limits steps", text, 1, &n);
        *field = n;
        return code;
    }
    return fail_usage("there is no limit '%s': memory, steps, compile and run, or 'untrusted'",
                      name);
}

int limits_parse(const char *text, clg_limits *out_limits)
{
    char *copy = must_copy(text), *rest = copy, *part;
    int code = CODE_DONE;
    if (!out_limits->struct_size) *out_limits = (clg_limits)CLG_LIMITS_INIT;
    while (code == CODE_DONE && (part = split_next(&rest, ',')) != NULL) {
        char *name = NULL;
        const char *value;
        if (strcmp(part, "untrusted") == 0)
            *out_limits = (clg_limits)CLG_LIMITS_UNTRUSTED;
        else
            code = option_pair(part, &name, &value)
                       ? read_limit(name, value, out_limits)
                       : fail_usage("--limits takes LIMIT=N or 'untrusted', not '%s'", part);
        free(name);
    }
    free(copy);
    return code;
}
