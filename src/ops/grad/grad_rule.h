/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares gradient rules (op_row.grad) and the functions from which they are made. A rule adds
 * nodes that compute the cotangents of a node's inputs from those of its outputs: the cotangent of
 * a value is the gradient of the result with respect to it. See decision 68.
 *
 * Rules use the operators of ONNX. They do not depend on sizes, which may not be known yet: where
 * they need a shape, they add a node that reads it when the run is planned (grad_dims). They use
 * outputs rather than inputs where they can, so that forward kernels need not keep these. At points
 * without a derivative they follow PyTorch.
 */
#ifndef CLG_OPS_GRAD_RULE_H
#define CLG_OPS_GRAD_RULE_H

#include "ops/grad/grad.h"

/* What a walk knows of values. Those before `base` are of the walk around it: a walk inside of a
 * rule (grad_through) has those that the rule added, so that its cost is that of the rule's nodes.
 */
typedef struct grad_values {
    const struct grad_values *around; /* NULL of the outermost walk, whose base is 0 */
    value_id base;
    size_t n;           /* values from base on; later ones are unknown */
    value_fact *facts;  /* by value less base */
    bool *depends;      /* likewise: on a value whose gradient is computed */
    const value_id *xs; /* values before `base` whose gradients are computed */
    size_t n_xs;
} grad_values;

/* A node through which the gradient passes. The functions below return values of the graph, and
 * VALUE_NONE after a failure, which `status` has; they accept VALUE_NONE then, so that a rule need
 * not check each step. */
typedef struct grad_node {
    graph *graph;
    node_id id;
    node node; /* a copy: adding nodes moves the graph's */
    const op_row *row;
    const grad_values *values;
    value_id first_value;       /* the first that the rule adds */
    const value_id *cotangents; /* by output; VALUE_NONE: the result does not depend on it */
    value_id *given;            /* by input: the cotangent set by grad_give; else VALUE_NONE */
    clg_status status;
} grad_node;

typedef void (*grad_function)(grad_node *c);

#define GRAD_MAX_FORMULAS 3
enum { GRAD_MAX_NODES = 1 << 20 }; /* of a graph and its gradients */

/* How a gradient passes through an operator. */
struct op_grad {
    grad_function rule; /* NULL: zero, or none */
    /* Of grad_pass_formula: the cotangent of each input, as grad_formula describes; NULL: none, as
     * of a condition. */
    const char *formulas[GRAD_MAX_FORMULAS];
    /* Why the gradient cannot pass. NULL without a rule: the outputs do not change with small
     * changes of the inputs, or are not floats, and the gradient is zero. */
    const char *reason;
};

#define OP_GRAD(...) (&(const op_grad){__VA_ARGS__})

/* ---- entries (the functions are in grad_<family>.c) ------------------------------------------ */

#define GRAD_BY(function) OP_GRAD(.rule = (function))
/* Element by element: a formula for each input. */
#define GRAD_FORMULA(...) OP_GRAD(.rule = grad_pass_formula, .formulas = {__VA_ARGS__})
/* A reduction: a formula in which g and y have the axes that are reduced, with size 1. */
#define GRAD_REDUCED(formula) OP_GRAD(.rule = grad_pass_reduce_formula, .formulas = {formula})
#define GRAD_ZERO OP_GRAD(.rule = NULL)
#define GRAD_NONE(why) OP_GRAD(.reason = (why))
/* Reasons of several families. */
#define GRAD_LATER GRAD_NONE("it has no rule yet")
#define GRAD_QUANTIZED "it computes with quantised numbers"
#define GRAD_OF_ML "operators of ai.onnx.ml are not differentiated"
#define GRAD_OF_PASSES "it is added by passes, after gradients"

/* Formulas of Gelu, by the error function or as approximated, of a formula in parentheses. */
#define GRAD_GELU(x)                                                                               \
    "g * (0.5 * (1 + Erf(" x " * Sqrt(0.5))) + " x " * Exp(-0.5 * " x " * " x ") / Sqrt(2 * pi))"
#define GRAD_GELU_TANH(x)                                                                          \
    "t = Tanh(Sqrt(2 / pi) * (" x " + 0.044715 * " x " * " x " * " x "));"                         \
    "g * (0.5 * (1 + t) + 0.5 * " x " * (1 - t * t) * Sqrt(2 / pi) * "                             \
    "(1 + 0.134145 * " x " * " x "))"
/* y = x Sigmoid(alpha x), times a factor */
#define GRAD_SWISH(factor) "s = Sigmoid(alpha * x); g * " factor " * (s + alpha * x * s * (1 - s))"

/* grad_pointwise.c */
void grad_pass_formula(grad_node *c);
void grad_pass_sum(grad_node *c);
void grad_pass_mean(grad_node *c);
void grad_pass_extreme(grad_node *c); /* Min and Max */
void grad_pass_clip(grad_node *c);    /* bounds are inputs */
void grad_pass_cast(grad_node *c);
void grad_pass_gelu(grad_node *c);
void grad_pass_fast_gelu(grad_node *c); /* input 1, a bias, is optional */
/* grad_moves.c */
void grad_pass_same(grad_node *c);    /* Identity */
void grad_pass_reshape(grad_node *c); /* operators that only change the shape of input 0 */
void grad_pass_expand(grad_node *c);
void grad_pass_transpose(grad_node *c);
void grad_pass_concat(grad_node *c);
void grad_pass_split(grad_node *c);
void grad_pass_slice(grad_node *c);
void grad_pass_slice_grad(grad_node *c);
void grad_pass_dropout(grad_node *c);
/* grad_pad.c */
void grad_pass_pad(grad_node *c);
void grad_pass_centre(grad_node *c); /* CenterCropPad */
/* grad_scatter.c */
void grad_pass_scatter_elements(grad_node *c);
void grad_pass_scatter_nd(grad_node *c);
void grad_pass_topk(grad_node *c);
void grad_pass_compress(grad_node *c);
void grad_pass_reverse_sequence(grad_node *c);
void grad_pass_onehot(grad_node *c);
void grad_pass_tensor_scatter(grad_node *c);
void grad_pass_range(grad_node *c);
/* grad_resize.c */
void grad_pass_resize(grad_node *c);
/* grad_product.c */
void grad_pass_matmul(grad_node *c);
void grad_pass_gemm(grad_node *c);
/* grad_conv.c */
void grad_pass_conv(grad_node *c);
void grad_pass_conv_data(grad_node *c);
void grad_pass_conv_filter(grad_node *c);
void grad_pass_conv_transpose(grad_node *c);
void grad_pass_conv_transpose_data(grad_node *c);
void grad_pass_conv_transpose_filter(grad_node *c);
/* grad_reduce.c */
void grad_pass_reduce_sum(grad_node *c);
void grad_pass_reduce_mean(grad_node *c);
void grad_pass_reduce_prod(grad_node *c);
void grad_pass_reduce_extreme(grad_node *c); /* ReduceMax and ReduceMin */
void grad_pass_reduce_formula(grad_node *c); /* g and y with the axes that are reduced */
void grad_pass_global_average(grad_node *c);
void grad_pass_global_max(grad_node *c);
void grad_pass_sum_to(grad_node *c);
void grad_pass_softmax(grad_node *c);
void grad_pass_log_softmax(grad_node *c);
/* grad_index.c */
void grad_pass_gather(grad_node *c);
void grad_pass_gather_elements(grad_node *c);
void grad_pass_gather_nd(grad_node *c);
void grad_pass_tile(grad_node *c);
void grad_pass_trilu(grad_node *c);
void grad_pass_cumsum(grad_node *c);
void grad_pass_depth_to_space(grad_node *c);
void grad_pass_space_to_depth(grad_node *c);
void grad_pass_einsum(grad_node *c);
/* grad_norm.c */
void grad_pass_batchnorm(grad_node *c);
void grad_pass_batchnorm_train(grad_node *c); /* clgraph.BatchNormTrain */
void grad_pass_instancenorm(grad_node *c);
void grad_pass_groupnorm(grad_node *c);
void grad_pass_layernorm(grad_node *c);
void grad_pass_rmsnorm(grad_node *c);
void grad_pass_skip_layernorm(grad_node *c);
void grad_pass_skip_rmsnorm(grad_node *c);
/* grad_norm_more.c */
void grad_pass_lp_normalization(grad_node *c);
void grad_pass_mean_variance(grad_node *c);
void grad_pass_lrn(grad_node *c);
/* grad_scan.c */
void grad_pass_cumprod(grad_node *c);
void grad_pass_linear_scan(grad_node *c);
/* grad_pool.c */
void grad_pass_max_pool(grad_node *c);
void grad_pass_max_pool_grad(grad_node *c);
void grad_pass_max_unpool(grad_node *c);
void grad_pass_average_pool(grad_node *c);
void grad_pass_average_pool_grad(grad_node *c);
void grad_pass_lp_pool(grad_node *c);
void grad_pass_global_lp_pool(grad_node *c);
void grad_pass_sum_pool_grad(grad_node *c);
/* grad_loss.c */
void grad_pass_likelihood(grad_node *c);
void grad_pass_cross_entropy(grad_node *c);
/* grad_attention.c */
void grad_pass_attention(grad_node *c);
void grad_pass_flex_attention(grad_node *c);
void grad_pass_rotary(grad_node *c);
/* grad_attention_more.c */
void grad_pass_microsoft_attention(grad_node *c);
void grad_pass_multi_head_attention(grad_node *c);
void grad_pass_group_query_attention(grad_node *c);
/* grad_recurrent.c */
void grad_pass_recurrent(grad_node *c); /* RNN, GRU and LSTM */
/* grad_sample.c */
void grad_pass_grid_sample(grad_node *c);
void grad_pass_affine_grid(grad_node *c);
void grad_pass_roi_align(grad_node *c);
/* Returns linear interpolations of images x, [n, channels, height, width], as rows [M, channels].
 * down, across: positions in elements, [M, 1] of this dtype; the first M / n are those of the first
 * image. each: M / n, a list of one. Elements outside of the image are 0. At a position on an
 * element the derivative is that towards the next element. */
value_id grad_interpolate(grad_node *c, value_id x, value_id down, value_id across, value_id each,
                          clg_dtype dtype);
/* grad_fused.c */
void grad_pass_fused_conv(grad_node *c);
void grad_pass_fused_gemm(grad_node *c);
void grad_pass_embed_layernorm(grad_node *c);
void grad_pass_causal_conv(grad_node *c);
/* grad_deform.c */
void grad_pass_deform_conv(grad_node *c);
/* grad_transform.c */
void grad_pass_dft(grad_node *c);
void grad_pass_stft(grad_node *c);
void grad_pass_det(grad_node *c);
void grad_pass_col2im(grad_node *c);

/* ---- for rules (grad_node.c) ----------------------------------------------------------------- */

/* Sets the error that the gradient cannot pass, "node 'x' (Pad, opset 13): ...". */
void grad_refuse(grad_node *c, const char *format, ...) CLG_PRINTF(2, 3);
/* Returns whether n_more nodes may be added; refuses where the graph would have more than
 * GRAD_MAX_NODES, or the work is cancelled. For rules that add many. */
bool grad_has_room(grad_node *c, size_t n_more);
/* Returns input i, or output k. */
value_id grad_in(const grad_node *c, size_t i);
value_id grad_out(const grad_node *c, size_t k);
/* Returns output k, which is added to the node where it lacks or omits it; it has those before. */
value_id grad_need_output(grad_node *c, size_t k);
/* Returns the cotangent of output k; VALUE_NONE: the result does not depend on this output. */
value_id grad_cotangent(const grad_node *c, size_t k);
/* Returns whether a value depends on one whose gradient is computed. */
bool grad_depends(const grad_values *values, value_id v);
/* Returns whether the cotangent of input i is wanted. */
bool grad_wants(const grad_node *c, size_t i);
/* Returns what is known of a value; an absent fact for those that rules added. */
const value_fact *grad_fact(const grad_node *c, value_id v);
/* The same of a grad_values. */
const value_fact *grad_values_fact(const void *values, value_id v);
/* Returns the rank of input i; refuses, and returns 0, where it is not known. */
int grad_rank(grad_node *c, size_t i);
/* Returns the integers of a list: input i, if its elements are known, or the attribute where there
 * is not that input. Returns false where they are unknown or absent. */
bool grad_ints(const grad_node *c, size_t i, const char *attribute, int64_t out[OP_MAX_INTS],
               size_t *out_n);

/* Adds a node of the default domain with these inputs, and returns its output. */
value_id grad_add(grad_node *c, const char *op_type, size_t n_inputs, const value_id *inputs);
#define GRAD_ADD(c, op_type, ...)                                                                  \
    grad_add((c), (op_type), sizeof((const value_id[]){__VA_ARGS__}) / sizeof(value_id),           \
             (const value_id[]){__VA_ARGS__})
/* As grad_add, of a given domain. */
value_id grad_add_of(grad_node *c, const char *domain, const char *op_type, size_t n_inputs,
                     const value_id *inputs);
/* Makes the node that computes v one of this opset version, if it is older; returns v. */
value_id grad_of_opset(grad_node *c, value_id v, int64_t opset);
/* Set an attribute of the node that computes `v`; return v. */
value_id grad_set_int(grad_node *c, value_id v, const char *name, int64_t number);
value_id grad_set_float(grad_node *c, value_id v, const char *name, float number);
value_id grad_set_ints(grad_node *c, value_id v, const char *name, size_t n,
                       const int64_t *numbers);
/* Copies the node's attributes of these names, as far as it has them, to the node that computes v;
 * returns v. */
value_id grad_copy_attributes(grad_node *c, value_id v, size_t n, const char *const *names);
/* Copies all but those of these names. */
value_id grad_copy_other_attributes(grad_node *c, value_id v, size_t n, const char *const *names);
/* Returns a constant scalar with the dtype of output 0. */
value_id grad_number(grad_node *c, double number);
/* Returns a constant list of numbers. */
value_id grad_numbers(grad_node *c, clg_dtype dtype, size_t n, const double *numbers);
/* Returns a constant list of int64. */
value_id grad_list(grad_node *c, size_t n, const int64_t *numbers);
/* Returns the dimensions of a value as int64. */
value_id grad_dims(grad_node *c, value_id v);
/* Returns the size of a value along an axis, as a list of one int64. */
value_id grad_size_along(grad_node *c, value_id v, int64_t axis);
/* Returns the product of the sizes of v along axes `from` to `to` - 1, as a list of one int64. */
value_id grad_size_of_axes(grad_node *c, value_id v, int64_t from, int64_t to);
/* Returns a value of these dimensions, of which each element is `number`. */
value_id grad_fill(grad_node *c, value_id dims, clg_dtype dtype, double number);
/* Returns a value of the shape and dtype of `like` of which each element is `number`. */
value_id grad_fill_like(grad_node *c, value_id like, double number);
/* Returns v, which may have been broadcast from the shape of `like`, summed to that shape. */
value_id grad_sum_to(grad_node *c, value_id v, value_id like);
/* Returns v with the shape of `like`, which has as many elements. */
value_id grad_reshape_like(grad_node *c, value_id v, value_id like);
/* Returns v broadcast to the shape of `like`. */
value_id grad_expand_like(grad_node *c, value_id v, value_id like);
/* Returns a reduction of v over these axes, at least one, which stay with size 1. */
value_id grad_reduce(grad_node *c, const char *op_type, value_id v, size_t n, const int64_t *axes);
/* Returns, for each element of v, the product of those before it along an axis, a scalar or list of
 * one integer; with `reverse` of those after it. */
value_id grad_products_before(grad_node *c, value_id v, value_id axis, bool reverse);
/* Returns the mean of v, as grad_reduce. */
value_id grad_mean(grad_node *c, value_id v, size_t n, const int64_t *axes);
/* Returns v, of this rank, with axis `from` moved to place `to`. */
value_id grad_move_axis(grad_node *c, value_id v, int rank, int from, int to);
/* Returns zeros to which ScatterElements or ScatterND adds the updates. */
value_id grad_add_at(grad_node *c, const char *op_type, value_id zeros, value_id indices,
                     value_id updates);
/* Returns n zeros along an axis of v, of this rank, to which each row i of v is added at places[i],
 * a list of int64. Rows of one place are summed in their order. */
value_id grad_add_rows(grad_node *c, value_id v, int rank, int axis, value_id places, value_id n);
/* Sets the cotangent of input i; without effect where it is not wanted. Once for each input. */
void grad_give(grad_node *c, size_t i, value_id cotangent);
/* A rule by other operators: the nodes of the graph from `first` on, which the rule has added from
 * the node's inputs, compute outputs of the node once more (made[k] is output k; VALUE_NONE: not),
 * and the cotangents pass through them. Gives all inputs. The node itself stays as it is, with its
 * own kernels; what the gradient reads is computed again. */
void grad_through(grad_node *c, size_t first, size_t n, const value_id *made);

/* ---- shorthand for rules by other operators -------------------------------------------------- */

/* Returns v as elements of a dtype. */
value_id grad_cast(grad_node *c, value_id v, clg_dtype dtype);
/* Returns a constant scalar of a dtype. */
value_id grad_number_of(grad_node *c, clg_dtype dtype, double number);
/* Returns v with axes of size 1 at these places of the result. */
value_id grad_unsqueeze(grad_node *c, value_id v, size_t n, const int64_t *axes);
/* Returns v with its axes in another order. */
value_id grad_permute(grad_node *c, value_id v, size_t n, const int64_t *perm);
/* Returns v reshaped; as Reshape has it, 0 keeps a size and -1 is what remains. */
value_id grad_reshape(grad_node *c, value_id v, size_t n, const int64_t *dims);
/* Returns v reshaped to the concatenation of lists of sizes, which may be 0. A -1, what remains,
 * must be the only size that may stand beside a 0: give the size itself elsewhere. */
value_id grad_reshape_to(grad_node *c, value_id v, size_t n, const value_id *lists);
value_id grad_concat(grad_node *c, int64_t axis, size_t n, const value_id *parts);
/* Returns elements from, from + step, ... before `to` along an axis, as Slice has it. */
value_id grad_slice(grad_node *c, value_id v, int64_t axis, int64_t from, int64_t to, int64_t step);
/* Returns elements from `from` up to before `to`, lists of one int64, along an axis. */
value_id grad_slice_at(grad_node *c, value_id v, int64_t axis, value_id from, value_id to);
/* Returns entry `at` along an axis, without the axis. */
value_id grad_pick(grad_node *c, value_id v, int64_t axis, int64_t at);
/* Splits v along an axis into n parts, out, of the sizes in a list; sets them to VALUE_NONE after a
 * failure. */
void grad_split(grad_node *c, value_id v, int64_t axis, value_id sizes, size_t n, value_id *out);
/* Returns 0, 1, ... size - 1 as int64; size is a list of one. */
value_id grad_indices(grad_node *c, value_id size);

/* Returns the value of a formula (grad_formula.c), such as "g * (1 - y * y)" or
 * "s = Sigmoid(x); Where(x > 0, g, g * alpha * s)": definitions, then an expression of + - * /,
 * comparisons, parentheses, numbers, names and operators of ONNX on expressions. Names:
 *   g           the cotangent of output 0
 *   y           output 0
 *   x, x1, x2   inputs 0, 1 and 2
 *   pi
 *   others      definitions, and the node's attributes (floats, which the row's table of
 *               instructions gives a fallback) */
value_id grad_formula(grad_node *c, const char *formula);
/* The same with other values as g and y. */
value_id grad_formula_of(grad_node *c, const char *formula, value_id g, value_id y);

#endif
