/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool tokenize: the ids of a text, or the text of ids, by a tokenizer.json. No device is used.
 */
#include "cltool.h"

#include "names.h"
#include "output.h"
#include "standard_streams.h"

#include <clgraph/tokenizer.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct tokenize {
    const options *options;
    clg_tokenizer *tokenizer;
    int64_t *ids;
    size_t n_ids;
} tokenize;

/* ---- the tokenizer itself -------------------------------------------------------------------- */

static int describe(const tokenize *t)
{
    static const char *const roles[] = {"bos", "eos", "unk", "pad", "sep", "cls", "mask"};
    const size_t n = clg_tokenizer_size(t->tokenizer);
    json_t *json = json_pack("{s:I, s:{}}", "size", (json_int_t)n, "special");
    if (!t->options->json) (void)printf("%zu tokens\n", n);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        int64_t id;
        if (clg_tokenizer_special_id(t->tokenizer, roles[i], &id) != CLG_OK) continue;
        (void)json_object_set_new(json_object_get(json, "special"), roles[i],
                                  json_integer((json_int_t)id));
        if (!t->options->json)
            (void)printf("%s %" PRId64 " %s\n", roles[i], id,
                         printable(clg_tokenizer_token(t->tokenizer, id)));
    }
    if (t->options->json) return output_json(json);
    json_decref(json);
    return CODE_DONE;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static int print_ids(const tokenize *t)
{
    json_t *ids = json_array(), *tokens = json_array();
    for (size_t i = 0; i < t->n_ids; i++) {
        const char *token = clg_tokenizer_token(t->tokenizer, t->ids[i]);
        if (t->options->json) {
            (void)json_array_append_new(ids, json_integer((json_int_t)t->ids[i]));
            (void)json_array_append_new(tokens, output_json_text(token));
        } else if (t->options->verbose > 0) {
            (void)printf("%8" PRId64 "  %s\n", t->ids[i], printable(token));
        } else {
            (void)printf("%s%" PRId64, i > 0 ? " " : "", t->ids[i]);
        }
    }
    if (t->options->json) return output_json(json_pack("{s:o, s:o}", "ids", ids, "tokens", tokens));
    json_decref(ids);
    json_decref(tokens);
    if (t->options->verbose == 0) (void)putchar('\n');
    return CODE_DONE;
}

static int encode(tokenize *t, const char *argument)
{
    char *input = NULL;
    const char *text = argument;
    size_t n_bytes = strlen(argument);
    int code = CODE_DONE;
    if (is_standard(argument)) {
        code = standard_input_text(&input, &n_bytes);
        text = input;
    }
    if (code == CODE_DONE) {
        const clg_status status = clg_tokenizer_encode(t->tokenizer, text, n_bytes,
                                                       !t->options->no_special, &t->ids, &t->n_ids);
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    free(input);
    return code == CODE_DONE ? print_ids(t) : code;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Reads "1,2 3" into an array; *out_ids is freed with free(). */
static int read_ids(const char *words, int64_t **out_ids, size_t *out_n)
{
    int64_t *ids = must_alloc(strlen(words) + 1, sizeof *ids);
    size_t n = 0;
    *out_ids = ids;
    *out_n = 0;
    for (const char *at = words + strspn(words, ", \n"); *at;) {
        char *end;
        errno = 0;
        ids[n++] = strtoll(at, &end, 10);
        if (end == at || errno || (*end && !strchr(", \n", *end)))
            return fail_usage("--decode: '%s' is not a list of ids, as in 1,2,3", printable(words));
        at = end + strspn(end, ", \n");
    }
    *out_n = n;
    return CODE_DONE;
}

static int decode(const tokenize *t)
{
    int64_t *ids;
    size_t n_ids, n_bytes;
    char *text = NULL;
    int code = read_ids(t->options->decode, &ids, &n_ids);
    if (code == CODE_DONE) {
        const clg_status status =
            clg_tokenizer_decode(t->tokenizer, ids, n_ids, t->options->no_special, &text, &n_bytes);
        if (status != CLG_OK) code = fail_status(status, STAGE_WORK, NULL);
    }
    if (code == CODE_DONE && t->options->json)
        code = output_json(json_pack("{s:o}", "text", json_stringn(text, n_bytes)));
    if (code == CODE_DONE && !t->options->json) {
        (void)fwrite(text, 1, n_bytes, stdout); /* it may have NULs */
        (void)putchar('\n');
    }
    clg_text_free(text);
    free(ids);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

int cmd_tokenize(const options *o)
{
    tokenize t = {.options = o};
    const char *text = o->n_arguments > 1 ? o->arguments[1] : NULL;
    if (text && o->decode) return fail_usage("give a text or --decode, not both");
    const clg_status status = clg_tokenizer_open(o->arguments[0], &t.tokenizer);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    const int code = text ? encode(&t, text) : o->decode ? decode(&t) : describe(&t);
    clg_ids_free(t.ids);
    clg_tokenizer_free(t.tokenizer);
    return code;
}
