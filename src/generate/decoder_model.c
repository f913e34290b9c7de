/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements decoder_model.h: compares what the configuration says with the model's inputs and
 * outputs.
 */
#include "generate/decoder_model.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* What is needed while the model is read. */
typedef struct reading {
    const decoder_config *config;
    const clg_model *loaded;
    const graph *graph; /* of it */
    decoder_model *out;
} reading;

static size_t find_output(const graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_outputs; i++)
        if (strcmp(g->values[g->outputs[i]].name, name) == 0) return i;
    return PORT_NONE;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static input_role role_of(const decoder_config *c, const char *name)
{
    for (size_t i = 0; i < N_INPUT_ROLES; i++)
        if (strcmp(c->inputs[i], name) == 0) return (input_role)i;
    return N_INPUT_ROLES;
}

/* The dtypes and ranks that inputs may have. */
static const struct {
    dtype_set dtypes;
    int lowest_rank, highest_rank;
    const char *words;
} role_types[N_INPUT_ROLES] = {
#define INTEGERS (DTYPE_BIT(CLG_INT64) | DTYPE_BIT(CLG_INT32))
    [INPUT_TOKENS] = {INTEGERS, 2, 2, "int64 or int32 [1, tokens]"},
    [INPUT_MASK] = {INTEGERS, 2, 2, "int64 or int32 [1, tokens]"},
    [INPUT_POSITIONS] = {INTEGERS, 2, 2, "int64 or int32 [1, tokens]"},
    [INPUT_CACHE_POSITIONS] = {INTEGERS, 1, 1, "int64 or int32 [tokens]"},
    [INPUT_TOTAL] = {INTEGERS, 0, 2, "an integer of one element"},
    [INPUT_LAST] = {INTEGERS, 0, 2, "an integer of one element"},
    [INPUT_PAST] = {INTEGERS, 0, 2, "an integer of one element"},
    [INPUT_NEW] = {INTEGERS, 0, 2, "an integer of one element"},
    [INPUT_ONE] = {INTEGERS, 0, 2, "an integer of one element"},
    [INPUT_HAS_PAST] = {DTYPE_BIT(CLG_BOOL), 0, 2, "a bool of one element"},
#undef INTEGERS
};

static clg_status refuse_input(const reading *r, const value *v, const char *expected)
{
    char name[NAME_TEXT_BYTES], dims[SHAPE_TEXT_BYTES];
    return error_set(CLG_ERROR_INVALID_MODEL, "'%s': input '%s' is %s %s, not %s",
                     r->config->model_path, name_text(v->name, name), dtype_name(v->dtype),
                     shape_text(&v->dims, dims), expected);
}

static clg_status read_role(reading *r, size_t index, input_role role)
{
    const value *v = &r->graph->values[r->graph->inputs[index]];
    const int rank = v->dims.rank;
    if (v->kind != CLG_VALUE_TENSOR || !(role_types[role].dtypes & DTYPE_BIT(v->dtype)) ||
        rank < role_types[role].lowest_rank || rank > role_types[role].highest_rank)
        return refuse_input(r, v, role_types[role].words);
    if (rank == 2 && dims_differ(v->dims.dims[0], 1))
        return refuse_input(r, v, "for one sequence: its first dimension must be 1 or free");
    r->out->inputs[role] = index;
    return CLG_OK;
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* Returns whether a name is a pattern with a number in place of "%d", of at most 9 digits. */
static bool read_layer(const char *pattern, const char *name, size_t *out_layer)
{
    const char *at = strstr(pattern, "%d");
    const size_t before = (size_t)(at - pattern), length = strlen(name), after = strlen(at + 2);
    if (length < before + after + 1 || length > before + after + 9) return false;
    if (memcmp(name, pattern, before) != 0 || strcmp(name + length - after, at + 2) != 0)
        return false;
    *out_layer = 0;
    for (size_t i = before; i < length - after; i++) {
        if (name[i] < '0' || name[i] > '9') return false;
        *out_layer = *out_layer * 10 + (size_t)(name[i] - '0');
    }
    return true;
}

static clg_status check_cache_shape(reading *r, const value *v, decoder_cache *cache)
{
    const int64_t *dims = v->dims.dims;
    decoder_model *m = r->out;
    const bool is_first = m->n_caches == 0;
    if (v->kind != CLG_VALUE_TENSOR || v->dims.rank != 4 || dims_differ(dims[0], 1) ||
        (v->dtype != CLG_FLOAT32 && v->dtype != CLG_FLOAT16) ||
        (!is_first && v->dtype != m->cache_dtype))
        return refuse_input(r, v, "float32 or float16 [1, heads, tokens, size], one for all");
    cache->heads = dims[1] != DIM_UNKNOWN ? dims[1] : r->config->kv_heads;
    cache->size = dims[3] != DIM_UNKNOWN ? dims[3] : r->config->head_size;
    const int64_t fixed = dims[2] != DIM_UNKNOWN ? dims[2] : 0;
    if (cache->heads < 1 || cache->size < 1 || cache->heads > INT32_MAX || cache->size > INT32_MAX)
        return refuse_input(r, v,
                            "of a known number of heads and of a known size, neither in the "
                            "model nor in the configuration");
    if (!is_first && fixed != m->fixed_capacity)
        return refuse_input(r, v, "of the same number of tokens as the caches before it");
    if (fixed > CONFIG_MAX_CONTEXT) return refuse_input(r, v, "of fewer tokens");
    m->cache_dtype = v->dtype;
    m->fixed_capacity = fixed;
    return CLG_OK;
}

static clg_status add_cache(reading *r, size_t index, const char *present_pattern, size_t layer)
{
    const graph *g = r->graph;
    const value *v = &g->values[g->inputs[index]];
    char present[CACHE_NAME_BYTES], shown[NAME_TEXT_BYTES];
    decoder_cache *cache = &r->out->caches[r->out->n_caches];
    cache_name(present_pattern, layer, present);
    *cache = (decoder_cache){index, find_output(g, present), 0, 0};
    if (cache->output == PORT_NONE)
        return error_set(CLG_ERROR_INVALID_MODEL, "'%s' has the input '%s', but no output '%s'",
                         r->config->model_path, name_text(v->name, shown), present);
    CLG_TRY(check_cache_shape(r, v, cache));
    if (r->loaded->outputs[cache->output].dtype != v->dtype)
        return error_set(CLG_ERROR_INVALID_MODEL, "'%s': '%s' and '%s' have different dtypes",
                         r->config->model_path, name_text(v->name, shown), present);
    r->out->n_caches++;
    return CLG_OK;
}

static clg_status read_input(reading *r, size_t index)
{
    const value *v = &r->graph->values[r->graph->inputs[index]];
    char shown[NAME_TEXT_BYTES];
    size_t layer;
    const char *const *patterns = r->config->patterns;
    const input_role role = role_of(r->config, v->name);
    if (role != N_INPUT_ROLES) return read_role(r, index, role);
    if (read_layer(patterns[PATTERN_PAST_KEY], v->name, &layer))
        return add_cache(r, index, patterns[PATTERN_PRESENT_KEY], layer);
    if (read_layer(patterns[PATTERN_PAST_VALUE], v->name, &layer))
        return add_cache(r, index, patterns[PATTERN_PRESENT_VALUE], layer);
    const clg_status status =
        error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                  "'%s': the generator does not know what to give to the input '%s'",
                  r->config->model_path, name_text(v->name, shown));
    error_hint("names of inputs come from '%s'", r->config->file);
    return status;
}

static bool is_grouped_attention(const node *n)
{
    return strcmp(n->domain, "com.microsoft") == 0 &&
           strcmp(n->op_type, "GroupQueryAttention") == 0;
}

/* Returns whether the only use of the cache is as the past of a GroupQueryAttention, whose present
 * is the output. */
static bool is_attention_cache(const graph *g, const decoder_cache *cache, const uint32_t *uses)
{
    const value_id past = g->inputs[cache->input], present = g->outputs[cache->output];
    const node_id id = g->values[present].producer;
    if (uses[past] != 1 || uses[present] != 1 || id == NODE_NONE) return false;
    const node *n = &g->nodes[id];
    if (!is_grouped_attention(n)) return false;
    for (size_t i = 3; i <= 4; i++)
        if (node_has_input(n, i) && n->inputs[i] == past && i - 2 < n->n_outputs &&
            n->outputs[i - 2] == present)
            return true;
    return false;
}

static bool is_onnx(const node *n, const char *op_type)
{
    return n->domain[0] == '\0' && strcmp(n->op_type, op_type) == 0;
}

/* Returns whether a node sums each row of its input, [1, tokens]. */
static bool sums_rows(const graph *g, const node *n)
{
    size_t n_axes;
    if (!is_onnx(n, "ReduceSum")) return false;
    const int64_t *axes = node_ints(n, "axes", &n_axes);
    if (axes) return n_axes == 1 && (axes[0] == 1 || axes[0] == -1);
    const tensor *t = node_has_input(n, 1) ? g->values[n->inputs[1]].constant : NULL;
    const int64_t axis = t && t->n_elements == 1 ? tensor_get_int(t, 0) : 0;
    return axis == 1 || axis == -1;
}

/* Returns whether a longer mask does not change what a node computes, which uses a marked value:
 * the mask or its length. Marks its output if that is the length too. */
static bool is_length_use(const graph *g, const node *n, value_id mask, bool *marks)
{
    enum { GROUPED_TOTAL = 6 };
    static const char *const keep[] = {"Gather", "Cast", "Squeeze", "Unsqueeze", "Identity"};
    size_t n_marked = 0, at = 0;
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE || !marks[n->inputs[i]]) continue;
        n_marked++;
        at = i;
    }
    if (n_marked != 1) return false;
    if (at == GROUPED_TOTAL && is_grouped_attention(n)) return true;
    if (at != 0) return false;
    if (n->inputs[0] == mask && sums_rows(g, n)) return true;
    bool is_length = n->inputs[0] == mask && is_onnx(n, "Shape");
    for (size_t i = 0; i < sizeof keep / sizeof *keep && n->inputs[0] != mask; i++)
        is_length = is_length || is_onnx(n, keep[i]);
    if (is_length) marks[n->outputs[0]] = true;
    return is_length;
}

/* Sets *out_is_counted to whether zeros after the ones of the mask change no result: all that is
 * used of it are its sum, and its length as GroupQueryAttention's total_sequence_length, which only
 * says how long the caches must be at least. */
static clg_status mask_is_counted(const graph *g, value_id mask, bool *out_is_counted)
{
    bool *marks = memory_zalloc(g->n_values, sizeof *marks);
    if (!marks) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    marks[mask] = *out_is_counted = true;
    for (size_t i = 0; i < g->n_nodes && *out_is_counted; i++)
        if (node_uses_marked(&g->nodes[i], marks))
            *out_is_counted = is_length_use(g, &g->nodes[i], mask, marks);
    memory_free(marks);
    return CLG_OK;
}

static clg_status find_reservable(reading *r)
{
    decoder_model *m = r->out;
    uint32_t *uses;
    CLG_TRY(graph_count_uses(r->graph, &uses));
    m->can_reserve = m->n_caches > 0;
    for (size_t i = 0; i < m->n_caches && m->can_reserve; i++)
        m->can_reserve = is_attention_cache(r->graph, &m->caches[i], uses);
    memory_free(uses);
    if (m->can_reserve && m->inputs[INPUT_MASK] != PORT_NONE)
        CLG_TRY(
            mask_is_counted(r->graph, r->graph->inputs[m->inputs[INPUT_MASK]], &m->can_pad_mask));
    if (m->fixed_capacity > 0 && !m->can_reserve)
        return error_set(CLG_ERROR_UNSUPPORTED_ATTRIBUTE,
                         "'%s' has caches for %" PRId64 " tokens that are not those of "
                         "GroupQueryAttention",
                         r->config->model_path, m->fixed_capacity);
    return CLG_OK;
}

static clg_status read_inputs(reading *r)
{
    for (size_t i = 0; i < N_INPUT_ROLES; i++) r->out->inputs[i] = PORT_NONE;
    r->out->caches = memory_zalloc(r->graph->n_inputs + 1, sizeof *r->out->caches);
    if (!r->out->caches) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < r->graph->n_inputs; i++) CLG_TRY(read_input(r, i));
    if (r->out->inputs[INPUT_TOKENS] == PORT_NONE)
        return error_set(CLG_ERROR_INVALID_MODEL, "'%s' has no input '%s'", r->config->model_path,
                         r->config->inputs[INPUT_TOKENS]);
    return find_reservable(r);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static clg_status read_logits(reading *r, value_id *out_logits)
{
    const decoder_config *c = r->config;
    const size_t index = find_output(r->graph, c->logits);
    if (index == PORT_NONE)
        return error_set(CLG_ERROR_INVALID_MODEL, "'%s' has no output '%s'", c->model_path,
                         c->logits);
    const clg_port *port = &r->loaded->outputs[index];
    if (port->kind != CLG_VALUE_TENSOR || port->rank != 3 || !dtype_is_float(port->dtype))
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "'%s': output '%s' is not a float tensor [1, tokens, vocabulary]",
                         c->model_path, c->logits);
    const int64_t said = c->vocabulary, has = port->dims[2] > 0 ? port->dims[2] : said;
    if (has < 1 || has > INT32_MAX)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "neither '%s' nor '%s' says the size of the vocabulary", c->file,
                         c->model_path);
    /* Models may have more logits than tokens, so that sizes are multiples of 64 or so. */
    if (said > has)
        return error_set(CLG_ERROR_INVALID_MODEL,
                         "'%s' says %" PRId64 " tokens, but '%s' of '%s' has %" PRId64, c->file,
                         said, c->logits, c->model_path, has);
    r->out->vocabulary = has;
    *out_logits = r->graph->outputs[index];
    return CLG_OK;
}

/* Makes the model with the generator's outputs. Takes ownership of g. */
static clg_status make_model(reading *r, value_id logits, graph *g)
{
    decoder_model *m = r->out;
    clg_status status = decoder_tail_add(g, logits, m->vocabulary);
    for (size_t i = 0; i < m->n_caches && status == CLG_OK; i++) {
        status = graph_add_output(g, r->graph->outputs[m->caches[i].output]);
        m->caches[i].output = DECODER_N_OUTPUTS + i;
    }
    if (status != CLG_OK) {
        graph_free(g);
        return status;
    }
    return model_create(g, false, &m->model);
}

clg_status decoder_model_create(const clg_model *loaded, const decoder_config *config,
                                decoder_model *out_model)
{
    reading r = {config, loaded, loaded->graph, out_model};
    value_id logits;
    graph *g;
    *out_model = (decoder_model){.model = NULL};
    clg_status status = read_inputs(&r);
    if (status == CLG_OK) status = read_logits(&r, &logits);
    if (status == CLG_OK) status = graph_clone(loaded->graph, &g);
    if (status == CLG_OK) status = make_model(&r, logits, g);
    if (status != CLG_OK) decoder_model_deinit(out_model);
    return status;
}

void decoder_model_deinit(decoder_model *m)
{
    model_free(m->model);
    memory_free(m->caches);
    *m = (decoder_model){.model = NULL};
}
