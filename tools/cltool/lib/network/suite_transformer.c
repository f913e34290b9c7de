/* SPDX-License-Identifier: Apache-2.0
 *
 * Transformers as rows of sizes: an encoder that normalizes after each residual sum (BERT), and a
 * decoder that normalizes before each part (GPT-2).
 */
#include "suite.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define N_TOKENS 128 /* of a sequence */

struct transformer {
    int64_t vocabulary, positions, types; /* types 0: no token types */
    int64_t width, layers, heads, hidden;
    bool is_decoder;
};

static const struct transformer bert_base = {30522, 512, 2, 768, 12, 12, 3072, false};
static const struct transformer gpt2_small = {50257, 1024, 0, 768, 12, 12, 3072, true};

typedef struct text_net {
    net *net;
    struct transformer size; /* divided by shrink */
    int64_t n_tokens;
    const char *mask;  /* added to scores, broadcast to [batch, heads, tokens, tokens] */
    const char *x;     /* the hidden state, [batch, tokens, width] */
    const char *words; /* the weights of the embedding, [vocabulary, width] */
} text_net;

static const char *binary(net *n, const char *op_type, const char *name, const char *a,
                          const char *b)
{
    return net_node(n, op_type, name, 2, (const char *[]){a, b});
}

/* x W + b */
static const char *linear(net *n, const char *x, const char *layer, int64_t n_in, int64_t n_out)
{
    const char *w = net_weights(n, net_name(n, "%s.weight", layer), 2, (int64_t[]){n_in, n_out},
                                (double)n_in, (double)n_out);
    const char *y = binary(n, "MatMul", layer, x, w);
    const char *b = net_bias(n, net_name(n, "%s.bias", layer), n_out, (double)n_in);
    return binary(n, "Add", net_name(n, "%s.sum", layer), y, b);
}

static const char *normalize(net *n, const char *x, const char *layer, int64_t width)
{
    const char *inputs[3] = {x};
    net_norm_parameters(n, layer, width, 2, inputs + 1);
    return net_node(n, "LayerNormalization", layer, 3, inputs);
}

static const char *reshape(net *n, const char *x, const char *name, size_t rank,
                           const int64_t *dims)
{
    return binary(n, "Reshape", name, x, net_int64s(n, net_name(n, "%s.shape", name), rank, dims));
}

static const char *transpose(net *n, const char *x, const char *name, const int64_t *perm)
{
    const char *y = net_node(n, "Transpose", name, 1, &x);
    net_set_ints(n, "perm", 4, perm);
    return y;
}

/* x[start:end] along an axis */
static const char *slice(net *n, const char *x, const char *name, int64_t start, int64_t end,
                         int64_t axis)
{
    const int64_t numbers[] = {start, end, axis};
    static const char *const parts[] = {"start", "end", "axis"};
    const char *inputs[4] = {x};
    for (size_t i = 0; i < 3; i++)
        inputs[i + 1] = net_int64s(n, net_name(n, "%s.%s", name, parts[i]), 1, &numbers[i]);
    return net_node(n, "Slice", name, 4, inputs);
}

/* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as GPT-2 computes GELU */
static const char *gelu_tanh(net *n, const char *x, const char *layer)
{
    static const float numbers[] = {3, 0.044715f, 0.79788456080286536f, 1, 0.5f};
    const char *c[5];
    for (int i = 0; i < 5; i++)
        c[i] = net_scalar(n, net_name(n, "%s.gelu.c%d", layer, i), numbers[i]);
    const char *y = binary(n, "Pow", net_name(n, "%s.gelu.cube", layer), x, c[0]);
    y = binary(n, "Mul", net_name(n, "%s.gelu.cubic", layer), y, c[1]);
    y = binary(n, "Add", net_name(n, "%s.gelu.inner", layer), x, y);
    y = binary(n, "Mul", net_name(n, "%s.gelu.scaled", layer), y, c[2]);
    y = net_node(n, "Tanh", net_name(n, "%s.gelu.tanh", layer), 1, &y);
    y = binary(n, "Add", net_name(n, "%s.gelu.sum", layer), y, c[3]);
    y = binary(n, "Mul", net_name(n, "%s.gelu.product", layer), x, y);
    return binary(n, "Mul", net_name(n, "%s.gelu", layer), y, c[4]);
}

/* Sets out_qkv to the queries, keys and values of all heads, [batch, tokens, width]: three layers
 * in an encoder, one layer that is split in a decoder. */
static void project(text_net *t, const char *layer, const char *x, const char *out_qkv[3])
{
    static const char *const letters[] = {"query", "key", "value"};
    net *n = t->net;
    const int64_t w = t->size.width;
    for (int i = 0; i < 3; i++)
        out_qkv[i] = t->size.is_decoder
                         ? net_name(n, "%s.%s", layer, letters[i])
                         : linear(n, x, net_name(n, "%s.%s", layer, letters[i]), w, w);
    if (!t->size.is_decoder) return;
    const char *joined = linear(n, x, net_name(n, "%s.qkv", layer), w, 3 * w);
    net_node_to(n, "Split", net_name(n, "%s.split", layer), 1, &joined, 3, out_qkv);
    net_set_int(n, "axis", 2);
}

static const char *attend(text_net *t, const char *layer, const char *x)
{
    static const int64_t by_head[] = {0, 2, 1, 3}, transposed[] = {0, 2, 3, 1};
    net *n = t->net;
    const int64_t w = t->size.width, d = w / t->size.heads;
    const char *qkv[3];
    project(t, layer, x, qkv);
    for (int i = 0; i < 3; i++) {
        const char *part = net_name(n, "%s.heads%d", layer, i);
        const char *y = reshape(n, qkv[i], part, 4, (int64_t[]){0, 0, t->size.heads, d});
        qkv[i] = transpose(n, y, net_name(n, "%s.transpose", part), i == 1 ? transposed : by_head);
    }
    const char *scale = net_scalar(n, net_name(n, "%s.scale", layer), (float)sqrt((double)d));
    const char *s = binary(n, "MatMul", net_name(n, "%s.scores", layer), qkv[0], qkv[1]);
    s = binary(n, "Div", net_name(n, "%s.scaled", layer), s, scale);
    s = binary(n, "Add", net_name(n, "%s.masked", layer), s, t->mask);
    s = net_node(n, "Softmax", net_name(n, "%s.softmax", layer), 1, &s);
    net_set_int(n, "axis", -1);
    const char *y = binary(n, "MatMul", net_name(n, "%s.mix", layer), s, qkv[2]);
    y = transpose(n, y, net_name(n, "%s.transpose", layer), by_head);
    y = reshape(n, y, net_name(n, "%s.join", layer), 3, (int64_t[]){0, 0, w});
    return linear(n, y, net_name(n, "%s.output", layer), w, w);
}

static const char *feed_forward(text_net *t, const char *layer, const char *x)
{
    net *n = t->net;
    const char *up = net_name(n, "%s.up", layer);
    const char *y = linear(n, x, up, t->size.width, t->size.hidden);
    y = t->size.is_decoder ? gelu_tanh(n, y, up) : net_gelu(n, y, up);
    return linear(n, y, net_name(n, "%s.down", layer), t->size.hidden, t->size.width);
}

/* Adds x + part(norm(x)) for a decoder, norm(x + part(x)) for an encoder. */
static void add_part(text_net *t, const char *layer,
                     const char *(*part)(text_net *t, const char *layer, const char *x))
{
    net *n = t->net;
    const char *norm = net_name(n, "%s.norm", layer), *sum = net_name(n, "%s.residual", layer);
    const char *from = t->size.is_decoder ? normalize(n, t->x, norm, t->size.width) : t->x;
    t->x = binary(n, "Add", sum, part(t, layer, from), t->x);
    if (!t->size.is_decoder) t->x = normalize(n, t->x, norm, t->size.width);
}

static const char *embed(text_net *t, const char *name, int64_t n_rows)
{
    return net_weights(t->net, name, 2, (int64_t[]){n_rows, t->size.width}, (double)t->size.width,
                       (double)t->size.width);
}

/* Adds the sum of the embeddings of words, positions and, where the model has them, types. */
static void add_embeddings(text_net *t)
{
    net *n = t->net;
    const char *ids = net_input(n, "input_ids", CLG_INT64, 1, &t->n_tokens);
    t->words = embed(t, "embedding.words", t->size.vocabulary);
    t->x = binary(n, "Gather", "embedding.gather", t->words, ids);
    const char *positions = slice(n, embed(t, "embedding.positions", t->size.positions),
                                  "embedding.first_positions", 0, t->n_tokens, 0);
    t->x = binary(n, "Add", "embedding.sum", t->x, positions);
    if (t->size.types == 0) return;
    const char *types = net_input(n, "token_type_ids", CLG_INT64, 1, &t->n_tokens);
    types = binary(n, "Gather", "embedding.gather_types",
                   embed(t, "embedding.types", t->size.types), types);
    t->x = binary(n, "Add", "embedding.sum_types", t->x, types);
    t->x = normalize(n, t->x, "embedding.norm", t->size.width);
}

/* The mask of an encoder: 0 where the input "attention_mask" is 1, else the lowest float. */
static void add_given_mask(text_net *t)
{
    net *n = t->net;
    const char *m = net_input(n, "attention_mask", CLG_INT64, 1, &t->n_tokens);
    const char *axes = net_int64s(n, "mask.axes", 2, (int64_t[]){1, 2});
    m = net_node(n, "Cast", "mask.cast", 1, &m);
    net_set_int(n, "to", CLG_FLOAT32);
    m = binary(n, "Unsqueeze", "mask.unsqueeze", m, axes);
    m = binary(n, "Sub", "mask.inverse", net_scalar(n, "mask.one", 1), m);
    t->mask = binary(n, "Mul", "mask.lowest", m, net_scalar(n, "mask.float_min", -FLT_MAX));
}

/* The mask of a decoder, [tokens, tokens]: a token attends to itself and to those before it. */
static void add_causal_mask(text_net *t)
{
    const int64_t l = t->n_tokens;
    float *mask = must_alloc((size_t)(l * l), sizeof *mask);
    for (int64_t i = 0; i < l * l; i++) mask[i] = i % l > i / l ? -FLT_MAX : 0;
    t->mask = net_floats(t->net, "mask", 2, (int64_t[]){l, l}, mask);
}

/* Adds the logits of the next token, whose weights are those of the embedding. */
static void add_next_token(text_net *t)
{
    net *n = t->net;
    t->x = normalize(n, t->x, "norm", t->size.width);
    t->x = slice(n, t->x, "last_token", -1, INT64_MAX, 1);
    t->x = net_node(n, "Flatten", "flatten", 1, &t->x);
    t->x = binary(n, "Gemm", "logits", t->x, t->words);
    net_set_int(n, "transB", 1);
    net_output(n, t->x);
}

/* Adds the outputs of an encoder: the hidden state, and the pooled state of the first token. */
static void add_pooler(text_net *t)
{
    net *n = t->net;
    const char *first = slice(n, t->x, "first_token", 0, 1, 1);
    first = net_node(n, "Flatten", "flatten", 1, &first);
    const char *pooled = net_gemm(n, first, "pooler", t->size.width, t->size.width);
    net_output(n, t->x);
    net_output(n, net_node(n, "Tanh", "pooler.tanh", 1, &pooled));
}

static void add_transformer(net *n, const void *table, int64_t shrink)
{
    text_net t = {.net = n, .size = *(const struct transformer *)table};
    struct transformer *s = &t.size;
    int64_t *const sizes[] = {&s->vocabulary, &s->positions, &s->width,
                              &s->layers,     &s->heads,     &s->hidden};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) *sizes[i] /= shrink;
    t.n_tokens = N_TOKENS / shrink;
    add_embeddings(&t);
    if (s->is_decoder)
        add_causal_mask(&t);
    else
        add_given_mask(&t);
    for (int64_t i = 0; i < s->layers; i++) {
        add_part(&t, net_name(n, "layer%lld.attention", (long long)i), attend);
        add_part(&t, net_name(n, "layer%lld.mlp", (long long)i), feed_forward);
    }
    if (s->is_decoder)
        add_next_token(&t);
    else
        add_pooler(&t);
}

/* Devlin et al., BERT, 2018. */
const suite_model suite_bert = {.name = "bert",
                                .title = "BERT-base",
                                .input = "128 tokens",
                                .n_parameters = 109482240,
                                .scheme = WEIGHTS_PYTORCH,
                                .add = add_transformer,
                                .table = &bert_base,
                                .n_tokens = 30522};

/* Radford et al., Language Models are Unsupervised Multitask Learners, 2019. Computes the logits of
 * the token after the last one, as the first step of generating does. */
const suite_model suite_gpt2 = {.name = "gpt2",
                                .title = "GPT-2 small",
                                .input = "prompt of 128 tokens",
                                .n_parameters = 124439808,
                                .scheme = WEIGHTS_PYTORCH,
                                .add = add_transformer,
                                .table = &gpt2_small,
                                .n_tokens = 50257};
