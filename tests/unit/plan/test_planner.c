/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests plans without a device: which nodes become steps, views or values known to the planner;
 * where outputs are placed; where segments end. support/cases/plan_checker.h replays every plan.
 */
#include "support/unit.h"

#include "support/cases/plan_case.h"
#include "support/literals.h"

#include <string.h>

#define VALUES(...) ((const value_id[]){__VA_ARGS__})

static value_id input(plan_case *k, size_t rank, const int64_t *dims)
{
    return plan_case_input(k, "x", CLG_FLOAT32, rank, dims);
}

static value_id slice(plan_case *k, value_id v, int64_t axis, int64_t start, int64_t end,
                      int64_t step)
{
    return plan_case_node(k, "Slice", 5,
                          VALUES(v, plan_case_ints(k, 1, &start), plan_case_ints(k, 1, &end),
                                 plan_case_ints(k, 1, &axis), plan_case_ints(k, 1, &step)));
}

static value_id reshape(plan_case *k, value_id v, size_t rank, const int64_t *dims)
{
    return plan_case_node(k, "Reshape", 2, VALUES(v, plan_case_ints(k, rank, dims)));
}

/* ---- steps and views ------------------------------------------------------------------------- */

TEST(planner__a_node_is_a_step_into_the_output)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 2, DIMS(3, 5));
    plan_case_output(&k, plan_case_node(&k, "Relu", 1, &x));
    plan_case_plan(&k);
    const plan_segment *s = k.plan->root;
    assert_true(s->last);
    assert_int_equal(s->n_steps, 1);
    assert_int_equal(s->n_slabs, 0);
    assert_int_equal(s->output_bytes[0], 60);
    assert_int_equal(s->outputs[0].place.kind, PLACE_OUTPUT);
    assert_int_equal(s->steps[0].buffers[0].kind, PLACE_INPUT);
    plan_case_check(&k, NULL, NULL);
    plan_case_end(&k);
}

TEST(planner__views_move_nothing)
{
    plan_case k;
    value_id parts[2], x, v;
    plan_case_start(&k, CLG_KERNELS_SIMT);
    x = input(&k, 2, DIMS(6, 8));
    v = slice(&k, x, 0, 2, 6, 1); /* [4,8], dense, starts at 16 */
    v = reshape(&k, v, 3, DIMS(2, 2, 8));
    v = plan_case_node(&k, "Unsqueeze", 2, VALUES(v, plan_case_ints(&k, 1, DIMS(0))));
    plan_case_node_of(&k, "Split", 1, &v, 2, parts); /* two of [1,1,2,8] along axis 1 */
    assert_ok(node_set_int(k.graph, plan_case_last(&k), "axis", 1));
    v = slice(&k, parts[1], 3, 1, 8, 3);        /* [1,1,2,3], strided */
    v = plan_case_node(&k, "Transpose", 1, &v); /* exchanges axes of length 1: a view */
    assert_ok(node_set_ints(k.graph, plan_case_last(&k), "perm", 4, DIMS(1, 0, 2, 3)));
    plan_case_output(&k, plan_case_node(&k, "Neg", 1, &v));
    plan_case_output(&k, plan_case_node(&k, "Neg", 1, &parts[0]));
    plan_case_plan(&k);
    plan_check_counts counts = plan_case_check(&k, NULL, NULL);
    assert_int_equal(counts.n_views, 6);
    assert_int_equal(counts.n_steps, 2);
    assert_int_equal(counts.n_copies, 0);
    assert_int_equal(k.plan->root->n_slabs, 0);
    plan_case_end(&k);
}

TEST(planner__a_view_is_made_dense_once)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 2, DIMS(6, 8)), v = slice(&k, x, 1, 1, 4, 1);
    value_id a = reshape(&k, v, 1, DIMS(-1)), b = reshape(&k, v, 2, DIMS(9, 2));
    plan_case_output(&k, plan_case_node(&k, "Neg", 1, &a));
    plan_case_output(&k, plan_case_node(&k, "Exp", 1, &b));
    plan_case_plan(&k);
    plan_check_counts counts = plan_case_check(&k, NULL, NULL);
    assert_int_equal(counts.n_copies, 1);
    assert_int_equal(counts.n_steps, 3);
    plan_case_end(&k);
}

TEST(planner__shape_arithmetic_ends_at_planning)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 3, DIMS(2, 3, 4)), s = plan_case_node(&k, "Shape", 1, &x);
    value_id rows = slice(&k, s, 0, 0, 1, 1);
    value_id to = plan_case_node(&k, "Concat", 2, VALUES(rows, plan_case_ints(&k, 1, DIMS(-1))));
    assert_ok(node_set_int(k.graph, plan_case_last(&k), "axis", 0));
    value_id flat = plan_case_node(&k, "Reshape", 2, VALUES(x, to));
    plan_case_output(&k, plan_case_node(&k, "Neg", 1, &flat));
    plan_case_output(&k, to); /* known: needs no memory */
    plan_case_plan(&k);
    const plan_segment *root = k.plan->root;
    assert_int_equal(root->outputs[0].dims.rank, 2);
    assert_int_equal(root->outputs[0].dims.dims[1], 12);
    assert_int_equal(root->outputs[1].place.kind, PLACE_NONE);
    assert_int_equal(tensor_get_int(root->outputs[1].known, 0), 2);
    assert_true(root->output_bytes[1] == PLAN_NO_OUTPUT);
    plan_check_counts counts = plan_case_check(&k, NULL, NULL);
    assert_int_equal(counts.n_known, 3);
    assert_int_equal(counts.n_steps, 1);
    plan_case_end(&k);
}

TEST(planner__known_numbers_reach_the_device_as_literals)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = plan_case_input(&k, "x", CLG_INT64, 1, DIMS(3)),
             y = plan_case_input(&k, "y", CLG_FLOAT32, 3, DIMS(2, 3, 4));
    value_id s = plan_case_node(&k, "Shape", 1, &y);
    plan_case_output(&k, plan_case_node(&k, "Add", 2, VALUES(x, s)));
    plan_case_output(&k, plan_case_node(&k, "Mul", 2, VALUES(x, s)));
    plan_case_output(&k, s);
    plan_case_plan(&k);
    assert_int_equal(k.plan->root->literal_bytes, 24);
    plan_check_counts counts = plan_case_check(&k, NULL, NULL);
    assert_true(counts.n_steps >= 2);
    plan_case_end(&k);
}

/* ---- outputs --------------------------------------------------------------------------------- */

TEST(planner__outputs_of_every_origin)
{
    plan_case k;
    for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++) {
        plan_case_start(&k, kernels);
        value_id x = input(&k, 2, DIMS(4, 6)), c = plan_case_floats(&k, 2, DIMS(4, 6));
        value_id y = plan_case_node(&k, "Add", 2, VALUES(x, c));
        value_id flat = reshape(&k, y, 1, DIMS(24)), part = slice(&k, y, 1, 1, 3, 1);
        value_id transposed = plan_case_node(&k, "Transpose", 1, &x);
        value_id empty = slice(&k, y, 0, 2, 2, 1);
        value_id deep = plan_case_node(&k, "Neg", 1, &y);
        value_id outputs[] = {x, c, y, y, flat, part, transposed, empty, deep, x};
        for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
            plan_case_output(&k, outputs[i]);
        plan_case_plan(&k);
        plan_check_counts counts = plan_case_check(&k, NULL, NULL);
        /* copied: x twice, c, y for the second time, flat, part */
        assert_int_equal(counts.n_copies, 6);
        assert_int_equal(counts.n_steps, 9);
        assert_int_equal(k.plan->root->n_slabs, 0);
        plan_case_end(&k);
    }
}

TEST(planner__a_view_of_what_nobody_else_wants_is_not_a_copy)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 2, DIMS(4, 6)), y = plan_case_node(&k, "Neg", 1, &x);
    plan_case_output(&k, reshape(&k, y, 1, DIMS(24)));
    plan_case_plan(&k);
    plan_check_counts counts = plan_case_check(&k, NULL, NULL);
    assert_int_equal(counts.n_steps, 1);
    assert_int_equal(k.plan->root->n_slabs, 0);
    plan_case_end(&k);
}

TEST(planner__a_constant_has_no_step)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id c = plan_case_floats(&k, 1, DIMS(3));
    (void)input(&k, 1, DIMS(1));
    plan_case_output(&k, c);
    plan_case_plan(&k);
    assert_int_equal(k.plan->root->n_steps, 0);
    assert_ptr_equal(k.plan->root->outputs[0].known, k.weights[c].known);
    plan_case_check(&k, NULL, NULL);
    plan_case_end(&k);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(planner__a_chain_needs_two_pieces_of_memory)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id v = input(&k, 1, DIMS(64));
    for (int i = 0; i < 20; i++) v = plan_case_node(&k, "Softmax", 1, &v);
    plan_case_output(&k, v);
    plan_case_plan(&k);
    plan_case_check(&k, NULL, NULL);
    assert_int_equal(k.plan->root->n_slabs, 1);
    assert_int_equal(k.plan->root->slab_bytes[0], 2 * 64 * sizeof(float));
    assert_int_equal(k.plan->root->live_bytes, 2 * 64 * sizeof(float));
    plan_case_end(&k);
}

TEST(planner__memory_of_values_that_nobody_reads_is_reused)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 1, DIMS(64));
    for (int i = 0; i < 10; i++) (void)plan_case_node(&k, "Exp", 1, &x);
    plan_case_output(&k, plan_case_node(&k, "Neg", 1, &x));
    plan_case_plan(&k);
    plan_case_check(&k, NULL, NULL);
    assert_int_equal(k.plan->root->slab_bytes[0], 64 * sizeof(float));
    plan_case_end(&k);
}

TEST(planner__nothing_runs_over_no_elements)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMT);
    value_id x = input(&k, 2, DIMS(0, 5)), w = plan_case_floats(&k, 2, DIMS(5, 3));
    value_id y = plan_case_node(&k, "MatMul", 2, VALUES(x, w));
    y = plan_case_node(&k, "Relu", 1, &y);
    plan_case_output(&k, y);
    plan_case_output(&k, x);
    plan_case_plan(&k);
    assert_int_equal(k.plan->root->n_steps, 0);
    assert_int_equal(k.plan->root->output_bytes[0], 0);
    assert_int_equal(k.plan->root->outputs[0].dims.dims[1], 3);
    plan_case_check(&k, NULL, NULL);
    plan_case_end(&k);
}

TEST(planner__too_much_for_the_device_is_reported)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 2, DIMS(1 << 20, 200)),
             big = plan_case_node(&k, "MatMul", 2,
                                  VALUES(x, plan_case_floats(&k, 2, DIMS(200, 300))));
    plan_case_output(&k, big);
    assert_error(plan_case_try(&k), CLG_ERROR_OUT_OF_DEVICE_MEMORY, "1258291200 bytes");
    assert_null(k.plan);
    k.inputs[0].dims.dims[0] = INT64_C(1) << 40;
    assert_error(plan_case_try(&k), CLG_ERROR_OUT_OF_DEVICE_MEMORY, "'x'");
    k.inputs[0].dims.dims[0] = 100;
    plan_case_plan(&k);
    plan_case_end(&k);
}

TEST(planner__weights_are_packed_by_their_owner)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 2, DIMS(40, 50)), w = plan_case_floats(&k, 2, DIMS(50, 60));
    value_id y = plan_case_node(&k, "MatMul", 2, VALUES(x, w));
    value_id t = plan_case_node(&k, "Transpose", 1, &x);
    plan_case_output(&k, y);
    plan_case_output(&k, plan_case_node(&k, "MatMul", 2, VALUES(t, x)));
    plan_case_plan(&k);
    plan_case_check(&k, NULL, NULL);
    assert_true(k.n_packed >= 1); /* w */
    size_t once = k.n_packed;
    plan_case_plan(&k);
    assert_int_equal(k.n_packed, 2 * once);
    plan_case_end(&k);
}

TEST(planner__the_init_plan_packs_in_its_own_memory)
{
    plan_case k;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id a = plan_case_floats(&k, 2, DIMS(40, 50)), b = plan_case_floats(&k, 2, DIMS(50, 60));
    plan_case_output(&k, plan_case_node(&k, "MatMul", 2, VALUES(a, b)));
    plan_case_ready(&k);
    k.c.is_init_plan = k.node_is_init[plan_case_last(&k)] = true;
    plan_case_plan(&k);
    assert_true(k.plan->root->n_steps > 1);
    assert_true(k.plan->root->n_slabs > 0);
    assert_int_equal(k.n_packed, 0);
    plan_case_check(&k, NULL, NULL);
    plan_case_end(&k);
}

/* ---- data-dependent shapes ------------------------------------------------------------------- */

TEST(planner__a_shape_input_is_requested)
{
    plan_case k;
    shape two = {.rank = 1, .dims = {2}};
    tensor *to;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    value_id x = input(&k, 2, DIMS(4, 6)), s = plan_case_input(&k, "s", CLG_INT64, 1, DIMS(2));
    value_id doubled = plan_case_node(&k, "Add", 2, VALUES(s, s));
    value_id y = plan_case_node(&k, "Reshape", 2, VALUES(x, doubled));
    plan_case_output(&k, plan_case_node(&k, "Neg", 1, &y));
    assert_ok(plan_case_try(&k));
    assert_null(k.plan);
    assert_false(k.needed[0]);
    assert_true(k.needed[1]);
    assert_ok(tensor_create(CLG_INT64, &two, &to));
    tensor_set_int(to, 0, 4);
    tensor_set_int(to, 1, 1);
    k.inputs[1].known = to;
    assert_error(plan_case_try(&k), CLG_ERROR_SHAPE, "Reshape");
    tensor_set_int(to, 1, 2);
    tensor_set_int(to, 0, 3);
    plan_case_plan(&k);
    assert_int_equal(k.plan->root->outputs[0].dims.dims[0], 6);
    plan_case_check(&k, NULL, NULL);
    tensor_free(to);
    plan_case_end(&k);
}

/* Adds count = int64(max(x)), which is computed on the device, since x is data. */
static value_id device_count(plan_case *k, value_id x)
{
    value_id m = plan_case_node(k, "ReduceMax", 1, &x);
    assert_ok(node_set_int(k->graph, plan_case_last(k), "keepdims", 0));
    value_id n = plan_case_node(k, "Cast", 1, &m);
    assert_ok(node_set_int(k->graph, plan_case_last(k), "to", CLG_INT64));
    return plan_case_node(k, "Unsqueeze", 2, VALUES(n, plan_case_ints(k, 1, DIMS(0))));
}

static tensor *one_number(int64_t number)
{
    shape s = {.rank = 1, .dims = {1}};
    tensor *t;
    assert_ok(tensor_create(CLG_INT64, &s, &t));
    tensor_set_int(t, 0, number);
    return t;
}

static tensor *give_number(void *user, const plan_port *read)
{
    assert_int_equal(read->dtype, CLG_INT64);
    return one_number(*(int64_t *)user);
}

/* Adds soft = Softmax(Tile(Neg(x)[3:9:2] + Exp(x)[0:3], n)), n = int64(max(x)). The second segment
 * reads values computed in the first. */
static void data_dependent(plan_case *k)
{
    value_id x = input(k, 1, DIMS(64)), kept = plan_case_node(k, "Neg", 1, &x);
    value_id early = plan_case_node(k, "Exp", 1, &x), n = device_count(k, x);
    value_id a = slice(k, kept, 0, 3, 9, 2), b = slice(k, early, 0, 0, 3, 1);
    value_id sum = plan_case_node(k, "Add", 2, VALUES(a, b));
    value_id tiled = plan_case_node(k, "Tile", 2, VALUES(sum, n));
    value_id soft = plan_case_node(k, "Softmax", 1, &tiled);
    plan_case_output(k, soft);
    plan_case_output(k, kept);
    plan_case_output(k, b);
    plan_case_output(k, n);
}

TEST(planner__segments_end_where_the_host_must_read)
{
    plan_case k;
    for (int kernels = CLG_KERNELS_SIMD; kernels <= CLG_KERNELS_SIMT; kernels++) {
        plan_case_start(&k, kernels);
        data_dependent(&k);
        plan_case_plan(&k);
        assert_false(k.plan->root->last);
        assert_int_equal(k.plan->root->n_reads, 1);
        for (int64_t n = 0; n < 5; n++) {
            plan_case_check(&k, give_number, &n);
            assert_int_equal(k.plan->root->children->outputs[0].dims.dims[0], 3 * n);
        }
        plan_case_end(&k);
    }
}

TEST(planner__continuations_are_found_again_and_do_not_pile_up)
{
    plan_case k;
    plan_segment *first, *again, *child;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    data_dependent(&k);
    plan_case_plan(&k);
    tensor *t = one_number(7);
    assert_ok(plan_continue(&k.c, k.plan->root, &t, &first));
    for (int64_t n = 0; n < 300; n++) {
        tensor *other = one_number(n % 100 + 8);
        assert_ok(plan_continue(&k.c, k.plan->root, &other, &child));
        assert_int_equal(child->outputs[0].dims.dims[0], 3 * (n % 100 + 8));
        plan_segment_free(child);
        tensor_free(other);
        if (n % 20 == 0) { /* used regularly, so it stays in the cache */
            assert_ok(plan_continue(&k.c, k.plan->root, &t, &again));
            assert_ptr_equal(first, again);
            plan_segment_free(again);
        }
    }
    size_t n_children = 0;
    for (child = k.plan->root->children; child; child = child->sibling) n_children++;
    assert_int_equal(n_children, k.plan->root->n_children_all);
    assert_true(n_children <= 64);
    plan_segment_free(first);
    tensor_free(t);
    plan_case_end(&k);
}

TEST(planner__a_segment_outlives_its_plan)
{
    plan_case k;
    plan_segment *child;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    data_dependent(&k);
    plan_case_plan(&k);
    tensor *t = one_number(2);
    assert_ok(plan_continue(&k.c, k.plan->root, &t, &child));
    plan_free(k.plan);
    k.plan = NULL;
    assert_true(child->last && child->parent->n_steps > 0);
    assert_true(atomic_load(&child->detached));
    plan_segment_free(child);
    tensor_free(t);
    plan_case_end(&k);
}

TEST(planner__a_fault_in_what_was_read_is_reported)
{
    plan_case k;
    plan_segment *child;
    plan_case_start(&k, CLG_KERNELS_SIMD);
    data_dependent(&k);
    plan_case_plan(&k);
    tensor *bad = one_number(-1), *huge = one_number(INT64_C(1) << 61), *good = one_number(1);
    assert_error(plan_continue(&k.c, k.plan->root, &bad, &child), CLG_ERROR_SHAPE, "Tile");
    assert_null(child);
    clg_status status = plan_continue(&k.c, k.plan->root, &huge, &child);
    assert_true(status == CLG_ERROR_SHAPE || status == CLG_ERROR_OUT_OF_DEVICE_MEMORY);
    assert_ok(plan_continue(&k.c, k.plan->root, &good, &child));
    plan_segment_free(child);
    tensor_free(bad);
    tensor_free(huge);
    tensor_free(good);
    plan_case_end(&k);
}
