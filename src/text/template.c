/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements template.h. Each processor puts ids around those of the one before, so all of them
 * together are one list.
 */
#include "text/template.h"

#include "base/memory.h"

#include <string.h>

enum { MAX_IDS = 4096, MAX_PROCESSORS = 64, MAX_DEPTH = 8 };

/* The ids so far, and those of the processor that is read. */
typedef struct template_reader {
    size_t n_ids, n_processors;
    id_list *before, now;
} template_reader;

static clg_status put(template_reader *r, const json_t *id)
{
    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        (size_t)json_integer_value(id) >= r->n_ids)
        return error_set(CLG_ERROR_INVALID_MODEL, "an id is not a number below %zu", r->n_ids);
    if (r->now.count >= MAX_IDS)
        return error_set(CLG_ERROR_LIMIT, "there are more than %d ids", MAX_IDS);
    return ids_add(&r->now, json_integer_value(id));
}

static clg_status put_text(template_reader *r)
{
    if (r->now.count + r->before->count > MAX_IDS)
        return error_set(CLG_ERROR_LIMIT, "there are more than %d ids", MAX_IDS);
    for (size_t i = 0; i < r->before->count; i++) CLG_TRY(ids_add(&r->now, r->before->ids[i]));
    return CLG_OK;
}

/* Puts the id of a member [token, id]. */
static clg_status put_pair(template_reader *r, const json_t *json, const char *key)
{
    const json_t *pair;
    CLG_TRY(field_array(json, key, FIELD_REQUIRED, &pair));
    return error_prefix(put(r, json_array_get(pair, 1)), "'%s'", key);
}

static clg_status read_around(template_reader *r, const json_t *json)
{
    CLG_TRY(put_pair(r, json, "cls"));
    CLG_TRY(put_text(r));
    return put_pair(r, json, "sep");
}

static clg_status put_special(template_reader *r, const json_t *special, const char *name)
{
    const json_t *token = NULL, *ids;
    CLG_TRY(field_object(special, name, FIELD_REQUIRED, &token));
    CLG_TRY(field_array(token, "ids", FIELD_REQUIRED, &ids));
    for (size_t i = 0; i < json_array_size(ids); i++) CLG_TRY(put(r, json_array_get(ids, i)));
    return CLG_OK;
}

static clg_status read_template(template_reader *r, const json_t *json)
{
    const json_t *single, *special = NULL;
    CLG_TRY(field_array(json, "single", FIELD_REQUIRED, &single));
    CLG_TRY(field_object(json, "special_tokens", FIELD_OPTIONAL, &special));
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *one = json_array_get(single, i), *part = NULL;
        const char *id = "";
        clg_status status = field_object(one, "SpecialToken", FIELD_OPTIONAL, &part);
        const bool is_special = part;
        if (status == CLG_OK && !part)
            status = field_object(one, "Sequence", FIELD_REQUIRED, &part);
        if (status == CLG_OK) status = field_string(part, "id", FIELD_REQUIRED, &id);
        if (status == CLG_OK && !is_special && strcmp(id, "A") != 0)
            status =
                error_set(CLG_ERROR_INVALID_MODEL, "the sequence '%.100s' of a single one", id);
        if (status == CLG_OK) status = is_special ? put_special(r, special, id) : put_text(r);
        if (status != CLG_OK) return error_prefix(status, "single[%zu]", i);
    }
    return CLG_OK;
}

static clg_status read_nothing(template_reader *r, const json_t *json)
{
    (void)json;
    return put_text(r); /* ByteLevel's processor changes offsets only */
}

static clg_status read_processor(template_reader *r, const json_t *json, size_t depth)
{
    static const struct {
        const char *type;
        clg_status (*read)(template_reader *r, const json_t *json);
    } rows[] = {{"TemplateProcessing", read_template},
                {"ByteLevel", read_nothing},
                {"BertProcessing", read_around},
                {"RobertaProcessing", read_around}};
    const char *type = NULL;
    const json_t *sequence;
    if (!json_is_object(json)) return error_set(CLG_ERROR_INVALID_MODEL, "it is not an object");
    CLG_TRY(field_string(json, "type", FIELD_REQUIRED, &type));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(type, rows[i].type) != 0) continue;
        if (r->n_processors++ >= MAX_PROCESSORS)
            return error_set(CLG_ERROR_LIMIT, "there are more than %d processors", MAX_PROCESSORS);
        r->now = (id_list){0};
        const clg_status status = rows[i].read(r, json);
        memory_free(r->before->ids);
        *r->before = r->now;
        return error_prefix(status, "%s", type);
    }
    if (strcmp(type, "Sequence") != 0)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "the type '%.100s' is not supported",
                         type);
    if (depth >= MAX_DEPTH)
        return error_set(CLG_ERROR_LIMIT, "sequences are nested more than %d deep", MAX_DEPTH);
    CLG_TRY(field_array(json, "processors", FIELD_REQUIRED, &sequence));
    for (size_t i = 0; i < json_array_size(sequence); i++) {
        const clg_status status = read_processor(r, json_array_get(sequence, i), depth + 1);
        if (status != CLG_OK) return error_prefix(status, "processors[%zu]", i);
    }
    return CLG_OK;
}

clg_status template_read(const json_t *root, size_t n_ids, id_list *out_template)
{
    const json_t *json = json_object_get(root, "post_processor");
    *out_template = (id_list){0};
    CLG_TRY(ids_add(out_template, TEMPLATE_TEXT));
    if (!json || json_is_null(json)) return CLG_OK;
    template_reader r = {.n_ids = n_ids, .before = out_template};
    return error_prefix(read_processor(&r, json, 0), "post_processor");
}
