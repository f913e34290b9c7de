/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates TfIdfVectorizer (ONNX 9) on the host: counts how often each n-gram of a given list
 * occurs in a row of strings or integers. Items of an n-gram may be 1 to max_skip_count + 1
 * positions apart. N-grams are found by a hash table.
 */
#include "base/hash_map.h"
#include "base/strbuf.h"
#include "ops/batch/batch_rule.h"
#include "ops/grad/grad_rule.h"
#include "ops/ml/strings.h"

#include <inttypes.h>
#include <string.h>

typedef struct pool {
    const node *node;
    const graph_attribute *strings, *numbers; /* one of the two is present */
    /* counts: ngram_counts, where the n-grams of each length start in the pool; indexes:
     * ngram_indexes, the output column of each n-gram */
    const int64_t *counts, *indexes;
    const float *weights; /* NULL: all 1 */
    size_t n_lengths, n_grams, n_weights;
    int64_t min, max, skips, columns;
    hash_map grams; /* from the items of an n-gram to its index */
} pool;

static clg_status pool_error(const node *n, const char *what)
{
    char shown[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: %s", node_text(n, shown), what);
}

static size_t pool_size(const pool *p)
{
    return p->strings ? p->strings->count : p->numbers->count;
}

/* Returns the index in the pool at which n-grams of length i + 1 start, which is also the end of
 * those of length i. */
static size_t start_of(const pool *p, size_t i)
{
    return i < p->n_lengths ? (size_t)p->counts[i] : pool_size(p);
}

static clg_status pool_check(const pool *p)
{
    size_t n_grams = 0;
    for (size_t i = 0; i < p->n_lengths; i++) {
        if (p->counts[i] < 0 || (uint64_t)p->counts[i] > pool_size(p) ||
            start_of(p, i) > start_of(p, i + 1) ||
            (start_of(p, i + 1) - start_of(p, i)) % (i + 1) != 0)
            return pool_error(p->node, "ngram_counts does not divide the pool into n-grams");
        n_grams += (start_of(p, i + 1) - start_of(p, i)) / (i + 1);
    }
    if (n_grams != p->n_grams)
        return pool_error(p->node, "ngram_indexes has not one number for each n-gram of the pool");
    for (size_t i = 0; i < p->n_grams; i++)
        if (p->indexes[i] < 0 || p->indexes[i] >= INT32_MAX)
            return pool_error(p->node, "a number of ngram_indexes is not a column");
    if (p->weights && p->n_weights != p->n_grams)
        return pool_error(p->node, "weights has not one number for each n-gram of the pool");
    if (p->min < 1 || p->max < p->min || p->skips < 0)
        return pool_error(p->node, "lengths of n-grams must be at least 1, skips at least 0");
    if ((uint64_t)p->min > p->n_lengths || (uint64_t)p->max > p->n_lengths)
        return pool_error(p->node, "ngram_counts says nothing of the longest n-grams");
    return CLG_OK;
}

static clg_status pool_read(const node *n, pool *p)
{
    *p = (pool){.node = n,
                .strings = node_attribute(n, "pool_strings"),
                .numbers = node_attribute(n, "pool_int64s"),
                .min = node_int(n, "min_gram_length", 1),
                .max = node_int(n, "max_gram_length", 1),
                .skips = node_int(n, "max_skip_count", 0)};
    p->counts = node_ints(n, "ngram_counts", &p->n_lengths);
    p->indexes = node_ints(n, "ngram_indexes", &p->n_grams);
    p->weights = node_floats(n, "weights", &p->n_weights);
    if (p->strings && p->strings->count == 0) p->strings = NULL;
    if (p->strings && p->numbers && p->numbers->count == 0) p->numbers = NULL;
    if (!p->strings == !p->numbers)
        return pool_error(n, "it has not one of pool_strings and pool_int64s");
    CLG_TRY(pool_check(p));
    for (size_t i = 0; i < p->n_grams; i++)
        if (p->indexes[i] >= p->columns) p->columns = p->indexes[i] + 1;
    return CLG_OK;
}

/* ---- matching -------------------------------------------------------------------------------- */

static void add_string(strbuf *key, const char *s) { strbuf_append_bytes(key, s, strlen(s) + 1); }

static void add_number(strbuf *key, int64_t i)
{
    strbuf_append_bytes(key, (const char *)&i, sizeof i);
}

static void start_key(strbuf *key)
{
    key->size_bytes = 0;
    key->status = CLG_OK;
}

static clg_status fill_map(pool *p, strbuf *key)
{
    size_t gram = 0;
    for (size_t i = 0; i < p->n_lengths; i++) {
        for (size_t at = start_of(p, i); at < start_of(p, i + 1); at += i + 1, gram++) {
            start_key(key);
            for (size_t k = at; k <= at + i; k++) {
                if (p->strings)
                    add_string(key, p->strings->as.strings[k]);
                else
                    add_number(key, p->numbers->as.ints[k]);
            }
            CLG_TRY(key->status);
            if ((int64_t)i + 1 < p->min || (int64_t)i + 1 > p->max) continue;
            if (hash_map_get(&p->grams, key->data, key->size_bytes) != HASH_MAP_NONE)
                return pool_error(p->node, "an n-gram is twice in the pool");
            CLG_TRY(hash_map_set(&p->grams, key->data, key->size_bytes, gram));
        }
    }
    return CLG_OK;
}

typedef enum weighing { WEIGHT_TF, WEIGHT_IDF, WEIGHT_TFIDF } weighing;

static const char *const mode_words[] = {"TF", "IDF", "TFIDF", NULL};

static weighing weighing_of(const node *n)
{
    return (weighing)op_word(n, "mode", "TF", mode_words);
}

static void count_gram(const pool *p, weighing how, size_t gram, float *row)
{
    const float weight = p->weights ? p->weights[gram] : 1.0f;
    float *y = &row[p->indexes[gram]];
    if (how == WEIGHT_IDF)
        *y = weight;
    else
        *y += how == WEIGHT_TF ? 1.0f : weight;
}

/* Counts all n-grams that start at item `from` of a row of n items and whose items are `step`
 * positions apart. */
static clg_status count_from(const pool *p, const tensor *x, int64_t row, int64_t n, int64_t from,
                             int64_t step, strbuf *key, float *y)
{
    start_key(key);
    for (int64_t length = 1; length <= p->max; length++) {
        if (length > 1 && (n - 1 - from) / (length - 1) < step) break;
        const int64_t at = row * n + from + (length - 1) * step;
        if (p->strings)
            add_string(key, tensor_get_string(x, at));
        else
            add_number(key, tensor_get_int(x, at));
        CLG_TRY(key->status);
        if (length < p->min || (length == 1 && step > 1)) continue;
        const size_t gram = hash_map_get(&p->grams, key->data, key->size_bytes);
        if (gram != HASH_MAP_NONE) count_gram(p, weighing_of(p->node), gram, y);
    }
    return CLG_OK;
}

static clg_status count_all(const pool *p, const tensor *x, strbuf *key, tensor *y)
{
    const int64_t n = x->dims.dims[x->dims.rank - 1],
                  rows = x->dims.rank == 2 ? x->dims.dims[0] : 1;
    int64_t steps = p->skips < n ? p->skips + 1 : n;
    if (p->max == 1 && steps > 1) steps = 1;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t step = 1; step <= steps; step++)
            for (int64_t from = 0; from < n; from++)
                CLG_TRY(
                    count_from(p, x, row, n, from, step, key, (float *)y->data + row * p->columns));
    return CLG_OK;
}

/* ---- the operator ---------------------------------------------------------------------------- */

static clg_status tfidf_check(const node *n)
{
    pool p;
    return pool_read(n, &p);
}

static clg_status tfidf_infer(op_context *c)
{
    pool p;
    shape dims = c->inputs[0].dims;
    CLG_TRY(pool_read(c->node, &p));
    if (dims.rank != 1 && dims.rank != 2)
        return op_error(c, CLG_ERROR_SHAPE, "its input must be [C] or [N,C]");
    if ((c->inputs[0].dtype == CLG_STRING) != (p.strings != NULL))
        return op_error(c, CLG_ERROR_INVALID_MODEL, "its input is %s, its pool is not",
                        dtype_name(c->inputs[0].dtype));
    dims.dims[dims.rank - 1] = p.columns;
    fact_set(&c->outputs[0], CLG_FLOAT32, &dims);
    (void)op_need(c, 0);
    return CLG_OK;
}

static clg_status tfidf_eval(op_context *c, tensor **out_tensors)
{
    pool p;
    strbuf key;
    CLG_TRY(pool_read(c->node, &p));
    CLG_TRY(tensor_create(CLG_FLOAT32, &c->outputs[0].dims, &out_tensors[0]));
    strbuf_init(&key, 0);
    clg_status status = fill_map(&p, &key);
    if (status == CLG_OK) status = count_all(&p, c->inputs[0].known, &key, out_tensors[0]);
    strbuf_deinit(&key);
    hash_map_deinit(&p.grams);
    return op_prefix(c, status);
}

static const op_types types[] = {
    {'T', DTYPE_BIT(CLG_STRING) | DTYPE_BIT(CLG_INT32) | DTYPE_BIT(CLG_INT64)},
    {'F', DTYPE_BIT(CLG_FLOAT32)},
    {0}};
static const op_attribute attributes[] = {{"max_gram_length", ATTRIBUTE_INT, true, OP_AT_LEAST(1)},
                                          {"max_skip_count", ATTRIBUTE_INT, true, OP_AT_LEAST(0)},
                                          {"min_gram_length", ATTRIBUTE_INT, true, OP_AT_LEAST(1)},
                                          {"mode", ATTRIBUTE_STRING, true, OP_WORDS(mode_words)},
                                          {"ngram_counts", ATTRIBUTE_INTS, true, OP_ANY},
                                          {"ngram_indexes", ATTRIBUTE_INTS, true, OP_ANY},
                                          {"pool_int64s", ATTRIBUTE_INTS, false, OP_ANY},
                                          {"pool_strings", ATTRIBUTE_STRINGS, false, OP_ANY},
                                          {"weights", ATTRIBUTE_FLOATS, false, OP_ANY},
                                          {0}};

const op_row op_rows_tfidf[] = {
    {.name = "TfIdfVectorizer",
     .grad = GRAD_ZERO,
     .batch = BATCH_AT("v", "0"),
     .since = 9,
     OP_INPUTS(1, 1, "T"),
     OP_OUTPUTS(1, 1, "F"),
     .types = types,
     .attributes = attributes,
     .flags = OP_HOST,
     .check = tfidf_check,
     .infer = tfidf_infer,
     .eval = tfidf_eval},
};
const size_t n_op_rows_tfidf = sizeof op_rows_tfidf / sizeof op_rows_tfidf[0];
