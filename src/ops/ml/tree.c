/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a forest from the attributes of tree operators; see tree.h. Attributes are not trusted:
 * they are checked so that a kernel can walk the result without further checks.
 */
#include "ops/ml/tree.h"

#include "base/hash_map.h"

#include <string.h>

static const char *const mode_names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
/* The relation word of a node (the second of tree.h) for each of mode_names. A NaN is unordered, so
 * that only BRANCH_NEQ is true for it. */
static const int32_t mode_words[] = {TREE_LESS | TREE_EQUAL,
                                     TREE_LESS,
                                     TREE_GREATER | TREE_EQUAL,
                                     TREE_GREATER,
                                     TREE_EQUAL,
                                     TREE_LESS | TREE_GREATER | TREE_UNORDERED,
                                     TREE_LEAF};
const char *const ml_aggregates[] = {"SUM", "AVERAGE", "MIN", "MAX", NULL};
const char *const ml_transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT", NULL};

static int find_word(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return -1;
}

int ml_transform_of(const node *n)
{
    const graph_attribute *a = node_attribute(n, "post_transform");
    if (a && a->type == ATTRIBUTE_INT) return (int)a->as.i;
    return op_word(n, "post_transform", "NONE", ml_transforms);
}

/* ---- lists of the attributes ----------------------------------------------------------------- */

/* A list of floats: a float attribute, or the tensor attribute that may replace it. */
typedef struct number_list {
    const float *floats;
    const tensor *tensor;
    size_t count;
} number_list;

typedef struct reader {
    const node *node;
    tree_forest *forest;
    const int64_t *tree_ids, *node_ids, *features, *true_ids, *false_ids, *nan_is_true;
    const char *const *modes;
    number_list values, weights;
    const int64_t *vote_trees, *vote_nodes, *vote_ids;
    size_t n_nodes, n_votes;
    hash_map index;                   /* from (tree, node) to the index in the lists */
    uint32_t *parents;                /* number of parents of each node */
    uint32_t *first_vote, *next_vote; /* linked list of a leaf's votes; 0 ends it */
} reader;

static clg_status bad(const reader *r, const char *what)
{
    char shown[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: %s", node_text(r->node, shown), what);
}

static number_list read_numbers(const node *n, const char *name, const char *tensor_name)
{
    number_list l = {0};
    l.floats = node_floats(n, name, &l.count);
    const graph_attribute *a = node_attribute(n, tensor_name);
    if (a && l.count == 0)
        l = (number_list){.tensor = a->as.tensor, .count = (size_t)a->as.tensor->n_elements};
    return l;
}

static double number_at(const number_list *l, size_t i)
{
    return l->tensor ? tensor_get_float(l->tensor, (int64_t)i) : (double)l->floats[i];
}

/* Reads a list of n integers; INVALID_MODEL if it has another length. */
static clg_status read_ints(const reader *r, const char *name, size_t n, const int64_t **out)
{
    size_t count;
    *out = node_ints(r->node, name, &count);
    return count == n ? CLG_OK : bad(r, "its lists are not of the same length");
}

static clg_status read_lists(reader *r, bool is_classifier)
{
    const graph_attribute *modes = node_attribute(r->node, "nodes_modes");
    size_t n_missing;
    r->n_nodes = modes ? modes->count : 0;
    r->modes = modes ? modes->as.strings : NULL;
    if (r->n_nodes == 0) return bad(r, "it has no nodes");
    if (r->n_nodes > INT32_MAX / 8) return bad(r, "it has too many nodes");
    CLG_TRY(read_ints(r, "nodes_treeids", r->n_nodes, &r->tree_ids));
    CLG_TRY(read_ints(r, "nodes_nodeids", r->n_nodes, &r->node_ids));
    CLG_TRY(read_ints(r, "nodes_featureids", r->n_nodes, &r->features));
    CLG_TRY(read_ints(r, "nodes_truenodeids", r->n_nodes, &r->true_ids));
    CLG_TRY(read_ints(r, "nodes_falsenodeids", r->n_nodes, &r->false_ids));
    r->nan_is_true = node_ints(r->node, "nodes_missing_value_tracks_true", &n_missing);
    if (n_missing == 0) r->nan_is_true = NULL;
    if (n_missing != 0 && n_missing != r->n_nodes)
        return bad(r, "its lists are not of the same length");
    r->values = read_numbers(r->node, "nodes_values", "nodes_values_as_tensor");
    if (r->values.count != r->n_nodes) return bad(r, "its lists are not of the same length");
    r->weights = is_classifier
                     ? read_numbers(r->node, "class_weights", "class_weights_as_tensor")
                     : read_numbers(r->node, "target_weights", "target_weights_as_tensor");
    r->n_votes = r->weights.count;
    if (r->n_votes > INT32_MAX / 8) return bad(r, "it has too many votes");
    CLG_TRY(read_ints(r, is_classifier ? "class_treeids" : "target_treeids", r->n_votes,
                      &r->vote_trees));
    CLG_TRY(read_ints(r, is_classifier ? "class_nodeids" : "target_nodeids", r->n_votes,
                      &r->vote_nodes));
    return read_ints(r, is_classifier ? "class_ids" : "target_ids", r->n_votes, &r->vote_ids);
}

static size_t find_node(const reader *r, int64_t tree, int64_t id)
{
    const int64_t key[2] = {tree, id};
    return hash_map_get(&r->index, key, sizeof key);
}

static clg_status index_nodes(reader *r)
{
    for (size_t i = 0; i < r->n_nodes; i++) {
        const int64_t key[2] = {r->tree_ids[i], r->node_ids[i]};
        if (hash_map_get(&r->index, key, sizeof key) != HASH_MAP_NONE)
            return bad(r, "a node is there twice");
        CLG_TRY(hash_map_set(&r->index, key, sizeof key, i));
    }
    return CLG_OK;
}

/* ---- nodes in the order of the kernel -------------------------------------------------------- */

static bool is_leaf(const reader *r, size_t i) { return strcmp(r->modes[i], "LEAF") == 0; }

static clg_status count_parents(reader *r)
{
    for (size_t i = 0; i < r->n_nodes; i++) {
        if (find_word(r->modes[i], mode_names, 7) < 0) return bad(r, "a node's mode is unknown");
        if (r->features[i] < 0 || r->features[i] >= INT32_MAX)
            return bad(r, "a node's feature is out of range");
        if (is_leaf(r, i)) continue;
        if (r->features[i] >= r->forest->n_features) r->forest->n_features = r->features[i] + 1;
        const size_t yes = find_node(r, r->tree_ids[i], r->true_ids[i]),
                     no = find_node(r, r->tree_ids[i], r->false_ids[i]);
        if (yes == HASH_MAP_NONE || no == HASH_MAP_NONE)
            return bad(r, "a node leads to one that is not there");
        r->parents[yes]++;
        if (no != yes) r->parents[no]++;
    }
    for (size_t i = 0; i < r->n_nodes; i++)
        if (r->parents[i] > 1) return bad(r, "a node has two above it");
    return CLG_OK;
}

static clg_status chain_votes(reader *r)
{
    tree_forest *f = r->forest;
    f->first_id = r->n_votes ? r->vote_ids[0] : -1;
    f->is_never_negative = true;
    for (size_t v = r->n_votes; v-- > 0;) {
        const size_t i = find_node(r, r->vote_trees[v], r->vote_nodes[v]);
        if (i == HASH_MAP_NONE) return bad(r, "a vote is of a node that is not there");
        if (!is_leaf(r, i)) return bad(r, "a vote is of a node that is not a leaf");
        if (r->vote_ids[v] < 0 || r->vote_ids[v] >= f->n_targets)
            return bad(r, "a vote is for a class or target that is not there");
        if (r->vote_ids[v] != f->first_id) f->first_id = -1;
        if (number_at(&r->weights, v) < 0) f->is_never_negative = false;
        r->next_vote[v + 1] = r->first_vote[i];
        r->first_vote[i] = (uint32_t)v + 1;
    }
    return CLG_OK;
}

static void put_votes(reader *r, size_t from, int32_t *words)
{
    tree_forest *f = r->forest;
    words[2] = (int32_t)f->n_votes;
    for (uint32_t v = r->first_vote[from]; v; v = r->next_vote[v], f->n_votes++) {
        f->vote_ids[f->n_votes] = (int32_t)r->vote_ids[v - 1];
        f->vote_weights[f->n_votes] = number_at(&r->weights, v - 1);
    }
    words[3] = (int32_t)f->n_votes - words[2];
}

/* Writes the tree below `root` in depth-first order, the true branch first. stack: pairs of a
 * node's index in the lists, and the word of the forest that gets its new index. */
static void put_tree(reader *r, size_t root, size_t (*stack)[2])
{
    tree_forest *f = r->forest;
    size_t n_stack = 0;
    stack[n_stack][0] = root;
    stack[n_stack++][1] = SIZE_MAX;
    f->roots[f->n_trees++] = (int32_t)f->n_nodes;
    while (n_stack > 0) {
        const size_t from = stack[--n_stack][0], word = stack[n_stack][1], at = f->n_nodes++;
        int32_t *words = &f->nodes[at * TREE_NODE_WORDS];
        if (word != SIZE_MAX) f->nodes[word] = (int32_t)at;
        words[0] = (int32_t)r->features[from];
        words[1] = mode_words[find_word(r->modes[from], mode_names, 7)];
        f->values[at] = number_at(&r->values, from);
        if (words[1] == TREE_LEAF) {
            words[0] = 0;
            put_votes(r, from, words);
            continue;
        }
        if (r->nan_is_true && r->nan_is_true[from]) words[1] |= TREE_UNORDERED;
        const size_t yes = find_node(r, r->tree_ids[from], r->true_ids[from]),
                     no = find_node(r, r->tree_ids[from], r->false_ids[from]);
        stack[n_stack][0] = no;
        stack[n_stack++][1] = at * TREE_NODE_WORDS + 3;
        if (no == yes) continue;
        stack[n_stack][0] = yes;
        stack[n_stack++][1] = at * TREE_NODE_WORDS + 2;
    }
}

static clg_status put_all(reader *r)
{
    tree_forest *f = r->forest;
    hash_map trees = {0};
    clg_status status = CLG_OK;
    size_t(*stack)[2] = memory_zalloc(r->n_nodes + 2, sizeof *stack);
    if (!stack) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < r->n_nodes && status == CLG_OK; i++) {
        if (r->parents[i] > 0) continue;
        if (hash_map_get(&trees, &r->tree_ids[i], sizeof(int64_t)) != HASH_MAP_NONE)
            status = bad(r, "a tree has two roots");
        if (status == CLG_OK) status = hash_map_set(&trees, &r->tree_ids[i], sizeof(int64_t), i);
        if (status == CLG_OK) put_tree(r, i, stack);
    }
    if (status == CLG_OK && f->n_nodes != r->n_nodes)
        status = bad(r, "some of its nodes are on a circle");
    hash_map_deinit(&trees);
    memory_free(stack);
    return status;
}

/* Sets the true branch of nodes whose two branches are the same node: put_tree visits such a child
 * once, and sets only the false branch. */
static void settle_single_impls(tree_forest *f)
{
    for (size_t i = 0; i < f->n_nodes; i++) {
        int32_t *words = &f->nodes[i * TREE_NODE_WORDS];
        if (words[1] != TREE_LEAF && words[2] == 0) words[2] = words[3];
    }
}

/* ---- reading a forest ------------------------------------------------------------------------ */

static clg_status count_targets(reader *r, bool is_classifier)
{
    const graph_attribute *ints = node_attribute(r->node, "classlabels_int64s"),
                          *strings = node_attribute(r->node, "classlabels_strings");
    const size_t n_ints = ints ? ints->count : 0, n_strings = strings ? strings->count : 0;
    r->forest->n_targets =
        is_classifier ? (int64_t)(n_ints + n_strings) : node_int(r->node, "n_targets", 0);
    if (is_classifier && (n_ints == 0) == (n_strings == 0))
        return bad(r, "it must have labels that are numbers or strings, and not both");
    if (r->forest->n_targets < 1 || r->forest->n_targets > 1 << 20)
        return bad(r, "it has no targets, or too many");
    r->forest->aggregate =
        (tree_aggregate)op_word(r->node, "aggregate_function", "SUM", ml_aggregates);
    return CLG_OK;
}

static clg_status read_base(reader *r)
{
    const number_list base = read_numbers(r->node, "base_values", "base_values_as_tensor");
    tree_forest *f = r->forest;
    f->n_base = base.count;
    if (base.count > 1 && base.count != (size_t)f->n_targets)
        return bad(r, "it has not one base value for each class or target");
    f->base = arena_alloc(&f->memory, (size_t)f->n_targets, sizeof *f->base);
    if (!f->base) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < base.count; i++) f->base[i] = number_at(&base, i);
    return CLG_OK;
}

static clg_status make_room(reader *r)
{
    tree_forest *f = r->forest;
    arena *m = &f->memory;
    f->nodes = arena_alloc(m, r->n_nodes * TREE_NODE_WORDS, sizeof *f->nodes);
    f->values = arena_alloc(m, r->n_nodes, sizeof *f->values);
    f->roots = arena_alloc(m, r->n_nodes, sizeof *f->roots);
    f->vote_ids = arena_alloc(m, r->n_votes + 1, sizeof *f->vote_ids);
    f->vote_weights = arena_alloc(m, r->n_votes + 1, sizeof *f->vote_weights);
    r->parents = arena_alloc(m, r->n_nodes, sizeof *r->parents);
    r->first_vote = arena_alloc(m, r->n_nodes, sizeof *r->first_vote);
    r->next_vote = arena_alloc(m, r->n_votes + 1, sizeof *r->next_vote);
    const bool all = f->nodes && f->values && f->roots && f->vote_ids && f->vote_weights &&
                     r->parents && r->first_vote && r->next_vote;
    return all ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status read_all(reader *r, bool is_classifier)
{
    CLG_TRY(read_lists(r, is_classifier));
    CLG_TRY(count_targets(r, is_classifier));
    CLG_TRY(make_room(r));
    CLG_TRY(read_base(r));
    CLG_TRY(index_nodes(r));
    CLG_TRY(count_parents(r));
    CLG_TRY(chain_votes(r));
    CLG_TRY(put_all(r));
    settle_single_impls(r->forest);
    return CLG_OK;
}

clg_status tree_read(const node *n, bool is_classifier, tree_forest *out_forest)
{
    *out_forest = (tree_forest){.n_features = 1};
    reader r = {.node = n, .forest = out_forest};
    const clg_status status = read_all(&r, is_classifier);
    hash_map_deinit(&r.index);
    if (status != CLG_OK) tree_deinit(out_forest);
    return status;
}

void tree_deinit(tree_forest *f)
{
    arena_deinit(&f->memory);
    *f = (tree_forest){0};
}
