/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements special_tokens.h.
 */
#include "text/special_tokens.h"

#include "base/files.h"
#include "base/memory.h"

#include <string.h>

static clg_status set_role(special_tokens *s, const char *key, size_t n_role, int32_t id)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strncmp(s->items[i].role, key, n_role) != 0 || s->items[i].role[n_role]) continue;
        s->items[i].id = id;
        return CLG_OK;
    }
    CLG_TRY(MEMORY_RESERVE(s->items, s->capacity, s->count + 1));
    char *role = memory_strndup(key, n_role);
    if (!role) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    s->items[s->count++] = (special_name){role, id};
    return CLG_OK;
}

/* Takes all members "ROLE_token" that are a token, or an object with one. */
static clg_status read_roles(special_tokens *s, const json_t *root, const added_tokens *added,
                             const token_model *m)
{
    static const char ending[] = "_token";
    enum { N_ENDING = sizeof ending - 1, MAX_ROLES = 64 };
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        const size_t n = strlen(key);
        const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
        if (n <= N_ENDING || strcmp(key + n - N_ENDING, ending) != 0 || !json_is_string(content) ||
            s->count >= MAX_ROLES)
            continue;
        const int32_t id = added_id(added, m, json_string_value(content));
        if (id >= 0) CLG_TRY(set_role(s, key, n - N_ENDING, id));
    }
    return CLG_OK;
}

clg_status special_read(const char *folder, const added_tokens *added, const token_model *m,
                        special_tokens *out_specials)
{
    static const char *const files[] = {"special_tokens_map.json", "tokenizer_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *path;
        json_t *root = NULL;
        CLG_TRY(file_join(folder, files[i], &path));
        clg_status status = file_exists(path) ? fields_read_file(path, 0, &root) : CLG_OK;
        if (status == CLG_OK && root) status = read_roles(out_specials, root, added, m);
        json_decref(root);
        memory_free(path);
        CLG_TRY(status);
    }
    return CLG_OK;
}

void special_deinit(special_tokens *s)
{
    for (size_t i = 0; i < s->count; i++) memory_free(s->items[i].role);
    memory_free(s->items);
    *s = (special_tokens){0};
}

int32_t special_find(const special_tokens *s, const char *role)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i].role, role) == 0) return s->items[i].id;
    return -1;
}
