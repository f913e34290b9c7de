/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores self-test results, and parses and prints their text format. See selftest_records.h.
 */
#include "session/selftest/selftest_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "clgraph selftest 1\n"
#define WORD_BYTES 64 /* longest word of the text format, with its NUL */

const selftest_record *selftest_records_find(const selftest_records *t, hash128 key)
{
    const size_t at = hash_map_get(&t->index, &key, sizeof key);
    return at == HASH_MAP_NONE ? NULL : &t->items[at];
}

clg_status selftest_records_set(selftest_records *t, const selftest_record *v)
{
    size_t at = hash_map_get(&t->index, &v->key, sizeof v->key);
    selftest_record kept = *v;
    kept.impl = arena_strdup(&t->memory, v->impl);
    kept.kernel = arena_strdup(&t->memory, v->kernel);
    if (!kept.impl || !kept.kernel) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (at == HASH_MAP_NONE) {
        CLG_TRY(MEMORY_RESERVE(t->items, t->capacity, t->count + 1));
        CLG_TRY(hash_map_set(&t->index, &v->key, sizeof v->key, t->count));
        at = t->count++;
    }
    t->items[at] = kept;
    return CLG_OK;
}

/* Copies the next word of a line to buffer and skips the blank after it. Gives "" at the end of the
 * line and for a word that is too long. */
static const char *next_word(const char **line, char buffer[WORD_BYTES])
{
    const size_t n = strcspn(*line, " \n");
    const size_t kept = n < WORD_BYTES ? n : 0;
    (void)snprintf(buffer, WORD_BYTES, "%.*s", (int)kept, *line);
    *line += n;
    if (**line == ' ') ++*line;
    return buffer;
}

static bool read_key(const char *hex, hash128 *out)
{
    char half[17];
    if (strspn(hex, "0123456789abcdef") != 32 || hex[32]) return false;
    (void)snprintf(half, sizeof half, "%.16s", hex);
    out->high = strtoull(half, NULL, 16);
    out->low = strtoull(hex + 16, NULL, 16);
    return true;
}

static bool read_line(selftest_records *t, const char *line)
{
    char word[WORD_BYTES], impl[WORD_BYTES];
    selftest_record v = {0};
    v.passed = strcmp(next_word(&line, word), "passed") == 0;
    if ((!v.passed && strcmp(word, "failed") != 0) || !read_key(next_word(&line, word), &v.key))
        return false;
    v.worst = strtod(next_word(&line, word), NULL);
    v.bound = strtod(next_word(&line, word), NULL);
    v.impl = next_word(&line, impl);
    v.kernel = next_word(&line, word);
    if (!*v.impl || !*v.kernel || (*line && *line != '\n')) return false;
    return selftest_records_find(t, v.key) || selftest_records_set(t, &v) == CLG_OK;
}

bool selftest_records_parse(selftest_records *t, const char *lines)
{
    if (strncmp(lines, HEADER, strlen(HEADER)) != 0) return false;
    for (lines += strlen(HEADER); *lines;) {
        if (!read_line(t, lines)) return false;
        lines += strcspn(lines, "\n");
        if (*lines) lines++;
    }
    return true;
}

void selftest_records_format(const selftest_records *t, strbuf *out)
{
    strbuf_append(out, HEADER);
    for (size_t i = 0; i < t->count; i++) {
        const selftest_record *v = &t->items[i];
        strbuf_printf(out, "%s %016" PRIx64 "%016" PRIx64 " %.3g %.3g %s %s\n",
                      v->passed ? "passed" : "failed", v->key.high, v->key.low, v->worst, v->bound,
                      v->impl, v->kernel);
    }
}

void selftest_records_deinit(selftest_records *t)
{
    hash_map_deinit(&t->index);
    memory_free(t->items);
    arena_deinit(&t->memory);
}
