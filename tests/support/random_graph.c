/* SPDX-License-Identifier: Apache-2.0
 *
 * See random_graph.h. Values so far are a pool; each node takes some of them and gives new ones.
 */
#include "support/random_graph.h"

#include "support/unit.h"

#include <string.h>

#define MAX_POOL 256
#define MAX_ELEMENTS 600

typedef struct pooled {
    value_id id;
    shape dims;
} pooled;

typedef struct maker {
    plan_case *k;
    uint64_t random;
    pooled pool[MAX_POOL];
    size_t n;
} maker;

uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t below(maker *m, int64_t n)
{
    return (int64_t)(random_next(&m->random) % (uint64_t)n);
}

static int64_t count(const shape *s)
{
    int64_t n;
    assert_ok(shape_n_elements(s, &n));
    return n;
}

static void keep(maker *m, value_id id, const shape *dims)
{
    if (m->n < MAX_POOL) m->pool[m->n++] = (pooled){id, *dims};
}

/* Later values more often than early ones, so that chains form. */
static pooled take(maker *m)
{
    size_t i = (size_t)below(m, (int64_t)m->n), j = (size_t)below(m, (int64_t)m->n);
    return m->pool[i > j ? i : j];
}

static node_id last(const maker *m) { return plan_case_last(m->k); }

/* ---- nodes -------------------------------------------------------------------------------------------- */

static void unary(maker *m)
{
    static const char *const ops[] = {"Neg", "Relu", "Abs", "Sigmoid", "Softmax"};
    pooled v = take(m);
    const char *op = ops[below(m, v.dims.rank ? 5 : 4)];
    keep(m, plan_case_node(m->k, op, 1, &v.id), &v.dims);
}

static void binary(maker *m)
{
    static const char *const ops[] = {"Add", "Mul", "Sub", "Max"};
    pooled a = take(m), b = take(m);
    shape out;
    if (shape_broadcast(&a.dims, &b.dims, &out) != CLG_OK || count(&out) > MAX_ELEMENTS) {
        b = a;
        out = a.dims;
    }
    value_id inputs[] = {a.id, b.id};
    keep(m, plan_case_node(m->k, ops[below(m, 4)], 2, inputs), &out);
}

static void reshape(maker *m)
{
    pooled v = take(m);
    int64_t n = count(&v.dims);
    shape to = {.rank = 1 + (int)below(m, 3)};
    if (n == 0) return;
    for (int d = 0; d < to.rank; d++) {
        int64_t part = n;
        for (int64_t p = 2 + below(m, 3); d + 1 < to.rank && p < 8; p++)
            if (n % p == 0) part = p;
        to.dims[d] = part;
        n /= part;
    }
    to.dims[to.rank - 1] *= n;
    value_id inputs[] = {v.id, plan_case_ints(m->k, (size_t)to.rank, to.dims)};
    keep(m, plan_case_node(m->k, "Reshape", 2, inputs), &to);
}

static void slice(maker *m)
{
    pooled v = take(m);
    if (v.dims.rank == 0) return;
    int64_t axis = below(m, v.dims.rank), dim = v.dims.dims[axis], by = 1 + below(m, 3);
    int64_t start = below(m, dim + 1), end = start + below(m, dim - start + 1);
    shape out = v.dims;
    out.dims[axis] = end > start ? (end - start - 1) / by + 1 : 0;
    if (below(m, 4) == 0 && end > start) { /* from the back */
        int64_t first = end - 1;
        end = start - 1 < 0 ? -dim - 1 : start - 1;
        start = first;
        by = -by;
    }
    value_id inputs[] = {v.id, plan_case_ints(m->k, 1, &start), plan_case_ints(m->k, 1, &end),
                         plan_case_ints(m->k, 1, &axis), plan_case_ints(m->k, 1, &by)};
    keep(m, plan_case_node(m->k, "Slice", 5, inputs), &out);
}

static void split(maker *m)
{
    pooled v = take(m);
    value_id out[3];
    if (v.dims.rank == 0) return;
    int64_t axis = below(m, v.dims.rank), dim = v.dims.dims[axis], a = below(m, dim + 1);
    int64_t sizes[3] = {a, below(m, dim - a + 1), 0};
    sizes[2] = dim - sizes[0] - sizes[1];
    value_id inputs[] = {v.id, plan_case_ints(m->k, 3, sizes)};
    plan_case_node_of(m->k, "Split", 2, inputs, 3, out);
    assert_ok(node_set_int(m->k->g, last(m), "axis", axis));
    for (int i = 0; i < 3; i++) {
        v.dims.dims[axis] = sizes[i];
        keep(m, out[i], &v.dims);
    }
}

static void concat(maker *m)
{
    pooled a = take(m), b = take(m);
    if (a.dims.rank == 0) return;
    int64_t axis = below(m, a.dims.rank);
    bool fits = a.dims.rank == b.dims.rank;
    for (int d = 0; fits && d < a.dims.rank; d++)
        fits = d == axis || a.dims.dims[d] == b.dims.dims[d];
    if (!fits) b = a;
    shape out = a.dims;
    out.dims[axis] += b.dims.dims[axis];
    if (count(&out) > MAX_ELEMENTS) return;
    value_id inputs[] = {a.id, b.id};
    value_id v = plan_case_node(m->k, "Concat", 2, inputs);
    assert_ok(node_set_int(m->k->g, last(m), "axis", axis));
    keep(m, v, &out);
}

static void transpose(maker *m)
{
    pooled v = take(m);
    int64_t perm[CLG_MAX_RANK] = {0};
    shape out = v.dims;
    if (v.dims.rank < 2) return;
    for (int d = 0; d < v.dims.rank; d++) perm[d] = d;
    for (int d = v.dims.rank - 1; d > 0; d--) {
        int64_t other = below(m, d + 1), t = perm[d];
        perm[d] = perm[other];
        perm[other] = t;
    }
    for (int d = 0; d < v.dims.rank; d++) out.dims[d] = v.dims.dims[perm[d]];
    value_id id = plan_case_node(m->k, "Transpose", 1, &v.id);
    assert_ok(node_set_ints(m->k->g, last(m), "perm", (size_t)v.dims.rank, perm));
    keep(m, id, &out);
}

static void matmul(maker *m)
{
    pooled v = take(m);
    if (v.dims.rank < 2) return;
    int64_t n = 1 + below(m, 9);
    shape weight = {.rank = 2, .dims = {v.dims.dims[v.dims.rank - 1], n}}, out = v.dims;
    out.dims[out.rank - 1] = n;
    value_id inputs[2] = {v.id, VALUE_NONE};
    if (below(m, 2)) {
        inputs[1] = plan_case_floats(m->k, 2, weight.dims);
    } else { /* by another value: its own rows, turned */
        if (v.dims.rank != 2) return;
        inputs[1] = plan_case_node(m->k, "Transpose", 1, &v.id);
        out.dims[1] = v.dims.dims[0];
    }
    if (count(&out) > MAX_ELEMENTS) return;
    keep(m, plan_case_node(m->k, "MatMul", 2, inputs), &out);
}

static void expand(maker *m)
{
    pooled v = take(m);
    shape out = v.dims;
    if (v.dims.rank == 0 || v.dims.rank > 3) return;
    memmove(out.dims + 1, v.dims.dims, (size_t)v.dims.rank * sizeof(int64_t));
    out.rank++;
    out.dims[0] = 2 + below(m, 2);
    if (count(&out) > MAX_ELEMENTS) return;
    value_id inputs[] = {v.id, plan_case_ints(m->k, (size_t)out.rank, out.dims)};
    keep(m, plan_case_node(m->k, "Expand", 2, inputs), &out);
}

/* w flattened to a shape of one number that only the device knows: -1 */
static void data_dependent(maker *m)
{
    pooled v = take(m), w = take(m);
    if (count(&v.dims) == 0 || count(&w.dims) == 0) return;
    const int64_t flat = -1, zero = 0, one = 1;
    value_id whole[] = {v.id, plan_case_ints(m->k, 1, &flat)};
    value_id line = plan_case_node(m->k, "Reshape", 2, whole);
    value_id first[] = {line, plan_case_ints(m->k, 1, &zero), plan_case_ints(m->k, 1, &one)};
    value_id element = plan_case_node(m->k, "Slice", 3, first);
    value_id minus[] = {plan_case_node(m->k, "Abs", 1, &element), VALUE_NONE};
    minus[1] = plan_case_node(m->k, "Add", 2, (value_id[]){minus[0], minus[0]});
    value_id negative = plan_case_node(m->k, "Sub", 2, minus); /* -|first| */
    value_id clamp = plan_case_node(m->k, "Sign", 1, &negative);
    value_id number = plan_case_node(m->k, "Cast", 1, &clamp);
    assert_ok(node_set_int(m->k->g, last(m), "to", CLG_INT64));
    value_id inputs[] = {w.id, number};
    keep(m, plan_case_node(m->k, "Reshape", 2, inputs),
         &(shape){.rank = 1, .dims = {count(&w.dims)}});
}

/* ---- whole graphs --------------------------------------------------------------------------------------- */

static void add_outputs(maker *m, const random_graph_options *o)
{
    size_t n = 1 + (size_t)below(m, 4);
    for (size_t i = 0; i < n; i++) {
        value_id v = i == 0 ? m->pool[m->n - 1].id : take(m).id;
        bool seen = false;
        for (size_t j = 0; j < m->k->c.n_outputs; j++) seen |= m->k->outputs[j] == v;
        if (!seen || o->repeated_outputs) plan_case_output(m->k, v);
    }
}

void random_graph_make(plan_case *k, uint64_t seed, const random_graph_options *o)
{
    static void (*const makers[])(maker *) = {unary,  binary, reshape,       slice,
                                              split,  concat, transpose,     matmul,
                                              expand, binary, data_dependent};
    maker m = {.k = k, .random = seed * 2654435761u + 1};
    const int64_t dims[] = {1 + below(&m, 5), 1 + below(&m, 6), 1 + below(&m, 7)};
    shape x = {.rank = 3, .dims = {dims[0], dims[1], dims[2]}};
    shape y = {.rank = 2, .dims = {dims[1], dims[2]}};
    keep(&m, plan_case_input(k, "x", CLG_FLOAT32, 3, x.dims), &x);
    keep(&m, plan_case_input(k, "y", CLG_FLOAT32, 2, y.dims), &y);
    keep(&m, plan_case_floats(k, 1, x.dims + 2), &(shape){.rank = 1, .dims = {dims[2]}});
    for (size_t i = 0; i < o->n_nodes; i++)
        makers[below(&m, o->data_dependent && i % 8 == 7 ? 11 : 10)](&m);
    add_outputs(&m, o);
}
