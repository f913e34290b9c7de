/* SPDX-License-Identifier: Apache-2.0
 *
 * Small problems of the kind of a node being planned. Lowering chooses kernels and tiles by sizes, so several sizes are
 * offered, each with remainders in every direction where the node is larger; the one that is lowered to the node's own programs is the one to take.
 */
#include "session/selftest.h"

#include "ops/window.h"

#include <string.h>

/* A product of m x k by k x n; a convolution has m and k channels and rows x columns of outputs. Nothing becomes larger
 * than it is. */
typedef struct small_size {
    int64_t m, n, k, rows, columns;
} small_size;

static const small_size sizes[] = {
    {37, 45, 23, 11, 19},       {5, 45, 23, 3, 5}, /* few rows, a small map */
    {95, 13, 259, 7, 7},                           /* narrow; a convolution that is turned */
    {95, 13, 259, 1, 1},                           /* a map of one pixel */
    {37, 1029, 23, 33, 35},                        /* wide */
    {1027, 1029, 19, 33, 35},                      /* large tiles */
    {2053, 2053, 2053, 47, 47}, /* as it is, mostly: CLBlast's kernels for large products */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* A size that stands for `side` of the node in other operands, too. */
static int64_t swapped(int64_t dim, int64_t side, int64_t small)
{
    return dim == side ? small : dim;
}

/* Gemm, MatMul: the last two dimensions of each operand; batches of two. */
static bool shrink_product(const lower_context *lc, const small_size *to, shape dims[])
{
    const shape *a = &lc->inputs[0].dims, *b = &lc->inputs[1].dims, *y = &lc->outputs[0].dims;
    if (a->rank < 2 || b->rank < 2 || y->rank < 2) return false;
    const bool trans_a = node_int(lc->node, "transA", 0) != 0,
               trans_b = node_int(lc->node, "transB", 0) != 0;
    const int64_t m = y->dims[y->rank - 2], n = y->dims[y->rank - 1];
    const int64_t k = a->dims[trans_a ? a->rank - 2 : a->rank - 1];
    const int64_t small_m = least(m, to->m), small_n = least(n, to->n), small_k = least(k, to->k);
    for (size_t i = 0; i < lc->n_inputs; i++) {
        shape *s = &dims[i];
        for (int d = 0; d < s->rank - 2; d++) s->dims[d] = least(s->dims[d], 2);
        const bool trans = i == 0 ? trans_a : i == 1 && trans_b;
        const int64_t down = i == 1 ? small_k : small_m, across = i == 0 ? small_k : small_n;
        if (i < 2) {
            s->dims[s->rank - 2] = trans ? across : down;
            s->dims[s->rank - 1] = trans ? down : across;
        } else {
            if (s->rank > 0) s->dims[s->rank - 1] = swapped(s->dims[s->rank - 1], n, small_n);
            if (s->rank > 1) s->dims[s->rank - 2] = swapped(s->dims[s->rank - 2], m, small_m);
        }
    }
    return true;
}

static bool shrink_conv(const lower_context *lc, const small_size *to, shape dims[])
{
    const int64_t groups = node_int(lc->node, "group", 1);
    window win;
    if (window_read(lc->node, &dims[0], &dims[1], &win) != CLG_OK) return false;
    const int64_t ic = least(dims[1].dims[1], groups > 8 ? 5 : to->k);
    const int64_t oc = least(dims[1].dims[0] / groups, groups > 8 ? 5 : to->m);
    dims[0].dims[0] = least(dims[0].dims[0], 2);
    dims[0].dims[1] = groups * ic;
    dims[1].dims[0] = groups * oc;
    dims[1].dims[1] = ic;
    for (int i = 0; i < win.n_axes; i++) {
        const window_axis *a = &win.axes[i];
        const int from_last = win.n_axes - 1 - i;
        const int64_t outputs = from_last == 0 ? to->columns : from_last == 1 ? to->rows : 2;
        const int64_t wanted = (outputs - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 -
                               a->pad_begin - a->pad_end;
        dims[0].dims[2 + i] = least(a->in, wanted < 1 ? 1 : wanted);
    }
    if (lower_has_input(lc, 2)) dims[2].dims[0] = groups * oc;
    if (lower_has_input(lc, 3)) {
        if (window_read(lc->node, &dims[0], &dims[1], &win) != CLG_OK) return false;
        window_shape(&win, dims[0].dims[0], groups * oc, &dims[3]);
    }
    return true;
}

/* Strides in the order of those of `like`, without gaps: a transposed operand stays one. */
static void set_strides(const lower_operand *like, lower_operand *o)
{
    bool done[CLG_MAX_RANK] = {false};
    int64_t stride = 1;
    shape_strides(&o->dims, o->strides);
    for (int turn = 0; !o->dense && turn < o->dims.rank; turn++) {
        int next = -1;
        for (int d = o->dims.rank - 1; d >= 0; d--)
            if (!done[d] && (next < 0 || like->strides[d] < like->strides[next])) next = d;
        done[next] = true;
        if (like->strides[next] == 0) {
            o->strides[next] = 0;
        } else {
            o->strides[next] = stride;
            stride *= o->dims.dims[next];
        }
    }
}

bool selftest_small(const lower_context *lc, size_t attempt, selftest_problem *out_problem)
{
    selftest_reference *const reference = selftest_product_reference(lc->node);
    if (!reference || lc->n_inputs > SELFTEST_MAX_INPUTS || lc->n_outputs != 1 ||
        attempt >= sizeof sizes / sizeof *sizes)
        return false;
    selftest_problem *p = out_problem;
    *p = (selftest_problem){
        .n = *lc->node, .low = -1, .high = 1, .tolerance = 1, .reference = reference};
    shape dims[SELFTEST_MAX_INPUTS] = {{0}};
    for (size_t i = 0; i < lc->n_inputs; i++) dims[i] = lc->inputs[i].dims;
    const bool is_conv = strstr(lc->node->op_type, "Conv") != NULL;
    if (!(is_conv ? shrink_conv : shrink_product)(lc, &sizes[attempt], dims)) return false;
    for (size_t i = 0; i < lc->n_inputs; i++) {
        p->inputs[i] = lc->inputs[i];
        p->inputs[i].dims = dims[i];
        p->inputs[i].known = NULL;
        if (lower_has_input(lc, i)) set_strides(&lc->inputs[i], &p->inputs[i]);
    }
    return true;
}
