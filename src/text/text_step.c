/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the reading of steps, text_step.h.
 */
#include "text/text_step.h"

#include "base/memory.h"
#include "text/models/vocabulary.h"
#include "text/unicode.h"

#include <string.h>

enum { MAX_STEPS = 64, MAX_DEPTH = 8 };

typedef struct step_reader {
    const char *sequence_key;
    const step_row *rows;
    size_t n_rows;
    step_list *list;
} step_reader;

static clg_status add_step(const step_reader *r, const step_row *row, const json_t *json)
{
    step_list *l = r->list;
    if (l->count >= MAX_STEPS)
        return error_set(CLG_ERROR_LIMIT, "there are more than %d steps", MAX_STEPS);
    CLG_TRY(MEMORY_RESERVE(l->items, l->capacity, l->count + 1));
    text_step *s = &l->items[l->count++];
    *s = (text_step){.row = row};
    return row->read ? row->read(json, s) : CLG_OK;
}

static clg_status read_step(const step_reader *r, const json_t *json, size_t depth)
{
    const char *type = NULL;
    const json_t *sequence;
    if (!json_is_object(json)) return error_set(CLG_ERROR_INVALID_MODEL, "it is not an object");
    CLG_TRY(field_string(json, "type", FIELD_REQUIRED, &type));
    for (size_t i = 0; i < r->n_rows; i++)
        if (strcmp(type, r->rows[i].type) == 0)
            return error_prefix(add_step(r, &r->rows[i], json), "%s", type);
    if (strcmp(type, "Sequence") != 0)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "the type '%.100s' is not supported",
                         type);
    if (depth >= MAX_DEPTH)
        return error_set(CLG_ERROR_LIMIT, "sequences are nested more than %d deep", MAX_DEPTH);
    CLG_TRY(field_array(json, r->sequence_key, FIELD_REQUIRED, &sequence));
    for (size_t i = 0; i < json_array_size(sequence); i++) {
        const clg_status status = read_step(r, json_array_get(sequence, i), depth + 1);
        if (status != CLG_OK) return error_prefix(status, "%s[%zu]", r->sequence_key, i);
    }
    return CLG_OK;
}

clg_status steps_read(const json_t *json, const char *sequence_key, const step_row *rows,
                      size_t n_rows, step_list *out_steps)
{
    const step_reader r = {sequence_key, rows, n_rows, out_steps};
    *out_steps = (step_list){0};
    return !json || json_is_null(json) ? CLG_OK : read_step(&r, json, 0);
}

void steps_deinit(step_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        pattern_free(l->items[i].pattern);
        memory_free(l->items[i].text);
        memory_free(l->items[i].data);
    }
    memory_free(l->items);
    *l = (step_list){0};
}

clg_status step_read_text(const json_t *json, const char *key, size_t max_chars, text_step *s)
{
    const char *text = NULL;
    size_t n_chars = 0;
    CLG_TRY(field_string(json, key, FIELD_REQUIRED, &text));
    for (const char *c = text; *c; c++) n_chars += !utf8_continues(*c);
    s->text_bytes = strlen(text);
    if (max_chars > 0 && n_chars != max_chars)
        return error_set(CLG_ERROR_INVALID_MODEL, "'%s' is not one character", key);
    if (s->text_bytes > MAX_TOKEN_BYTES)
        return error_set(CLG_ERROR_LIMIT, "'%s' has more than %d bytes", key, MAX_TOKEN_BYTES);
    s->text = memory_strdup(text);
    return s->text ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

clg_status step_read_pattern(const json_t *json, text_step *s)
{
    const json_t *one;
    const char *string = NULL, *regex = NULL;
    CLG_TRY(field_object(json, "pattern", FIELD_REQUIRED, &one));
    CLG_TRY(field_string(one, "String", FIELD_OPTIONAL, &string));
    if (string) return error_prefix(pattern_create_string(string, &s->pattern), "'pattern'");
    CLG_TRY(field_string(one, "Regex", FIELD_OPTIONAL, &regex));
    if (regex) return error_prefix(pattern_create_regex(regex, &s->pattern), "'pattern'");
    return error_set(CLG_ERROR_INVALID_MODEL, "'pattern' has neither a String nor a Regex");
}

clg_status step_read_metaspace(const json_t *json, text_step *s)
{
    static const char *const schemes[] = {
        [PREPEND_ALWAYS] = "always", [PREPEND_FIRST] = "first", [PREPEND_NEVER] = "never"};
    const char *scheme = schemes[PREPEND_ALWAYS];
    bool adds = true;
    s->splits = true;
    CLG_TRY(step_read_text(json, "replacement", 1, s));
    CLG_TRY(field_string(json, "prepend_scheme", FIELD_OPTIONAL, &scheme));
    CLG_TRY(field_bool(json, "add_prefix_space", FIELD_OPTIONAL, &adds));
    CLG_TRY(field_bool(json, "split", FIELD_OPTIONAL, &s->splits));
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(scheme, schemes[i]) != 0) continue;
        s->scheme = adds ? (prepend_scheme)i : PREPEND_NEVER;
        return CLG_OK;
    }
    return error_set(CLG_ERROR_INVALID_MODEL, "'prepend_scheme' is not always, first or never");
}
