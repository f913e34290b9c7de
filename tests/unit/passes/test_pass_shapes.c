/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the pass that simplifies shape arithmetic: what it finds for one pattern at a time, and
 * that it leaves alone what only looks like it.
 */
#include "support/cases/pass_case.h"

#include <stdio.h>

/* Adds the dimension `axis` of x, as a list of one. */
static value_id dim_of(pass_case *m, value_id x, int64_t axis, const char *name)
{
    char part[64];
    (void)snprintf(part, sizeof part, "%s_shape", name);
    const value_id dims = pass_case_node(m, "Shape", 1, &x, part);
    (void)snprintf(part, sizeof part, "%s_axis", name);
    const value_id at = pass_case_ints(m, part, 1, &axis);
    return pass_case_node(m, "Gather", 2, (value_id[]){dims, at}, name);
}

/* Adds a list of lists. */
static value_id joined(pass_case *m, size_t n, const value_id *parts, const char *name)
{
    const value_id list = pass_case_node(m, "Concat", n, parts, name);
    assert_ok(node_set_int(m->graph, pass_case_last(m), "axis", 0));
    return list;
}

/* Returns the known elements of input i of a node, which must be a constant list of n. */
static void assert_list(const graph *g, const node *n, size_t i, size_t count, const int64_t *list)
{
    const tensor *t = g->values[n->inputs[i]].constant;
    assert_non_null(t);
    assert_int_equal(t->n_elements, count);
    for (size_t k = 0; k < count; k++) assert_int_equal(tensor_get_int(t, (int64_t)k), list[k]);
}

TEST(shapes__reshape_keeps_dimensions)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 3, (int64_t[]){-1, -1, 12});
    const value_id parts[] = {
        dim_of(&m, x, 0, "a"), dim_of(&m, x, -2, "b"),
        pass_case_ints(&m, "heads", 1, (int64_t[]){3}),
        pass_case_node(
            &m, "Div", 2,
            (value_id[]){dim_of(&m, x, 2, "c"), pass_case_ints(&m, "n", 1, (int64_t[]){3})},
            "size")};
    const value_id to = joined(&m, 4, parts, "to");
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Reshape", 2, (value_id[]){x, to}, "y"),
                                  "shapes");
    assert_list(g, pass_case_find(g, "Reshape"), 1, 4, (int64_t[]){0, 0, 3, 4});
    assert_int_equal(g->n_nodes, 1);
    graph_free(g);
}

/* Runs the pass on a Reshape of x, [positions, batch, 12], to [positions, 3 * batch, 4], as
 * PyTorch's MultiheadAttention has it, with the batch of x or of another input. */
static graph *run_heads(bool of_other)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 3, (int64_t[]){-1, -1, 12}),
                   z = pass_case_input(&m, "z", 1, (int64_t[]){-1});
    const value_id batch = of_other ? dim_of(&m, z, 0, "b") : dim_of(&m, x, 1, "b"),
                   heads = pass_case_ints(&m, "heads", 1, (int64_t[]){3});
    const value_id parts[] = {dim_of(&m, x, 0, "a"),
                              pass_case_node(&m, "Mul", 2, (value_id[]){batch, heads}, "rows"),
                              pass_case_ints(&m, "size", 1, (int64_t[]){4})};
    const value_id to = joined(&m, 3, parts, "to");
    return pass_case_run_only(&m, pass_case_node(&m, "Reshape", 2, (value_id[]){x, to}, "y"),
                              "shapes");
}

TEST(shapes__reshape_computes_what_is_left)
{
    graph *g = run_heads(false);
    assert_list(g, pass_case_find(g, "Reshape"), 1, 3, (int64_t[]){0, -1, 4});
    graph_free(g);
    g = run_heads(true); /* what is left may be another number */
    assert_null(g->values[pass_case_find(g, "Reshape")->inputs[1]].constant);
    graph_free(g);
}

TEST(shapes__reshape_of_moved_dimensions_stays)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 2, (int64_t[]){-1, -1});
    const value_id parts[] = {dim_of(&m, x, 1, "a"), dim_of(&m, x, 0, "b")};
    const value_id to = joined(&m, 2, parts, "to");
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Reshape", 2, (value_id[]){x, to}, "y"),
                                  "shapes");
    assert_null(g->values[pass_case_find(g, "Reshape")->inputs[1]].constant);
    graph_free(g);
}

TEST(shapes__dimensions_pass_through_operators)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 3, (int64_t[]){-1, -1, 4});
    const value_id w = pass_case_constant(&m, "w", 2, (int64_t[]){4, 6});
    value_id y = pass_case_node(&m, "Relu", 1, &x, "relu");
    y = pass_case_node(&m, "MatMul", 2, (value_id[]){y, w}, "product");
    y = pass_case_node(&m, "Transpose", 1, &y, "transposed"); /* [6, 1, 0] */
    assert_ok(node_set_ints(m.graph, pass_case_last(&m), "perm", 3, (int64_t[]){2, 1, 0}));
    const value_id parts[] = {pass_case_ints(&m, "six", 1, (int64_t[]){6}), dim_of(&m, x, 1, "b"),
                              dim_of(&m, x, 0, "a"), pass_case_ints(&m, "one", 1, (int64_t[]){1})};
    const value_id to = joined(&m, 4, parts, "to");
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Reshape", 2, (value_id[]){y, to}, "y"),
                                  "shapes");
    assert_list(g, pass_case_find(g, "Reshape"), 1, 4, (int64_t[]){6, 0, 0, 1});
    graph_free(g);
}

/* Returns whether Reshape(x + z, Shape(x)) is known to keep the dimensions of the sum. */
static bool sum_keeps(const int64_t *dims_x, const int64_t *dims_z)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 2, dims_x), z = pass_case_input(&m, "z", 2, dims_z);
    const value_id sum = pass_case_node(&m, "Add", 2, (value_id[]){x, z}, "sum");
    const value_id parts[] = {dim_of(&m, x, 0, "a"), dim_of(&m, x, 1, "b")};
    const value_id to = joined(&m, 2, parts, "to");
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Reshape", 2, (value_id[]){sum, to}, "y"),
                                  "shapes");
    const bool keeps = g->values[pass_case_find(g, "Reshape")->inputs[1]].constant != NULL;
    graph_free(g);
    return keeps;
}

TEST(shapes__broadcasting_hides_dimensions)
{
    assert_true(sum_keeps((int64_t[]){-1, 4}, (int64_t[]){1, 4}));
    assert_true(sum_keeps((int64_t[]){-1, -1}, (int64_t[]){1, 1}));
    assert_true(sum_keeps((int64_t[]){3, 5}, (int64_t[]){-1, 5}));
    assert_false(sum_keeps((int64_t[]){-1, 4}, (int64_t[]){-1, 4})); /* one may be 1 */
    assert_false(sum_keeps((int64_t[]){-1, 4}, (int64_t[]){3, 4}));  /* so may this one */
}

TEST(shapes__lengths_are_added_and_subtracted)
{
    pass_case m = pass_case_start();
    const value_id past = pass_case_input(&m, "past", 2, (int64_t[]){-1, 4}),
                   x = pass_case_input(&m, "x", 2, (int64_t[]){-1, 4});
    const value_id all = pass_case_node(&m, "Concat", 2, (value_id[]){past, x}, "all");
    assert_ok(node_set_int(m.graph, pass_case_last(&m), "axis", 0));
    /* all - past = x, all - x = past */
    const value_id n_all = dim_of(&m, all, 0, "n_all"), n_x = dim_of(&m, x, 0, "n_x");
    const value_id n_past = pass_case_node(&m, "Sub", 2, (value_id[]){n_all, n_x}, "n_past");
    const value_id n_new = pass_case_node(&m, "Sub", 2, (value_id[]){n_all, n_past}, "n_new");
    const value_id parts[] = {n_new, pass_case_ints(&m, "two", 2, (int64_t[]){2, 2})};
    const value_id to = joined(&m, 2, parts, "to");
    graph *g = pass_case_run_only(&m, pass_case_node(&m, "Reshape", 2, (value_id[]){x, to}, "y"),
                                  "shapes");
    assert_list(g, pass_case_find(g, "Reshape"), 1, 3, (int64_t[]){0, 2, 2});
    graph_free(g);
}

TEST(shapes__equal_lists_are_one)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 2, (int64_t[]){-1, -1});
    const value_id y = pass_case_node(&m, "Relu", 1, &x, "relu");
    const value_id a[] = {dim_of(&m, x, 1, "a1"), dim_of(&m, x, 0, "a0")},
                   b[] = {dim_of(&m, y, 1, "b1"), dim_of(&m, y, 0, "b0")};
    const value_id first = joined(&m, 2, a, "first"), second = joined(&m, 2, b, "second");
    const value_id u = pass_case_node(&m, "Reshape", 2, (value_id[]){x, first}, "u"),
                   v = pass_case_node(&m, "Reshape", 2, (value_id[]){y, second}, "v");
    graph *g =
        pass_case_run_only(&m, pass_case_node(&m, "Add", 2, (value_id[]){u, v}, "sum"), "shapes");
    assert_int_equal(pass_case_count(g, "Concat"), 1);
    assert_int_equal(pass_case_count(g, "Shape"), 1);
    graph_free(g);
}

TEST(shapes__outputs_are_still_computed)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 2, (int64_t[]){-1, 4});
    const value_id number = dim_of(&m, x, 1, "number"), again = dim_of(&m, x, 1, "again");
    assert_ok(graph_add_output(m.graph, number));
    graph *g = pass_case_run_only(&m, again, "shapes");
    assert_int_equal(pass_case_count(g, "Gather"), 2);
    graph_free(g);
}

/* Runs the pass on Reshape(Gemm(Reshape(x, [-1, 4]), w, b), [dims of x, 6]), with an attribute of
 * the Gemm, and the Gemm read by another node, too. */
static graph *run_gemm(const char *attribute, float number, bool read_twice)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 3, (int64_t[]){-1, -1, 4});
    const value_id w = pass_case_constant(&m, "w", 2, (int64_t[]){4, 6}),
                   b = pass_case_constant(&m, "b", 1, (int64_t[]){6});
    const value_id rows = pass_case_ints(&m, "rows", 2, (int64_t[]){-1, 4});
    const value_id flat = pass_case_node(&m, "Reshape", 2, (value_id[]){x, rows}, "flat");
    const value_id gemm = pass_case_node(&m, "Gemm", 3, (value_id[]){flat, w, b}, "gemm");
    if (attribute) assert_ok(node_set_float(m.graph, pass_case_last(&m), attribute, number));
    const value_id parts[] = {dim_of(&m, x, 0, "d0"), dim_of(&m, x, 1, "d1"),
                              pass_case_ints(&m, "six", 1, (int64_t[]){6})};
    const value_id to = joined(&m, 3, parts, "to");
    const value_id y = pass_case_node(&m, "Reshape", 2, (value_id[]){gemm, to}, "y");
    if (read_twice) assert_ok(graph_add_output(m.graph, gemm));
    return pass_case_run_only(&m, y, "shapes");
}

TEST(shapes__gemm_of_flattened_rows_is_matmul)
{
    graph *g = run_gemm(NULL, 0, false);
    assert_int_equal(g->n_nodes, 2);
    const node *product = pass_case_find(g, "MatMul"), *sum = pass_case_find(g, "Add");
    assert_non_null(product);
    assert_non_null(sum);
    assert_string_equal(g->values[product->inputs[0]].name, "x");
    assert_int_equal(sum->inputs[0], product->outputs[0]);
    assert_string_equal(g->values[sum->inputs[1]].name, "b");
    graph_free(g);
}

TEST(shapes__gemm_that_scales_or_is_read_twice_stays)
{
    graph *g = run_gemm("alpha", 0.5f, false);
    assert_int_equal(pass_case_count(g, "Gemm"), 1);
    graph_free(g);
    g = run_gemm("beta", 2, false);
    assert_int_equal(pass_case_count(g, "Gemm"), 1);
    graph_free(g);
    g = run_gemm(NULL, 0, true);
    assert_int_equal(pass_case_count(g, "Gemm"), 1);
    graph_free(g);
}

/* Returns whether Shape of `op`(`from`(x), second) becomes that of the first result. */
static bool shape_moves(const char *from, const char *op, value_id (*second)(pass_case *m))
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 2, (int64_t[]){-1, 4});
    const value_id operands[] = {x, pass_case_constant(&m, "w", 2, (int64_t[]){4, 4})};
    const value_id a = pass_case_node(&m, from, 2, operands, "a");
    const value_id y = pass_case_node(&m, op, 2, (value_id[]){a, second(&m)}, "scaled");
    const value_id dims = pass_case_node(&m, "Shape", 1, &y, "dims");
    assert_ok(graph_add_output(m.graph, y));
    graph *g = pass_case_run_only(&m, dims, "shapes");
    const bool moves = pass_case_find(g, "Shape")->inputs[0] == graph_find_value(g, "a");
    graph_free(g);
    return moves;
}

static value_id one_number(pass_case *m) { return pass_case_constant(m, "c", 0, NULL); }

static value_id more_numbers(pass_case *m)
{
    return pass_case_constant(m, "c", 2, (int64_t[]){3, 4});
}

static value_id open_rows(pass_case *m) { return pass_case_input(m, "z", 2, (int64_t[]){-1, 4}); }

TEST(shapes__shape_of_scaled_scores_is_that_of_the_scores)
{
    assert_true(shape_moves("MatMul", "Div", one_number));
    assert_true(shape_moves("MatMul", "Mul", one_number));
    assert_false(shape_moves("MatMul", "Add", one_number)); /* may be the product's epilogue */
    assert_false(shape_moves("PRelu", "Mul", one_number));  /* may be fused with it */
    assert_false(shape_moves("MatMul", "Mul", more_numbers));
    assert_false(shape_moves("MatMul", "Mul", open_rows));
}

/* Adds x flattened to rows of its last dimensions from `first` on, as TensorFlow's Tensordot is
 * exported: counts are products of elements of int32 shapes. */
static value_id flatten_by_counts(pass_case *m, value_id x, int64_t first, int64_t rank)
{
    int64_t axes[CLG_MAX_RANK];
    value_id parts[2], all = pass_case_node(m, "Shape", 1, &x, "sizes64");
    all = pass_case_node(m, "Cast", 1, &all, "sizes");
    assert_ok(node_set_int(m->graph, pass_case_last(m), "to", CLG_INT32));
    for (int64_t i = 0; i < rank; i++) axes[i] = i;
    for (int i = 0; i < 2; i++) {
        const value_id at = i == 0
                                ? pass_case_ints(m, "free", (size_t)first, axes)
                                : pass_case_ints(m, "joined", (size_t)(rank - first), axes + first);
        parts[i] = pass_case_node(m, "Gather", 2, (value_id[]){all, at}, i ? "g1" : "g0");
        parts[i] = pass_case_node(m, "ReduceProd", 1, &parts[i], i ? "p1" : "p0");
        assert_ok(node_set_ints(m->graph, pass_case_last(m), "axes", 1, (int64_t[]){0}));
    }
    value_id to = joined(m, 2, parts, "flat_sizes");
    to = pass_case_node(m, "Cast", 1, &to, "flat_sizes64");
    assert_ok(node_set_int(m->graph, pass_case_last(m), "to", CLG_INT64));
    return pass_case_node(m, "Reshape", 2, (value_id[]){x, to}, "flat");
}

/* A MatMul of rows that several dimensions make: heads and their elements. */
TEST(shapes__matmul_of_flattened_rows_keeps_the_batch)
{
    for (int heads = 0; heads < 2; heads++) {
        pass_case m = pass_case_start();
        const value_id x = heads ? pass_case_input(&m, "x", 4, (int64_t[]){-1, 7, 2, 2})
                                 : pass_case_input(&m, "x", 3, (int64_t[]){-1, 7, 4});
        const value_id w = pass_case_constant(&m, "w", 2, (int64_t[]){4, 6});
        const value_id flat = flatten_by_counts(&m, x, 2, heads ? 4 : 3);
        const value_id product = pass_case_node(&m, "MatMul", 2, (value_id[]){flat, w}, "product");
        const value_id parts[] = {dim_of(&m, x, 0, "d0"),
                                  pass_case_ints(&m, "rest", 2, (int64_t[]){-1, 6})};
        const value_id to = joined(&m, 2, parts, "to");
        const value_id y = pass_case_node(&m, "Reshape", 2, (value_id[]){product, to}, "y");
        graph *g = pass_case_run_only(&m, y, "shapes");
        assert_int_equal(pass_case_count(g, "MatMul"), 1);
        assert_int_equal(pass_case_count(g, "Reshape"), (size_t)heads);
        assert_int_equal(g->n_nodes, (size_t)heads + 1);
        if (heads)
            assert_list(g, pass_case_find(g, "Reshape"), 1, 3, (int64_t[]){0, 0, -1});
        else
            assert_string_equal(g->values[pass_case_find(g, "MatMul")->inputs[0]].name, "x");
        graph_free(g);
    }
}

/* The batch is not restored, but joined with the positions. */
TEST(shapes__matmul_of_other_rows_stays)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 3, (int64_t[]){-1, -1, 4});
    const value_id w = pass_case_constant(&m, "w", 2, (int64_t[]){4, 6});
    const value_id flat = flatten_by_counts(&m, x, 2, 3);
    const value_id product = pass_case_node(&m, "MatMul", 2, (value_id[]){flat, w}, "product");
    const value_id parts[] = {dim_of(&m, x, 1, "d1"), dim_of(&m, x, 0, "d0"),
                              pass_case_ints(&m, "rest", 1, (int64_t[]){6})};
    const value_id to = joined(&m, 3, parts, "to");
    graph *g = pass_case_run_only(
        &m, pass_case_node(&m, "Reshape", 2, (value_id[]){product, to}, "y"), "shapes");
    assert_int_equal(pass_case_count(g, "Reshape"), 2);
    graph_free(g);
}

/* ---- residuals of open shapes ---------------------------------------------------------------- */

/* Returns whether the epilogue of MatMul(x, w) takes x or, with `other`, another open input. */
static bool takes_residual(bool other)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 3, (int64_t[]){-1, -1, 4}),
                   z = pass_case_input(&m, "z", 3, (int64_t[]){-1, -1, 4});
    const value_id w = pass_case_constant(&m, "w", 2, (int64_t[]){4, 4});
    const value_id y = pass_case_node(&m, "MatMul", 2, (value_id[]){x, w}, "rows");
    const value_id sum = pass_case_node(&m, "Add", 2, (value_id[]){y, other ? z : x}, "y");
    graph *g = pass_case_run_only(&m, sum, "epilogue");
    const bool takes = pass_case_count(g, "Add") == 0;
    graph_free(g);
    return takes;
}

/* As takes_residual, of a convolution of 3x3 pixels. */
static bool takes_pixels(int64_t pad, int64_t stride)
{
    pass_case m = pass_case_start();
    const value_id x = pass_case_input(&m, "x", 4, (int64_t[]){-1, 4, -1, -1});
    const value_id w = pass_case_constant(&m, "w", 4, (int64_t[]){4, 4, 3, 3});
    const value_id y = pass_case_node(&m, "Conv", 2, (value_id[]){x, w}, "map");
    const node_id conv = pass_case_last(&m);
    assert_ok(node_set_ints(m.graph, conv, "pads", 4, (int64_t[]){1, 1, 1, pad}));
    assert_ok(node_set_ints(m.graph, conv, "strides", 2, (int64_t[]){1, stride}));
    graph *g =
        pass_case_run_only(&m, pass_case_node(&m, "Add", 2, (value_id[]){x, y}, "y"), "epilogue");
    const bool takes = pass_case_count(g, "Add") == 0;
    graph_free(g);
    return takes;
}

TEST(shapes__residuals_of_equal_open_shapes_are_fused)
{
    assert_true(takes_residual(false));
    assert_false(takes_residual(true)); /* one of them may have a single row */
    assert_true(takes_pixels(1, 1));
    assert_false(takes_pixels(0, 1));
    assert_false(takes_pixels(1, 2));
}
