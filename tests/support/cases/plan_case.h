/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a graph and plans it without a device: with fictitious device capabilities, and a stand-in
 * for the owner of packed weights that only counts calls.
 *
 *     plan_case k;
 *     plan_case_start(&k, CLG_KERNELS_SIMD);
 *     value_id x = plan_case_input(&k, "x", CLG_FLOAT32, 2, (int64_t[]){2, 3});
 *     value_id y = plan_case_node(&k, "Relu", 1, &x);
 *     plan_case_output(&k, y);
 *     plan_case_plan(&k);
 *     plan_case_end(&k);
 */
#ifndef CLG_TESTS_PLAN_CASE_H
#define CLG_TESTS_PLAN_CASE_H

#include "support/cases/plan_checker.h"

#define PLAN_CASE_OUTPUTS 16
#define PLAN_CASE_INPUTS 8

typedef struct plan_case {
    graph *graph;
    device_caps caps;
    plan_context c;
    value_fact *weights;
    bool *node_is_init;
    value_id outputs[PLAN_CASE_OUTPUTS];
    value_fact inputs[PLAN_CASE_INPUTS]; /* facts for planning; `known` is not owned */
    const uint32_t *in_place;            /* plan.in_place; NULL: none */
    bool needed[PLAN_CASE_INPUTS];       /* inputs whose elements the last plan_create requested */
    size_t n_packed;                     /* number of calls that packed a weight */
    size_t n_names;
    step_texts texts;
    plan *plan;
} plan_case;

/* Starts a case with an empty graph, for kernels of this class. */
void plan_case_start(plan_case *k, clg_kernel_class kernels);
void plan_case_end(plan_case *k);

value_id plan_case_input(plan_case *k, const char *name, clg_dtype dtype, size_t rank,
                         const int64_t *dims);
value_id plan_case_ints(plan_case *k, size_t n,
                        const int64_t *numbers); /* a constant list of int64 */
/* Adds a float32 constant of 0.5, 1.5, 2.5 ... */
value_id plan_case_floats(plan_case *k, size_t rank, const int64_t *dims);
/* Adds a node with one output. Its attributes can be set on node plan_case_last. */
value_id plan_case_node(plan_case *k, const char *op, size_t n_inputs, const value_id *inputs);
/* As plan_case_node, with several outputs. */
void plan_case_node_of(plan_case *k, const char *op, size_t n_inputs, const value_id *inputs,
                       size_t n_outputs, value_id *out_values);
/* Returns the node that was added last. */
node_id plan_case_last(const plan_case *k);
/* Adds an output of the plan. A value may be several outputs. */
void plan_case_output(plan_case *k, value_id v);

/* Checks the graph and resolves its operators; no nodes may be added afterwards. The first plan
 * calls it. */
void plan_case_ready(plan_case *k);
/* Frees the previous plan and calls plan_create. k->plan is NULL where the plan needs unknown
 * elements of inputs, which are then marked in `needed`. */
clg_status plan_case_try(plan_case *k);
/* As plan_case_try, but the test fails without a plan. */
void plan_case_plan(plan_case *k);
/* Plans further segments, wherever the host must read elements from the device to continue, with
 * the tensor that `give` returns for each such read; then checks the segments up to the last one.
 * give may be NULL when there is one segment. */
typedef tensor *(*plan_case_give)(void *user, const plan_port *read);
plan_check_counts plan_case_check(plan_case *k, plan_case_give give, void *user);

#endif
