/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes random graphs of shape arithmetic over open dimensions. Compares what is inferred of them
 * before and after the pass `shapes`, for several sizes of the inputs, and checks that equal terms
 * are equal numbers. A graph is made so that
 * it is valid for one set of sizes; others for which it is not are not compared. Sizes that are
 * equal by chance in that set are used for each other, so that a rule that takes them for equal is
 * found.
 */
#include "support/cases/pass_case.h"

#include "passes/shapes/shape_terms.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_SEEDS = 1000, N_INPUTS = 2, N_SETS = 6, MAX_VALUES = 48, MOST_RANK = 5 };

typedef struct maker {
    pass_case m;
    uint64_t state;
    int64_t sizes[N_INPUTS][2]; /* of the open dimensions, for which the graph is valid */
    value_fact *facts;          /* for these sizes */
    size_t n_facts;
    value_id tensors[MAX_VALUES], lists[MAX_VALUES];
    size_t n_tensors, n_lists;
    unsigned n_names;
    bool failed; /* the last node was not valid: the graph is given up */
} maker;

static size_t draw(maker *k, size_t n)
{
    k->state = k->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(k->state >> 33) % n;
}

static const char *new_name(maker *k)
{
    static char name[32];
    (void)snprintf(name, sizeof name, "v%u", k->n_names++);
    return name;
}

/* ---- inference ------------------------------------------------------------------------------- */

static clg_status infer(const graph *g, const int64_t sizes[][2], value_fact **out_facts)
{
    value_fact inputs[N_INPUTS] = {{0}};
    for (size_t i = 0; i < g->n_inputs; i++) {
        const shape dims = {.rank = 3, .dims = {sizes[i][0], sizes[i][1], 12}};
        fact_set(&inputs[i], CLG_FLOAT32, &dims);
    }
    return ops_infer_graph(g, inputs, out_facts);
}

static void update(maker *k)
{
    if (k->facts) ops_facts_free(k->facts, k->n_facts);
    k->facts = NULL;
    k->n_facts = k->m.graph->n_values;
    assert_ok(ops_resolve(k->m.graph));
    if (infer(k->m.graph, (const int64_t(*)[2])k->sizes, &k->facts) != CLG_OK) k->failed = true;
}

static const shape *dims_of(const maker *k, value_id v) { return &k->facts[v].dims; }

/* ---- nodes ----------------------------------------------------------------------------------- */

static value_id add(maker *k, const char *op, size_t n, const value_id *inputs)
{
    return pass_case_node(&k->m, op, n, inputs, new_name(k));
}

static void set_int(maker *k, const char *name, int64_t value)
{
    assert_ok(node_set_int(k->m.graph, pass_case_last(&k->m), name, value));
}

static void set_axes(maker *k, int64_t axis)
{
    assert_ok(node_set_ints(k->m.graph, pass_case_last(&k->m), "axes", 1, &axis));
}

static value_id ints(maker *k, size_t n, const int64_t *numbers)
{
    return pass_case_ints(&k->m, new_name(k), n, numbers);
}

static value_id one(maker *k, int64_t number) { return ints(k, 1, &number); }

static void keep(maker *k, value_id *list, size_t *n, value_id v)
{
    update(k);
    if (!k->failed && *n < MAX_VALUES) list[(*n)++] = v;
}

static void keep_tensor(maker *k, value_id v) { keep(k, k->tensors, &k->n_tensors, v); }
static void keep_list(maker *k, value_id v) { keep(k, k->lists, &k->n_lists, v); }

/* Adds an element of the shape of v, as a list of one, by one of the forms that exporters write. */
static value_id size_of(maker *k, value_id v, int axis)
{
    value_id list = add(k, "Shape", 1, &v);
    const int rank = dims_of(k, v)->rank;
    if (draw(k, 4) == 0) {
        list = add(k, "Cast", 1, &list);
        set_int(k, "to", CLG_INT32);
        list = add(k, "Cast", 1, &list);
        set_int(k, "to", CLG_INT64);
    }
    if (draw(k, 3) == 0)
        return add(k, "Slice", 3, (value_id[]){list, one(k, axis), one(k, axis + 1)});
    return add(k, "Gather", 2, (value_id[]){list, one(k, draw(k, 2) ? axis : axis - rank)});
}

static value_id join(maker *k, size_t n, const value_id *parts)
{
    const value_id list = add(k, "Concat", n, parts);
    set_int(k, "axis", 0);
    return list;
}

/* Adds a list of one element that is this number for the maker's sizes: of any tensor that has it
 * as a dimension, or a constant. */
static value_id any_size(maker *k, int64_t number)
{
    for (int attempt = 0; attempt < 8 && draw(k, 5); attempt++) {
        const value_id v = k->tensors[draw(k, k->n_tensors)];
        const shape *dims = dims_of(k, v);
        const int axis = dims->rank > 0 ? (int)draw(k, (size_t)dims->rank) : 0;
        if (dims->rank > 0 && dims->dims[axis] == number) return size_of(k, v, axis);
    }
    return one(k, number);
}

/* Adds the product of the dimensions of v from `first` up to `end`, as a list of one. */
static value_id product_of(maker *k, value_id v, int first, int end)
{
    value_id product = size_of(k, v, first);
    if (draw(k, 3) == 0) {
        int64_t axes[MOST_RANK];
        for (int i = first; i < end; i++) axes[i - first] = i;
        const value_id list = add(k, "Shape", 1, &v);
        const value_id some =
            add(k, "Gather", 2, (value_id[]){list, ints(k, (size_t)(end - first), axes)});
        product = add(k, "ReduceProd", 1, &some);
        set_axes(k, 0);
        return product;
    }
    for (int i = first + 1; i < end; i++)
        product = add(k, "Mul", 2, (value_id[]){product, size_of(k, v, i)});
    return product;
}

static void add_reshape(maker *k, value_id v)
{
    const shape *dims = dims_of(k, v);
    value_id parts[2 * MOST_RANK];
    size_t n = 0;
    bool is_open = draw(k, 2) == 0; /* no -1 */
    for (int first = 0, end; first < dims->rank && n < MOST_RANK; first = end) {
        int64_t size = dims->dims[first];
        for (end = first + 1; end < dims->rank && draw(k, 3) == 0; end++) size *= dims->dims[end];
        if (n + 1 == MOST_RANK)
            for (; end < dims->rank; end++) size *= dims->dims[end];
        const size_t form = draw(k, 8);
        if (form == 0 && !is_open) {
            parts[n++] = one(k, -1);
            is_open = true;
        } else if (form == 1 && end == first + 1 && (int)n == first) {
            parts[n++] = one(k, 0);
        } else if (form == 2 && size % 2 == 0 && n + 1 < MOST_RANK) {
            const value_id two[] = {any_size(k, size), one(k, 2)};
            parts[n++] = add(k, "Div", 2, two);
            parts[n++] = one(k, 2);
        } else {
            parts[n++] = form < 6 ? product_of(k, v, first, end) : any_size(k, size);
        }
    }
    if (n == 0) return;
    const value_id to = n == 1 ? parts[0] : join(k, n, parts);
    keep_tensor(k, add(k, "Reshape", 2, (value_id[]){v, to}));
}

/* Adds Reshape(product(Reshape(v, [rows, columns]), w), list), as of a fully connected layer. */
static void add_layer(maker *k, value_id v)
{
    const shape *dims = dims_of(k, v);
    value_id parts[MOST_RANK];
    const int rank = dims->rank;
    if (rank < 2) return;
    const int64_t width = dims->dims[rank - 1];
    const value_id flat_to[] = {draw(k, 2) ? one(k, -1) : product_of(k, v, 0, rank - 1),
                                draw(k, 2) ? one(k, width) : size_of(k, v, rank - 1)};
    const value_id flat = add(k, "Reshape", 2, (value_id[]){v, join(k, 2, flat_to)});
    const value_id w = pass_case_constant(&k->m, new_name(k), 2, (int64_t[]){width, 6}),
                   b = pass_case_constant(&k->m, new_name(k), 1, (int64_t[]){6});
    const bool is_gemm = draw(k, 2) == 0;
    const value_id y =
        add(k, is_gemm ? "Gemm" : "MatMul", is_gemm ? 3 : 2, (value_id[]){flat, w, b});
    for (int i = 0; i < rank - 1; i++)
        parts[i] = draw(k, 4) ? size_of(k, v, i) : any_size(k, dims->dims[i]);
    parts[rank - 1] = draw(k, 2) ? one(k, 6) : one(k, -1);
    keep_tensor(k, add(k, "Reshape", 2, (value_id[]){y, join(k, (size_t)rank, parts)}));
}

static void add_pool(maker *k, value_id v)
{
    const int64_t size = 1 + (int64_t)draw(k, 3), before = (int64_t)draw(k, (size_t)size),
                  after = (int64_t)draw(k, (size_t)size);
    const value_id y = add(k, "AveragePool", 1, &v);
    graph *g = k->m.graph;
    const node_id n = pass_case_last(&k->m);
    assert_ok(node_set_ints(g, n, "kernel_shape", 1, &size));
    if (draw(k, 3) == 0)
        assert_ok(node_set_string(g, n, "auto_pad", draw(k, 2) ? "SAME_UPPER" : "VALID"));
    else
        assert_ok(node_set_ints(g, n, "pads", 2, (int64_t[]){before, after}));
    if (draw(k, 3) == 0) assert_ok(node_set_ints(g, n, "strides", 1, (int64_t[]){2}));
    keep_tensor(k, y);
}

static void add_tensor(maker *k)
{
    const value_id v = k->tensors[draw(k, k->n_tensors)], other = k->tensors[draw(k, k->n_tensors)];
    const shape *dims = dims_of(k, v);
    const int rank = dims->rank;
    const int64_t axis = rank > 0 ? (int64_t)draw(k, (size_t)rank) : 0;
    shape both;
    value_id y;
    switch (draw(k, 15)) {
    case 0: keep_tensor(k, add(k, "Relu", 1, &v)); break;
    case 1: keep_tensor(k, add(k, "Transpose", 1, &v)); break;
    case 2:
        if (rank < MOST_RANK) keep_tensor(k, add(k, "Unsqueeze", 2, (value_id[]){v, one(k, axis)}));
        break;
    case 3:
    case 4:
        if (shape_broadcast(dims, dims_of(k, other), &both) == CLG_OK)
            keep_tensor(k, add(k, "Add", 2, (value_id[]){v, other}));
        break;
    case 5:
        if (rank == 0) break;
        y = add(k, "Relu", 1, &v);
        y = add(k, "Concat", 2, (value_id[]){v, y});
        set_int(k, "axis", axis);
        keep_tensor(k, y);
        break;
    case 6:
        if (rank == 0) break;
        y = add(k, "ReduceMean", 1, &v);
        set_axes(k, draw(k, 2) ? axis : axis - rank);
        set_int(k, "keepdims", (int64_t)draw(k, 2));
        keep_tensor(k, y);
        break;
    case 7:
        if (rank == 0) break;
        y = add(k, "Gather", 2, (value_id[]){v, one(k, 0)});
        set_int(k, "axis", axis);
        keep_tensor(k, y);
        break;
    case 8:
        if (rank > 0)
            keep_tensor(k, add(k, "Slice", 4,
                               (value_id[]){v, one(k, 0), one(k, draw(k, 2) ? 1 : INT64_MAX),
                                            one(k, axis - rank)}));
        break;
    case 9: add_layer(k, v); break;
    case 11:
        if (draw(k, 2)) {
            keep_tensor(k, add(k, "CastLike", 2, (value_id[]){v, other}));
        } else if (rank > 1 && dims->dims[axis] == 1) {
            keep_tensor(k, add(k, "Squeeze", 2, (value_id[]){v, one(k, axis - rank)}));
        } else if (shape_broadcast(dims, dims_of(k, other), &both) == CLG_OK &&
                   shape_equal(&both, dims)) {
            keep_tensor(k, add(k, "PRelu", 2, (value_id[]){v, other}));
        }
        break;
    case 10:
        if (draw(k, 2)) {
            y = add(k, "Flatten", 1, &v);
            set_int(k, "axis", axis);
            keep_tensor(k, y);
        } else if (rank == 3) {
            add_pool(k, v);
        }
        break;
    default: add_reshape(k, v); break;
    }
}

static void add_list(maker *k)
{
    static const char *const operators[] = {"Add", "Sub", "Mul", "Div"};
    const value_id v = k->tensors[draw(k, k->n_tensors)];
    const int rank = dims_of(k, v)->rank;
    if (k->n_lists == 0 || draw(k, 2)) {
        if (rank > 0) keep_list(k, size_of(k, v, (int)draw(k, (size_t)rank)));
        return;
    }
    const value_id a = k->lists[draw(k, k->n_lists)], b = k->lists[draw(k, k->n_lists)];
    value_id second = draw(k, 2) ? b : one(k, 1 + (int64_t)draw(k, 3)), first = a;
    const bool is_narrow = draw(k, 3) == 0;
    for (int i = 0; i < 2 && is_narrow; i++) {
        value_id *operand = i ? &second : &first;
        *operand = add(k, "Cast", 1, operand);
        set_int(k, "to", CLG_INT32);
    }
    value_id y = add(k, operators[draw(k, 4)], 2, (value_id[]){first, second});
    if (is_narrow) {
        y = add(k, "Cast", 1, &y);
        set_int(k, "to", CLG_INT64);
    }
    keep_list(k, y);
}

/* ---- terms ----------------------------------------------------------------------------------- */

/* The number that each term is for a set of sizes, once it was seen. */
typedef struct term_numbers {
    int64_t *numbers;
    bool *seen;
    size_t n_repeated; /* terms that were seen again */
} term_numbers;

/* Returns whether a term that was seen before is the same number again. */
static bool agrees(term_numbers *n, size_term term, int64_t number)
{
    n->n_repeated += n->seen[term];
    if (n->seen[term] && n->numbers[term] != number) return false;
    n->numbers[term] = number;
    n->seen[term] = true;
    return true;
}

/* Checks that equal terms are equal numbers, and numbers right, for one set of sizes. */
static size_t check_terms(uint64_t seed, const shape_terms *s, const value_fact *facts)
{
    term_numbers n = {memory_zalloc(s->terms.n + 1, sizeof *n.numbers),
                      memory_zalloc(s->terms.n + 1, sizeof *n.seen), 0};
    for (size_term t = 0; t < s->terms.n; t++)
        n.seen[t] = size_terms_is_number(&s->terms, t, &n.numbers[t]);
    for (value_id v = 0; v < s->info.n_values; v++) {
        const value_terms *x = &s->values[v];
        bool right = true;
        for (int i = 0; x->dims && facts[v].dims.rank >= 0 && i < facts[v].dims.rank; i++)
            right = right && (facts[v].dims.dims[i] == DIM_UNKNOWN ||
                              agrees(&n, x->dims[i], facts[v].dims.dims[i]));
        for (size_t i = 0; x->elements && facts[v].known && i < x->n_elements; i++)
            right = right && agrees(&n, x->elements[i], tensor_get_int(facts[v].known, (int64_t)i));
        if (!right)
            fail_msg("seed %llu: a term of '%s' is wrong", (unsigned long long)seed,
                     s->info.graph->values[v].name);
    }
    memory_free(n.numbers);
    memory_free(n.seen);
    return n.n_repeated;
}

/* ---- the comparison -------------------------------------------------------------------------- */

typedef struct counts {
    size_t n_graphs, n_smaller, n_compared, n_other_sizes, n_terms;
} counts;

/* Returns whether all outputs of a graph have known shapes. */
static bool are_known(const graph *g, const value_fact *facts)
{
    for (size_t i = 0; i < g->n_outputs; i++)
        if (!shape_is_known(&facts[g->outputs[i]].dims)) return false;
    return true;
}

static void compare(uint64_t seed, const shape_terms *terms, const graph *after,
                    const int64_t sizes[][2], bool is_first, counts *n)
{
    const graph *before = terms->info.graph;
    value_fact *a = NULL, *b = NULL;
    if (infer(before, sizes, &a) != CLG_OK) return;
    n->n_terms += check_terms(seed, terms, a);
    if (are_known(before, a)) {
        if (infer(after, sizes, &b) != CLG_OK)
            fail_msg("seed %llu: after the pass: %s", (unsigned long long)seed, error_text());
        for (size_t i = 0; i < before->n_outputs; i++) {
            const value_fact *x = &a[before->outputs[i]], *y = &b[after->outputs[i]];
            const bool is_list = x->known != NULL;
            if (!shape_equal(&x->dims, &y->dims) || x->dtype != y->dtype ||
                (is_list && (!y->known || !tensor_equal(x->known, y->known))))
                fail_msg("seed %llu: output %zu, '%s', differs", (unsigned long long)seed, i,
                         before->values[before->outputs[i]].name);
        }
        n->n_compared++;
        n->n_other_sizes += !is_first;
        ops_facts_free(b, after->n_values);
    }
    ops_facts_free(a, before->n_values);
}

static void check_graph(maker *k, uint64_t seed, counts *n)
{
    graph *before;
    /* the last ones depend on the others; lists that Relu reads as a number would be floats */
    for (size_t i = k->n_tensors > 3 ? k->n_tensors - 3 : N_INPUTS; i + 1 < k->n_tensors; i++)
        assert_ok(graph_add_output(k->m.graph, k->tensors[i]));
    for (size_t i = k->n_lists > 2 ? k->n_lists - 2 : 0; i < k->n_lists; i++)
        assert_ok(graph_add_output(k->m.graph, k->lists[i]));
    assert_ok(graph_clone(k->m.graph, &before));
    const value_id last = k->tensors[k->n_tensors - 1];
    assert_ok(graph_add_output(before, last));
    assert_ok(ops_resolve(before));
    shape_terms terms;
    assert_ok(shape_terms_make(before, &terms));
    graph *after = pass_case_run_only(&k->m, last, "shapes");
    n->n_graphs++;
    n->n_smaller += after->n_nodes + 2 < before->n_nodes;
    compare(seed, &terms, after, (const int64_t(*)[2])k->sizes, true, n);
    for (int set = 0; set < N_SETS; set++) {
        static const int64_t some[] = {1, 2, 3, 4, 5, 6, 8, 12};
        int64_t sizes[N_INPUTS][2];
        const bool is_one = draw(k, 2) == 0; /* both inputs alike */
        for (size_t i = 0; i < (size_t)N_INPUTS * 2; i++)
            sizes[i / 2][i % 2] = is_one && i >= 2 ? sizes[0][i % 2] : some[draw(k, 8)];
        compare(seed, &terms, after, (const int64_t(*)[2])sizes, false, n);
    }
    shape_terms_deinit(&terms);
    graph_free(before);
    graph_free(after);
}

TEST(shapes__inference_is_the_same_for_all_sizes)
{
    counts n = {0};
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        maker k = {.m = pass_case_start(), .state = seed * 0x9e3779b97f4a7c15u};
        static const int64_t some[] = {1, 2, 3, 4, 2, 6};
        assert_ok(graph_set_opset(k.m.graph, "", 15));
        for (size_t i = 0; i < (size_t)N_INPUTS * 2; i++) k.sizes[i / 2][i % 2] = some[draw(&k, 6)];
        if (draw(&k, 2))
            for (int d = 0; d < 2; d++) k.sizes[1][d] = k.sizes[0][d];
        for (size_t i = 0; i < N_INPUTS; i++)
            keep_tensor(&k, pass_case_input(&k.m, i ? "z" : "x", 3, (int64_t[]){-1, -1, 12}));
        const size_t n_steps = 4 + draw(&k, 24);
        for (size_t i = 0; i < n_steps && !k.failed; i++) {
            if (draw(&k, 4) == 0)
                add_list(&k);
            else
                add_tensor(&k);
        }
        if (!k.failed && k.n_tensors > N_INPUTS)
            check_graph(&k, seed, &n);
        else
            graph_free(k.m.graph);
        if (k.facts) ops_facts_free(k.facts, k.n_facts);
    }
    print_message(
        "%zu graphs, %zu with fewer nodes, %zu comparisons, %zu for other sizes, %zu of terms\n",
        n.n_graphs, n.n_smaller, n.n_compared, n.n_other_sizes, n.n_terms);
    assert_true(n.n_graphs > N_SEEDS / 2 && n.n_smaller > N_SEEDS / 4);
    assert_true(n.n_other_sizes > N_SEEDS / 2);
}
