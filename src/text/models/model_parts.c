/* SPDX-License-Identifier: Apache-2.0
 *
 * What the models of token_model.h have in common.
 */
#include "text/models/token_model.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

clg_status model_read_vocab(const json_t *json, token_model *m)
{
    const json_t *vocab, *value;
    const char *token;
    clg_status status = CLG_OK;
    CLG_TRY(field_object(json, "vocab", FIELD_REQUIRED, &vocab));
    const size_t n = json_object_size(vocab);
    const char **tokens = memory_zalloc(n, sizeof *tokens); /* by id */
    if (!tokens) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    json_object_foreach((json_t *)vocab, token, value)
    {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id >= 0 && (size_t)id < n && !tokens[id]) {
            tokens[id] = token;
            continue;
        }
        status =
            error_set(CLG_ERROR_INVALID_MODEL,
                      "'vocab': the token '%.100s' has no separate id from 0 to %zu", token, n - 1);
        break;
    }
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        status = vocabulary_append(&m->tokens, tokens[i], strlen(tokens[i]));
    memory_free(tokens);
    return status == CLG_OK ? vocabulary_index(&m->tokens) : status;
}

void model_find_bytes(token_model *m)
{
    for (unsigned i = 0; i < 256; i++) {
        char name[8];
        const int n = snprintf(name, sizeof name, "<0x%02X>", i);
        m->byte_ids[i] = vocabulary_find(&m->tokens, name, (size_t)n);
    }
}

clg_status model_read_token(const json_t *json, const char *key, const token_model *m,
                            int32_t *out_id)
{
    const char *name = NULL;
    *out_id = -1;
    CLG_TRY(field_string(json, key, FIELD_OPTIONAL, &name));
    if (name) *out_id = vocabulary_find(&m->tokens, name, strlen(name));
    return CLG_OK;
}

clg_status model_read_text(const json_t *json, const char *key, char **out_text, size_t *out_bytes)
{
    const char *text = "";
    CLG_TRY(field_string(json, key, FIELD_OPTIONAL, &text));
    *out_bytes = strlen(text);
    if (*out_bytes > MAX_TOKEN_BYTES)
        return error_set(CLG_ERROR_LIMIT, "'%s' has more than %d bytes", key, MAX_TOKEN_BYTES);
    *out_text = memory_strdup(text);
    return *out_text ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

clg_status ids_add(id_list *l, int64_t id)
{
    if (l->count == l->capacity) CLG_TRY(MEMORY_RESERVE(l->ids, l->capacity, l->count + 1));
    l->ids[l->count++] = id;
    return CLG_OK;
}

clg_status model_add_unknown(const token_model *m, id_list *out_ids)
{
    if (m->unknown >= 0) return ids_add(out_ids, m->unknown);
    return error_set(CLG_ERROR_DATA,
                     "the text has a character that is not in the vocabulary, which has no token "
                     "for unknown ones");
}
