/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a graph of ONNX operators without an ONNX file. clgraph.h includes this header, and its
 * rules apply.
 */
#ifndef CLGRAPH_BUILDER_H
#define CLGRAPH_BUILDER_H

#include <clgraph/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a builder of a graph of ONNX operators, connected by the names of values. A node may be
 * added before the producers of its inputs. A call that fails adds nothing to the graph. One thread
 * at a time. opset: version of ONNX's default operator set, >= 1; other domains have version 1.
 * Errors of all functions of builders: INVALID_ARGUMENT, INVALID_MODEL (a value that is defined
 * twice). */
CLG_API CLG_MUST_USE clg_status clg_builder_create(int64_t opset, clg_builder **out_builder);
/* Creates a builder with the graph of a model, to which more can be added: a loss, for example. Its
 * values are known by their names. `model` is unchanged and may be freed; initializers are shared.
 * opset: version of the nodes that are added, 0: the model's. Errors also: why sessions refuse the
 * model. */
CLG_API CLG_MUST_USE clg_status clg_builder_create_from_model(const clg_model *model, int64_t opset,
                                                              clg_builder **out_builder);
CLG_API void clg_builder_free(clg_builder *builder);
/* Adds an input, in the order of calls. dims[i] < 0: dynamic; dim_names and entries may be NULL. */
CLG_API CLG_MUST_USE clg_status clg_builder_input(clg_builder *builder, const char *name,
                                                  clg_dtype dtype, size_t rank, const int64_t *dims,
                                                  const char *const *dim_names);
/* Adds a constant, not of strings. data is copied, row-major; size_bytes must be the bytes of the
 * tensor, else INVALID_ARGUMENT; data may be NULL when it is 0. */
CLG_API CLG_MUST_USE clg_status clg_builder_constant(clg_builder *builder, const char *name,
                                                     clg_dtype dtype, size_t rank,
                                                     const int64_t *dims, const void *data,
                                                     size_t size_bytes);
/* Adds a node of the default domain (domain NULL or "") or another. name may be NULL. "" or NULL
 * omits an input or output. Attribute calls apply to the last node; INVALID_ARGUMENT if none. */
CLG_API CLG_MUST_USE clg_status clg_builder_node(clg_builder *builder, const char *domain,
                                                 const char *op_type, const char *name,
                                                 size_t n_inputs, const char *const *inputs,
                                                 size_t n_outputs, const char *const *outputs);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_int(clg_builder *builder, const char *name,
                                                          int64_t value);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_float(clg_builder *builder, const char *name,
                                                            float value);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_string(clg_builder *builder, const char *name,
                                                             const char *value);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_ints(clg_builder *builder, const char *name,
                                                           size_t n, const int64_t *values);
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_floats(clg_builder *builder, const char *name,
                                                             size_t n, const float *values);
/* Sets a list of strings, as for `activations` of LSTM. */
CLG_API CLG_MUST_USE clg_status clg_builder_attribute_strings(clg_builder *builder,
                                                              const char *name, size_t n,
                                                              const char *const *values);
/* Makes a value an output of the graph, in the order of calls. */
CLG_API CLG_MUST_USE clg_status clg_builder_output(clg_builder *builder, const char *name);
/* Checks the graph as a loaded model is checked. The builder can then be freed or extended.
 * Errors: INVALID_MODEL, SHAPE, DATA, UNSUPPORTED_OPERATOR, _ATTRIBUTE, _DTYPE. */
CLG_API CLG_MUST_USE clg_status clg_builder_build(clg_builder *builder, clg_model **out_model);

#ifdef __cplusplus
}
#endif
#endif
