/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads TreeEnsemble of ai.onnx.ml 5, where nodes and leaves are separate lists, and a node may
 * test whether its feature is a member of a set. The result is a forest as tree.c builds it.
 */
#include "ops/ml/tree.h"

#include <math.h>
#include <string.h>

#define MODE_MEMBER 6

typedef struct reader {
    const node *node;
    tree_forest *forest;
    const int64_t *features, *ids[2], *leafs[2], *nan_is_true, *roots, *leaf_targets;
    const tensor *modes, *splits, *leaf_weights, *members;
    size_t n_nodes, n_roots, n_leaves, n_packed;
    int64_t *set_first, *set_count; /* [n_nodes]: a node's set, as a range of members */
    bool *is_below;                 /* [n_nodes]: the node has a parent or is a root */
} reader;

/* A node or leaf that is still to be written. Its index will be stored in word `word` of the
 * `count` nodes from `at` on. */
typedef struct pending {
    int64_t id;
    bool is_leaf, is_root;
    size_t at, count, word;
} pending;

static clg_status bad(const reader *r, const char *what)
{
    char shown[NODE_TEXT_BYTES];
    return error_set(CLG_ERROR_INVALID_MODEL, "%s: %s", node_text(r->node, shown), what);
}

static const tensor *tensor_of(const node *n, const char *name)
{
    const graph_attribute *a = node_attribute(n, name);
    return a ? a->as.tensor : NULL;
}

static clg_status read_ints(const reader *r, const char *name, size_t n, const int64_t **out)
{
    size_t count;
    *out = node_ints(r->node, name, &count);
    return count == n ? CLG_OK : bad(r, "its lists are not of the same length");
}

static clg_status read_lists(reader *r)
{
    size_t n_missing;
    r->modes = tensor_of(r->node, "nodes_modes");
    r->splits = tensor_of(r->node, "nodes_splits");
    r->leaf_weights = tensor_of(r->node, "leaf_weights");
    r->members = tensor_of(r->node, "membership_values");
    if (!r->modes || !r->splits || !r->leaf_weights || r->modes->n_elements == 0 ||
        r->leaf_weights->n_elements == 0)
        return bad(r, "it has no nodes or no leaves");
    if (r->modes->n_elements > INT32_MAX / 16 || r->leaf_weights->n_elements > INT32_MAX / 16)
        return bad(r, "it has too many nodes");
    r->n_nodes = (size_t)r->modes->n_elements;
    r->n_leaves = (size_t)r->leaf_weights->n_elements;
    if (r->splits->n_elements != r->modes->n_elements)
        return bad(r, "its lists are not of the same length");
    CLG_TRY(read_ints(r, "nodes_featureids", r->n_nodes, &r->features));
    CLG_TRY(read_ints(r, "nodes_truenodeids", r->n_nodes, &r->ids[0]));
    CLG_TRY(read_ints(r, "nodes_falsenodeids", r->n_nodes, &r->ids[1]));
    CLG_TRY(read_ints(r, "nodes_trueleafs", r->n_nodes, &r->leafs[0]));
    CLG_TRY(read_ints(r, "nodes_falseleafs", r->n_nodes, &r->leafs[1]));
    CLG_TRY(read_ints(r, "leaf_targetids", r->n_leaves, &r->leaf_targets));
    r->nan_is_true = node_ints(r->node, "nodes_missing_value_tracks_true", &n_missing);
    if (n_missing == 0) r->nan_is_true = NULL;
    r->roots = node_ints(r->node, "tree_roots", &r->n_roots);
    if (n_missing != 0 && n_missing != r->n_nodes)
        return bad(r, "its lists are not of the same length");
    return r->n_roots > 0 && r->n_roots <= r->n_nodes ? CLG_OK
                                                      : bad(r, "it has no roots, or too many");
}

/* Sets the set of each membership node: they are listed in the order of their nodes, separated by
 * NaNs. Counts the nodes of the result. */
static clg_status find_sets(reader *r)
{
    int64_t at = 0;
    const int64_t n = r->members ? r->members->n_elements : 0;
    for (size_t i = 0; i < r->n_nodes; i++) {
        r->n_packed++;
        if (tensor_get_int(r->modes, (int64_t)i) != MODE_MEMBER) continue;
        r->set_first[i] = at;
        while (at < n && !isnan(tensor_get_float(r->members, at))) at++;
        r->set_count[i] = at - r->set_first[i];
        if (at++ >= n || r->set_count[i] == 0)
            return bad(r, "a node has no set in membership_values");
        r->n_packed += (size_t)r->set_count[i];
    }
    return CLG_OK;
}

/* Checks modes and ranges, and that a node has at most one parent and a root none, so that there
 * are no cycles below roots. */
static clg_status check_nodes(reader *r)
{
    for (size_t i = 0; i < r->n_nodes; i++) {
        const int64_t mode = tensor_get_int(r->modes, (int64_t)i);
        if (mode < 0 || mode > MODE_MEMBER) return bad(r, "a node's mode is unknown");
        if (r->features[i] < 0 || r->features[i] >= INT32_MAX)
            return bad(r, "a node's feature is out of range");
        if (r->features[i] >= r->forest->n_features) r->forest->n_features = r->features[i] + 1;
        for (int side = 0; side < 2; side++) {
            const int64_t id = r->ids[side][i];
            const bool is_leaf = r->leafs[side][i] != 0;
            if (id < 0 || (uint64_t)id >= (is_leaf ? r->n_leaves : r->n_nodes))
                return bad(r, "a node leads to one that is not there");
            if (is_leaf) continue;
            if (r->is_below[id]) return bad(r, "a node has two above it");
            r->is_below[id] = true;
        }
    }
    for (size_t i = 0; i < r->n_roots; i++) {
        if (r->roots[i] < 0 || (uint64_t)r->roots[i] >= r->n_nodes)
            return bad(r, "a root is not there");
        if (r->is_below[r->roots[i]]) return bad(r, "a root has a node above it");
        r->is_below[r->roots[i]] = true;
    }
    for (size_t i = 0; i < r->n_leaves; i++)
        if (r->leaf_targets[i] < 0 || r->leaf_targets[i] >= r->forest->n_targets)
            return bad(r, "a leaf is for a target that is not there");
    return CLG_OK;
}

static int32_t word_of(int64_t mode)
{
    static const int32_t words[] = {TREE_LESS | TREE_EQUAL,
                                    TREE_LESS,
                                    TREE_GREATER | TREE_EQUAL,
                                    TREE_GREATER,
                                    TREE_EQUAL,
                                    TREE_LESS | TREE_GREATER | TREE_UNORDERED,
                                    TREE_EQUAL};
    return words[mode];
}

/* Writes a node. A membership node becomes `count` nodes, one for each member of its set: each has
 * the next one as its false branch, and all have the same true branch. */
static void put_node(reader *r, size_t from, size_t at, size_t count)
{
    tree_forest *f = r->forest;
    const int64_t mode = tensor_get_int(r->modes, (int64_t)from);
    for (size_t k = 0; k < count; k++) {
        int32_t *words = &f->nodes[(at + k) * TREE_NODE_WORDS];
        words[0] = (int32_t)r->features[from];
        words[1] = word_of(mode);
        if (r->nan_is_true && r->nan_is_true[from]) words[1] |= TREE_UNORDERED;
        words[3] = (int32_t)(at + k + 1);
        f->values[at + k] = mode == MODE_MEMBER
                                ? tensor_get_float(r->members, r->set_first[from] + (int64_t)k)
                                : tensor_get_float(r->splits, (int64_t)from);
    }
}

static void put_leaf(reader *r, int64_t id)
{
    int32_t *words = &r->forest->nodes[r->forest->n_nodes++ * TREE_NODE_WORDS];
    words[1] = TREE_LEAF;
    words[2] = (int32_t)id;
    words[3] = 1;
}

static void put_tree(reader *r, int64_t root, pending *stack)
{
    tree_forest *f = r->forest;
    size_t n_stack = 0;
    f->roots[f->n_trees++] = (int32_t)f->n_nodes;
    stack[n_stack++] = (pending){.id = root, .is_root = true};
    while (n_stack > 0) {
        const pending p = stack[--n_stack];
        const size_t at = f->n_nodes;
        for (size_t k = 0; !p.is_root && k < p.count; k++)
            f->nodes[(p.at + k) * TREE_NODE_WORDS + p.word] = (int32_t)at;
        if (p.is_leaf) {
            put_leaf(r, p.id);
            continue;
        }
        const size_t count = r->set_count[p.id] ? (size_t)r->set_count[p.id] : 1;
        f->n_nodes += count;
        put_node(r, (size_t)p.id, at, count);
        for (int side = 1; side >= 0; side--)
            stack[n_stack++] = (pending){.id = r->ids[side][p.id],
                                         .is_leaf = r->leafs[side][p.id] != 0,
                                         .at = side ? at + count - 1 : at,
                                         .count = side ? 1 : count,
                                         .word = side ? 3 : 2};
    }
}

static clg_status make_room(reader *r)
{
    tree_forest *f = r->forest;
    arena *m = &f->memory;
    const size_t max = r->n_packed + 2 * r->n_nodes + 1; /* each link to a leaf gets its own copy */
    f->nodes = arena_alloc(m, max * TREE_NODE_WORDS, sizeof *f->nodes);
    f->values = arena_alloc(m, max, sizeof *f->values);
    f->roots = arena_alloc(m, r->n_roots, sizeof *f->roots);
    f->vote_ids = arena_alloc(m, r->n_leaves, sizeof *f->vote_ids);
    f->vote_weights = arena_alloc(m, r->n_leaves, sizeof *f->vote_weights);
    f->base = arena_alloc(m, (size_t)f->n_targets, sizeof *f->base);
    return f->nodes && f->values && f->roots && f->vote_ids && f->vote_weights && f->base
               ? CLG_OK
               : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status read_all(reader *r)
{
    static const tree_aggregate hows[] = {TREE_AVERAGE, TREE_SUM, TREE_MIN, TREE_MAX};
    tree_forest *f = r->forest;
    const int64_t how = node_int(r->node, "aggregate_function", 1);
    f->n_targets = node_int(r->node, "n_targets", 1);
    if (f->n_targets > 1 << 20) return bad(r, "it has too many targets");
    f->aggregate = hows[how];
    CLG_TRY(read_lists(r));
    r->set_first = arena_alloc(&f->memory, r->n_nodes, sizeof *r->set_first);
    r->set_count = arena_alloc(&f->memory, r->n_nodes, sizeof *r->set_count);
    r->is_below = arena_alloc(&f->memory, r->n_nodes, sizeof *r->is_below);
    pending *stack = arena_alloc(&f->memory, r->n_nodes + 2, sizeof *stack);
    if (!r->set_first || !r->set_count || !r->is_below || !stack)
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(find_sets(r));
    CLG_TRY(check_nodes(r));
    CLG_TRY(make_room(r));
    for (size_t i = 0; i < r->n_roots; i++) put_tree(r, r->roots[i], stack);
    f->n_votes = r->n_leaves;
    for (size_t i = 0; i < r->n_leaves; i++) {
        f->vote_ids[i] = (int32_t)r->leaf_targets[i];
        f->vote_weights[i] = tensor_get_float(r->leaf_weights, (int64_t)i);
    }
    return CLG_OK;
}

clg_status tree_read_5(const node *n, tree_forest *out_forest)
{
    *out_forest = (tree_forest){.n_features = 1, .first_id = -1};
    reader r = {.node = n, .forest = out_forest};
    const clg_status status = read_all(&r);
    if (status != CLG_OK) tree_deinit(out_forest);
    return status;
}
