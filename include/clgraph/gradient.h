/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of models: saliency, adversarial examples, inverse problems, physics, training. The
 * rules of clgraph.h apply.
 *
 *     clg_model_gradient(model, "loss", (const char *[]){"x", "weight"}, 2, &gradients);
 *     clg_session_create(context, gradients, NULL, &session);
 *     ... set the model's inputs, clg_session_run ...
 *     clg_session_get_output(session, "x_grad", &value);
 */
#ifndef CLGRAPH_GRADIENT_H
#define CLGRAPH_GRADIENT_H

#include <clgraph/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a model that computes, by reverse-mode differentiation, the gradient of the sum of the
 * elements of y with respect to each of the values xs. y and xs are names of floating-point
 * tensors of the model: inputs, initializers or results of nodes, but not of the bodies of control
 * flow. A value is named once.
 *
 * *out_model has the inputs of `model`. Its outputs are the gradients, in the order of xs, each
 * with the dtype and shape of its value and that value's name followed by "_grad" ("_grad_2" and so
 * on where the model has such a name); then y. Where y does not depend on a value, its gradient is
 * zero. The model may be differentiated again. `model` is unchanged and may be freed; initializers
 * are shared.
 *
 * Where an operator has no derivative, as Relu at 0, the gradient is PyTorch's. Operators whose
 * results are steps (Floor, comparisons, ArgMax, conversions to integers) have the gradient zero.
 * Dropout is differentiated as it runs. docs/operators.md lists the operators through which a
 * gradient passes.
 *
 * clg_model_save refuses the model (UNSUPPORTED_OPERATOR) if a gradient needs an operator that ONNX
 * does not have: where an input was broadcast, sliced, pooled or convolved, or elements were
 * multiplied with each other.
 *
 * Any thread. Errors: NOT_FOUND (no value has that name), INVALID_ARGUMENT (a value is named
 * twice), UNSUPPORTED_DTYPE (y or a value is not float), UNSUPPORTED_OPERATOR (the message names
 * the nodes through which the gradient cannot pass, with the reason), and why sessions refuse the
 * model. */
CLG_API CLG_MUST_USE clg_status clg_model_gradient(const clg_model *model, const char *y,
                                                   const char *const *xs, size_t n_xs,
                                                   clg_model **out_model);

#ifdef __cplusplus
}
#endif

#endif
