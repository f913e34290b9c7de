/* SPDX-License-Identifier: Apache-2.0
 *
 * Smaller shapes for the self-test of any operator. A size of the node's inputs is replaced by a
 * smaller one wherever it occurs, so that sizes that must be equal stay equal. What an operator
 * then does not accept (a Reshape to given sizes, for instance), or lowers to other kernels, is not
 * used: the caller tries the next attempt; the last one is the node's own shapes.
 */
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

/* Limits of sizes. A smaller size has the same remainder by 16 as the node's, since that often
 * decides which vectors a kernel uses. */
typedef struct size_limit {
    int64_t inner, outer; /* of sizes that are some input's last dimension, and of others */
    bool keeps_weights;   /* sizes of constant inputs stay */
} size_limit;

static const size_limit limits[] = {
    {1031, 5, false}, {131, 19, false}, {67, 67, false},
    {131, 5, true},   {19, 5, true},    {INT64_MAX, INT64_MAX, false},
};
enum { N_LIMITS = sizeof limits / sizeof *limits, REMAINDER = 16 };

static bool has_size(const shape *s, int from, int64_t size)
{
    for (int d = from; d < s->rank; d++)
        if (s->dims[d] == size) return true;
    return false;
}

/* Returns whether a size is the last dimension of an input. */
static bool is_inner(const lower_context *lc, int64_t size)
{
    for (size_t i = 0; i < lc->n_inputs; i++) {
        const shape *s = &lc->inputs[i].dims;
        if (lc->inputs[i].dtype != CLG_DTYPE_NONE && s->rank > 0 && has_size(s, s->rank - 1, size))
            return true;
    }
    return false;
}

/* Returns whether a size must stay: where weights have it and are to be kept, or an attribute says
 * it, as hidden_size does. */
static bool is_fixed(const lower_context *lc, const size_limit *to, int64_t size)
{
    for (size_t i = 0; to->keeps_weights && i < lc->n_inputs; i++)
        if (lc->inputs[i].constant && has_size(&lc->inputs[i].dims, 0, size)) return true;
    for (size_t i = 0; lc->node && i < lc->node->n_attributes; i++) {
        const graph_attribute *a = &lc->node->attributes[i];
        if (a->type == ATTRIBUTE_INT && a->as.i == size) return true;
    }
    return false;
}

static int64_t smaller(const lower_context *lc, const size_limit *to, int64_t size)
{
    const int64_t limit = is_inner(lc, size) ? to->inner : to->outer;
    if (limit == INT64_MAX || size < limit + REMAINDER || is_fixed(lc, to, size)) return size;
    return limit + (size - limit) % REMAINDER;
}

bool selftest_shrink(const lower_context *lc, size_t attempt, shape dims[SELFTEST_MAX_INPUTS])
{
    if (attempt >= N_LIMITS) return false;
    for (size_t i = 0; i < lc->n_inputs; i++) {
        if (lc->inputs[i].dtype == CLG_DTYPE_NONE) continue;
        for (int d = 0; d < dims[i].rank; d++)
            dims[i].dims[d] = smaller(lc, &limits[attempt], dims[i].dims[d]);
    }
    return true;
}
