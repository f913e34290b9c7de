/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a graph and plans for it without a device: with fictitious capabilities, and an owner of
 * packed weights that only counts.
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
    value_fact inputs[PLAN_CASE_INPUTS]; /* as planned; known is borrowed */
    bool needed[PLAN_CASE_INPUTS];       /* requested by the last plan_create */
    size_t n_packed;                     /* calls of the owner's pack */
    size_t n_names;
    step_texts texts;
    plan *plan;
} plan_case;

void plan_case_start(plan_case *k, clg_kernel_class kernels);
void plan_case_end(plan_case *k);

value_id plan_case_input(plan_case *k, const char *name, clg_dtype dtype, size_t rank,
                         const int64_t *dims);
value_id plan_case_ints(plan_case *k, size_t n,
                        const int64_t *numbers); /* a constant list of int64 */
value_id plan_case_floats(plan_case *k, size_t rank, const int64_t *dims);
/* Adds a node with one output; set attributes on plan_case_last. */
value_id plan_case_node(plan_case *k, const char *op, size_t n_inputs, const value_id *inputs);
void plan_case_node_of(plan_case *k, const char *op, size_t n_inputs, const value_id *inputs,
                       size_t n_outputs, value_id *out_values);
node_id plan_case_last(const plan_case *k);
/* Adds an output of the plan; a value may be several outputs. */
void plan_case_output(plan_case *k, value_id v);

/* Checks and resolves the graph: no more nodes afterwards. Called by the first plan. */
void plan_case_ready(plan_case *k);
/* Calls plan_create, after freeing the previous plan. k->plan is NULL when contents are needed. */
clg_status plan_case_try(plan_case *k);
void plan_case_plan(plan_case *k); /* as plan_case_try, but must return a plan */
/* Plans further segments, where the host reads contents, with contents that `give` makes for each
 * read; then checks the path to the last segment. give may be NULL when there is one segment. */
typedef tensor *(*plan_case_give)(void *user, const plan_port *read);
plan_check_counts plan_case_check(plan_case *k, plan_case_give give, void *user);

#endif
