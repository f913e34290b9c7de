/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements tokenizer.h.
 */
#include "text/tokenizer.h"

#include "base/files.h"
#include "base/memory.h"
#include "text/template.h"
#include "text/unicode.h"

#include <string.h>

/* ---- opening --------------------------------------------------------------------------------- */

static clg_status read_root(tokenizer *t, const json_t *root, step_work *w)
{
    const json_t *model = NULL;
    if (!json_is_object(root)) return error_set(CLG_ERROR_INVALID_MODEL, "it is not an object");
    CLG_TRY(field_object(root, "model", FIELD_REQUIRED, &model));
    CLG_TRY(error_prefix(model_read(model, &t->model), "model"));
    CLG_TRY(normalizer_read(json_object_get(root, "normalizer"), &t->normalizer));
    CLG_TRY(pretokenizer_read(json_object_get(root, "pre_tokenizer"), &t->pretokenizer));
    CLG_TRY(decoder_read(json_object_get(root, "decoder"), &t->decoder));
    t->has_decoder = json_is_object(json_object_get(root, "decoder"));
    CLG_TRY(added_read(root, &t->model, &t->normalizer, w, &t->added));
    return template_read(root, t->added.n_ids, &t->around);
}

static clg_status read_file(tokenizer *t, const char *path)
{
    json_t *root;
    step_work w = {.max_bytes = (size_t)1 << 20};
    CLG_TRY(pattern_search_create(w.max_bytes, &w.search));
    clg_status status = fields_read_file(path, 0, &root);
    if (status == CLG_OK) status = error_prefix(read_root(t, root, &w), "'%s'", path);
    json_decref(root);
    pattern_search_free(w.search);
    return status;
}

clg_status tokenizer_open(const char *path, tokenizer **out_tokenizer)
{
    char *file = NULL, *folder = NULL;
    *out_tokenizer = NULL;
    tokenizer *t = memory_zalloc(1, sizeof *t);
    if (!t) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&t->references);
    t->model.unknown = -1;
    const bool is_folder = file_is_folder(path);
    clg_status status = is_folder ? file_join(path, "tokenizer.json", &file) : CLG_OK;
    if (status == CLG_OK) status = read_file(t, is_folder ? file : path);
    if (status == CLG_OK && !is_folder) status = file_folder(path, &folder);
    if (status == CLG_OK)
        status = special_read(is_folder ? path : folder, &t->added, &t->model, &t->specials);
    memory_free(file);
    memory_free(folder);
    if (status == CLG_OK)
        *out_tokenizer = t;
    else
        tokenizer_release(t);
    return status;
}

tokenizer *tokenizer_retain(tokenizer *t)
{
    refcount_retain(&t->references);
    return t;
}

void tokenizer_release(tokenizer *t)
{
    if (!t || !refcount_release(&t->references)) return;
    model_deinit(&t->model);
    steps_deinit(&t->normalizer);
    steps_deinit(&t->pretokenizer);
    steps_deinit(&t->decoder);
    added_deinit(&t->added);
    memory_free(t->around.ids);
    special_deinit(&t->specials);
    memory_free(t);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

size_t tokenizer_size(const tokenizer *t) { return t->added.n_ids; }

const char *tokenizer_token(const tokenizer *t, int64_t id, size_t *out_bytes)
{
    if (id < 0 || (uint64_t)id >= t->added.n_ids) return NULL;
    const added_token *added = added_find(&t->added, (size_t)id);
    if (!added) return vocabulary_token(&t->model.tokens, (size_t)id, out_bytes);
    *out_bytes = strlen(added->content);
    return added->content;
}

int32_t tokenizer_find(const tokenizer *t, const char *token)
{
    return added_id(&t->added, &t->model, token);
}

bool tokenizer_is_special(const tokenizer *t, int64_t id)
{
    const added_token *added =
        id < 0 || (uint64_t)id > SIZE_MAX ? NULL : added_find(&t->added, (size_t)id);
    return added && added->is_special;
}

int32_t tokenizer_special(const tokenizer *t, const char *role)
{
    return special_find(&t->specials, role);
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Texts between two steps may grow: by what NFKC makes of the worst character, and by what files
 * put between characters. */
static size_t max_bytes_of(size_t n_bytes)
{
    const size_t most = SIZE_MAX / 64 - 65536;
    return 65536 + 64 * (n_bytes < most ? n_bytes : most);
}

/* The texts of one call. */
typedef struct encoding {
    const tokenizer *t;
    step_work work;
    piece_list pieces, spare;
    strbuf text; /* for normalizers to work in */
} encoding;

/* Divides the text into added tokens and normalized pieces. */
static clg_status extract(encoding *e, const char *text, size_t n_bytes)
{
    piece_list *plain = &e->spare, *out = &e->pieces;
    if (utf8_valid_bytes(text, n_bytes) == n_bytes)
        strbuf_append_bytes(&plain->text, text, n_bytes);
    else
        utf8_append_repaired(&plain->text, text, n_bytes);
    CLG_TRY(plain->text.status);
    CLG_TRY(added_split(&e->t->added, false, &e->work, plain, 0, true));
    for (size_t i = 0; i < plain->count; i++) {
        const piece *p = &plain->items[i];
        const size_t start = out->text.size_bytes;
        e->work.is_first = p->is_first;
        if (p->id >= 0) {
            CLG_TRY(pieces_copy(out, plain, p));
            continue;
        }
        CLG_TRY(normalizer_apply(&e->t->normalizer, &e->work, strbuf_data(&plain->text) + p->start,
                                 p->end - p->start, &e->text, &out->text));
        CLG_TRY(added_split(&e->t->added, true, &e->work, out, start, e->work.is_first));
    }
    return CLG_OK;
}

static clg_status encode_pieces(encoding *e, id_list *out_ids)
{
    model_work work;
    clg_status status = model_work_init(&work, e->pieces.count);
    const char *text = strbuf_data(&e->pieces.text);
    for (size_t i = 0; i < e->pieces.count && status == CLG_OK; i++) {
        const piece *p = &e->pieces.items[i];
        status = p->id >= 0 ? ids_add(out_ids, p->id)
                            : model_encode(&e->t->model, &work, text + p->start, p->end - p->start,
                                           out_ids);
    }
    model_work_deinit(&work);
    return status;
}

/* Puts the special tokens around those of the text. */
static clg_status surround(const tokenizer *t, bool adds_special, const id_list *text,
                           id_list *out_ids)
{
    for (size_t i = 0; i < t->around.count; i++) {
        const int64_t id = t->around.ids[i];
        if (id >= 0 && adds_special) CLG_TRY(ids_add(out_ids, id));
        if (id >= 0 || text->count == 0) continue;
        CLG_TRY(MEMORY_RESERVE(out_ids->ids, out_ids->capacity, out_ids->count + text->count));
        memcpy(out_ids->ids + out_ids->count, text->ids, text->count * sizeof *text->ids);
        out_ids->count += text->count;
    }
    return CLG_OK;
}

clg_status tokenizer_encode(const tokenizer *t, const char *text, size_t n_bytes, bool adds_special,
                            id_list *out_ids)
{
    encoding e = {.t = t, .work = {.max_bytes = max_bytes_of(n_bytes)}};
    id_list ids = {0};
    pieces_init(&e.pieces, e.work.max_bytes);
    pieces_init(&e.spare, e.work.max_bytes);
    strbuf_init(&e.text, e.work.max_bytes);
    clg_status status = pattern_search_create(n_bytes, &e.work.search);
    if (status == CLG_OK) status = extract(&e, text, n_bytes);
    if (status == CLG_OK) status = steps_divide(&t->pretokenizer, &e.work, &e.pieces, &e.spare);
    if (status == CLG_OK) status = encode_pieces(&e, &ids);
    if (status == CLG_OK) status = surround(t, adds_special, &ids, out_ids);
    memory_free(ids.ids);
    memory_free(e.work.matches);
    pattern_search_free(e.work.search);
    pieces_deinit(&e.pieces);
    pieces_deinit(&e.spare);
    strbuf_deinit(&e.text);
    return status;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static clg_status add_token_text(const tokenizer *t, int64_t id, bool skips_special,
                                 piece_list *out)
{
    size_t n_bytes = 0;
    const char *token = tokenizer_token(t, id, &n_bytes);
    if (!token) return CLG_OK;
    const added_token *added = added_find(&t->added, (size_t)id);
    if (added && added->is_skipped && skips_special) return CLG_OK;
    if (added && added->is_normalized && added->decoded) {
        token = added->decoded;
        n_bytes = strlen(token);
    }
    const size_t start = out->text.size_bytes;
    strbuf_append_bytes(&out->text, token, n_bytes);
    return pieces_end(out, start, false);
}

clg_status tokenizer_decode(const tokenizer *t, const int64_t *ids, size_t n_ids,
                            bool skips_special, strbuf *out_text)
{
    const size_t most = SIZE_MAX / (4 * MAX_TOKEN_BYTES) - 1;
    step_work w = {.max_bytes = (n_ids < most ? n_ids + 1 : most) * 4 * MAX_TOKEN_BYTES};
    piece_list tokens, spare;
    pieces_init(&tokens, w.max_bytes);
    pieces_init(&spare, w.max_bytes);
    tokens.keeps_empty = spare.keeps_empty = true;
    clg_status status = pattern_search_create(n_ids, &w.search);
    for (size_t i = 0; i < n_ids && status == CLG_OK; i++)
        status = add_token_text(t, ids[i], skips_special, &tokens);
    if (status == CLG_OK) status = steps_divide(&t->decoder, &w, &tokens, &spare);
    for (size_t i = 0; i < tokens.count && status == CLG_OK; i++) {
        const piece *p = &tokens.items[i];
        if (i > 0 && !t->has_decoder) strbuf_append(out_text, " ");
        strbuf_append_bytes(out_text, strbuf_data(&tokens.text) + p->start, p->end - p->start);
        status = out_text->status;
    }
    pattern_search_free(w.search);
    pieces_deinit(&tokens);
    pieces_deinit(&spare);
    return status;
}
