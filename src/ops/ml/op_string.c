/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates operators on strings: StringNormalizer (ONNX 10), StringConcat, StringSplit and
 * RegexFullMatch (ONNX 20). They run on the host while a run is planned (strings.h).
 */
#include "base/strbuf.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/ml/regex.h"
#include "ops/ml/strings.h"

#include <string.h>

/* ---- StringNormalizer ------------------------------------------------------------------------ */

typedef uint32_t (*case_mapping)(uint32_t c);

static clg_status map_case(strbuf *out, const char *s, case_mapping map)
{
    char bytes[4];
    while (*s) {
        const char *from = s;
        const uint32_t c = utf8_next(&s), mapped = map(c);
        const bool is_stray = c >= 0x80 && s == from + 1; /* not UTF-8: unchanged */
        if (mapped == c || is_stray)
            strbuf_append_bytes(out, from, (size_t)(s - from));
        else
            strbuf_append_bytes(out, bytes, utf8_put(mapped, bytes));
    }
    return out->status;
}

static case_mapping case_action(const node *n)
{
    const char *action = node_string(n, "case_change_action", "NONE");
    return strcmp(action, "LOWER") == 0   ? utf8_lower
           : strcmp(action, "UPPER") == 0 ? utf8_upper
                                          : NULL;
}

static clg_status normalizer_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    const char *locale = node_string(n, "locale", "en_US");
    if (strncmp(locale, "tr", 2) == 0 || strncmp(locale, "az", 2) == 0 ||
        strncmp(locale, "lt", 2) == 0)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "%s: locale '%.16s' has its own letters, which are not supported",
                         node_text(n, shown), locale);
    return CLG_OK;
}

/* Returns whether two strings are equal, ignoring case unless case_counts. */
static bool is_same_word(const char *a, const char *b, bool case_counts)
{
    if (case_counts) return strcmp(a, b) == 0;
    uint32_t c, d;
    do {
        c = utf8_lower(utf8_next(&a));
        d = utf8_lower(utf8_next(&b));
    } while (c == d && c != 0);
    return c == d;
}

static bool is_stopword(const node *n, const char *s)
{
    const graph_attribute *words = node_attribute(n, "stopwords");
    const bool case_counts = node_int(n, "is_case_sensitive", 0) != 0;
    for (size_t i = 0; words && i < words->count; i++)
        if (is_same_word(s, words->as.strings[i], case_counts)) return true;
    return false;
}

/* Infers StringNormalizer. If it removes all strings, the result is one empty string. */
static clg_status normalizer_infer(op_context *c)
{
    shape dims = c->inputs[0].dims;
    if ((dims.rank != 1 && dims.rank != 2) ||
        (dims.rank == 2 && dims.dims[0] != 1 && dims.dims[0] != DIM_UNKNOWN))
        return op_error(c, CLG_ERROR_SHAPE, "its input must be a list [C] or [1,C]");
    if (dims.rank == 2) dims.dims[0] = 1;
    int64_t n = 0;
    const tensor *x = op_need(c, 0);
    for (int64_t i = 0; x && i < x->n_elements; i++)
        n += !is_stopword(c->node, tensor_get_string(x, i));
    dims.dims[dims.rank - 1] = !x ? DIM_UNKNOWN : n ? n : 1;
    fact_set(&c->outputs[0], CLG_STRING, &dims);
    return CLG_OK;
}

static clg_status normalizer_eval(op_context *c, tensor **out_tensors)
{
    const tensor *x = c->inputs[0].known;
    const case_mapping map = case_action(c->node);
    int64_t at = 0;
    CLG_TRY(tensor_create(CLG_STRING, &c->outputs[0].dims, &out_tensors[0]));
    for (int64_t i = 0; i < x->n_elements; i++) {
        const char *s = tensor_get_string(x, i);
        strbuf mapped;
        if (is_stopword(c->node, s)) continue;
        strbuf_init(&mapped, 0);
        clg_status status = map ? map_case(&mapped, s, map) : CLG_OK;
        if (map) s = strbuf_data(&mapped);
        if (status == CLG_OK) status = tensor_set_string(out_tensors[0], at++, s, strlen(s));
        strbuf_deinit(&mapped);
        CLG_TRY(status);
    }
    return CLG_OK;
}

/* ---- StringConcat ---------------------------------------------------------------------------- */

static clg_status concat_infer(op_context *c)
{
    shape dims;
    CLG_TRY(op_prefix(c, shape_broadcast(&c->inputs[0].dims, &c->inputs[1].dims, &dims)));
    fact_set(&c->outputs[0], CLG_STRING, &dims);
    return CLG_OK;
}

static clg_status concat_eval(op_context *c, tensor **out_tensors)
{
    const tensor *a = c->inputs[0].known, *b = c->inputs[1].known;
    const shape *dims = &c->outputs[0].dims;
    CLG_TRY(tensor_create(CLG_STRING, dims, &out_tensors[0]));
    for (int64_t i = 0; i < out_tensors[0]->n_elements; i++) {
        strbuf joined;
        strbuf_init(&joined, 0);
        strbuf_append(&joined, tensor_get_string(a, strings_broadcast_place(&a->dims, dims, i)));
        strbuf_append(&joined, tensor_get_string(b, strings_broadcast_place(&b->dims, dims, i)));
        clg_status status = joined.status;
        if (status == CLG_OK)
            status = tensor_set_string(out_tensors[0], i, strbuf_data(&joined), joined.size_bytes);
        strbuf_deinit(&joined);
        CLG_TRY(status);
    }
    return CLG_OK;
}

/* ---- StringSplit ----------------------------------------------------------------------------- */

typedef struct splitter {
    const char *rest; /* rest of the string; NULL at the end */
    const char *delimiter;
    int64_t splits_left; /* negative: unlimited */
} splitter;

#define WHITE_SPACE " \t\n\r\v\f"

static splitter split_start(const node *n, const char *s)
{
    const char *delimiter = node_string(n, "delimiter", "");
    const bool by_space = *delimiter == '\0';
    if (by_space) s += strspn(s, WHITE_SPACE);
    return (splitter){.rest = by_space && !*s ? NULL : s,
                      .delimiter = delimiter,
                      .splits_left = node_int(n, "maxsplit", -1)};
}

/* Sets the next part and its length in bytes. Returns false at the end of the string. */
static bool split_next(splitter *w, const char **out_part, size_t *out_bytes)
{
    const bool by_space = *w->delimiter == '\0', last = w->splits_left == 0;
    const char *part = w->rest, *end;
    if (!part) return false;
    *out_part = part;
    if (by_space) {
        end = last ? part + strlen(part) : part + strcspn(part, WHITE_SPACE);
        w->rest = end + strspn(end, WHITE_SPACE);
        if (!*w->rest) w->rest = NULL;
    } else {
        end = last ? NULL : strstr(part, w->delimiter);
        w->rest = end ? end + strlen(w->delimiter) : NULL;
        if (!end) end = part + strlen(part);
    }
    if (w->splits_left > 0) w->splits_left--;
    *out_bytes = (size_t)(end - part);
    return true;
}

static int64_t count_parts(const node *n, const char *s)
{
    splitter w = split_start(n, s);
    int64_t count = 0;
    size_t n_bytes;
    while (split_next(&w, &s, &n_bytes)) count++;
    return count;
}

static clg_status split_infer(op_context *c)
{
    shape dims = c->inputs[0].dims;
    int64_t max = 0;
    if (c->n_outputs > 1) fact_set(&c->outputs[1], CLG_INT64, &dims);
    if (dims.rank >= CLG_MAX_RANK)
        return op_error(c, CLG_ERROR_SHAPE, "the output would have too many axes");
    const tensor *x = op_need(c, 0);
    for (int64_t i = 0; x && i < x->n_elements; i++) {
        const int64_t n = count_parts(c->node, tensor_get_string(x, i));
        if (n > max) max = n;
    }
    dims.dims[dims.rank++] = x ? max : DIM_UNKNOWN;
    fact_set(&c->outputs[0], CLG_STRING, &dims);
    return CLG_OK;
}

static clg_status split_eval(op_context *c, tensor **out_tensors)
{
    const tensor *x = c->inputs[0].known;
    const shape *dims = &c->outputs[0].dims;
    const int64_t max = dims->dims[dims->rank - 1];
    CLG_TRY(tensor_create(CLG_STRING, dims, &out_tensors[0]));
    if (c->n_outputs > 1) CLG_TRY(tensor_create(CLG_INT64, &x->dims, &out_tensors[1]));
    for (int64_t i = 0; i < x->n_elements; i++) {
        splitter w = split_start(c->node, tensor_get_string(x, i));
        const char *part;
        size_t n_bytes;
        int64_t n = 0;
        while (split_next(&w, &part, &n_bytes))
            CLG_TRY(tensor_set_string(out_tensors[0], i * max + n++, part, n_bytes));
        if (c->n_outputs > 1) tensor_set_int(out_tensors[1], i, n);
    }
    return CLG_OK;
}

/* ---- RegexFullMatch -------------------------------------------------------------------------- */

static clg_status regex_check(const node *n)
{
    regex_program *r;
    const clg_status status = regex_create(node_string(n, "pattern", ""), &r);
    regex_free(r);
    return status;
}

static clg_status regex_infer(op_context *c)
{
    fact_set(&c->outputs[0], CLG_BOOL, &c->inputs[0].dims);
    return CLG_OK;
}

static clg_status regex_eval(op_context *c, tensor **out_tensors)
{
    regex_program *r;
    const tensor *x = c->inputs[0].known;
    CLG_TRY(op_prefix(c, regex_create(node_string(c->node, "pattern", ""), &r)));
    clg_status status = tensor_create(CLG_BOOL, &x->dims, &out_tensors[0]);
    for (int64_t i = 0; status == CLG_OK && i < x->n_elements; i++)
        status = regex_matches(r, tensor_get_string(x, i), (bool *)out_tensors[0]->data + i);
    regex_free(r);
    return op_prefix(c, status);
}

/* ---- operator table -------------------------------------------------------------------------- */

static const op_types types[] = {
    {'S', DTYPE_BIT(CLG_STRING)}, {'B', DTYPE_BIT(CLG_BOOL)}, {'L', DTYPE_BIT(CLG_INT64)}, {0}};
static const op_attribute normalizer_attributes[] = {
    {"case_change_action", ATTRIBUTE_STRING, false, OP_ONE_OF("LOWER", "UPPER", "NONE")},
    {"is_case_sensitive", ATTRIBUTE_INT, false, OP_BOOLEAN},
    {"locale", ATTRIBUTE_STRING, false, OP_ANY},
    {"stopwords", ATTRIBUTE_STRINGS, false, OP_ANY},
    {0}};
static const op_attribute split_attributes[] = {{"delimiter", ATTRIBUTE_STRING, false, OP_ANY},
                                                {"maxsplit", ATTRIBUTE_INT, false, OP_ANY},
                                                {0}};
static const op_attribute regex_attributes[] = {{"pattern", ATTRIBUTE_STRING, true, OP_ANY}, {0}};

#define ROW(row_name, from, n_in, n_out, in, out, ...)                                             \
    {                                                                                              \
        .name = row_name, .grad = GRAD_ZERO, .since = from, OP_INPUTS(n_in, n_in, in),             \
        OP_OUTPUTS(1, n_out, out), .types = types, .flags = OP_HOST, __VA_ARGS__                   \
    }

const op_row op_rows_string[] = {
    ROW("StringNormalizer", 10, 1, 1, "S", "S", .attributes = normalizer_attributes,
        .check = normalizer_check, .infer = normalizer_infer, .eval = normalizer_eval),
    ROW("StringConcat", 20, 2, 1, "SS", "S", .infer = concat_infer, .batch = BATCH_POINTWISE,
        .eval = concat_eval),
    ROW("StringSplit", 20, 1, 2, "S", "SL", .attributes = split_attributes, .infer = split_infer,
        .eval = split_eval),
    ROW("RegexFullMatch", 20, 1, 1, "S", "B", .attributes = regex_attributes, .check = regex_check,
        .infer = regex_infer, .batch = BATCH_POINTWISE, .eval = regex_eval),
};
const size_t n_op_rows_string = sizeof op_rows_string / sizeof op_rows_string[0];
