/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds graphs of ONNX operators without an ONNX file (clgraph/builder.h). clgraph.hpp includes
 * this header.
 */
#ifndef CLGRAPH_CPP_BUILDER_HPP
#define CLGRAPH_CPP_BUILDER_HPP

#include <clgraph/builder.h>
#include <clgraph/cpp/model.hpp>

namespace clgraph
{

/* A graph in the making. A call that fails adds nothing. One thread at a time.
 *
 *     clgraph::builder b(13);
 *     b.input<float>("x", {-1, 784});
 *     b.constant("w", {784, 10}, weights);
 *     b.node("MatMul", {"x", "w"}, {"y"});
 *     b.output("y");
 *     clgraph::model m = b.build();
 */
class builder : public handle<clg_builder, clg_builder_free>
{
  public:
    using handle::handle;
    /* opset: version of ONNX's default operator set. */
    static result<builder> try_create(std::int64_t opset)
    {
        return detail::take<builder>(
            [&](clg_builder **out) { return clg_builder_create(opset, out); });
    }
    /* With the graph of a model, to which more can be added; opset 0: the model's. */
    static result<builder> try_create_from(const model &from, std::int64_t opset = 0)
    {
        return detail::take<builder>([&](clg_builder **out) {
            return clg_builder_create_from_model(from.get(), opset, out);
        });
    }

    /* Adds an input. dims[i] < 0: chosen at run time, with the symbol dim_names[i] if given. */
    result<void> try_input(const zstring &name, clg_dtype dtype, dims_view dims,
                           const names &dim_names = {})
    {
        if (dim_names.size() != 0 && dim_names.size() != dims.size())
            return error(CLG_ERROR_INVALID_ARGUMENT, "a name is needed for each dimension");
        return detail::check(clg_builder_input(get(), name.c_str(), dtype, dims.size(), dims.data(),
                                               dim_names.size() ? dim_names.data() : nullptr));
    }
    /* Adds a constant; the elements are copied. */
    template <class Range>
    result<void> try_constant(const zstring &name, dims_view dims, const Range &data)
    {
        const auto elements = detail::elements_of(data);
        return detail::check(
            clg_builder_constant(get(), name.c_str(), dtype_v<detail::element<const Range>>,
                                 dims.size(), dims.data(), elements.data(), elements.size_bytes()));
    }
    /* Adds a node. "" omits an input or output. Attributes apply to the node added last. */
    result<void> try_node(const zstring &op_type, const names &inputs, const names &outputs,
                          const zstring &name = nullptr, const zstring &domain = nullptr)
    {
        return detail::check(clg_builder_node(get(), domain.c_str(), op_type.c_str(), name.c_str(),
                                              inputs.size(), inputs.data(), outputs.size(),
                                              outputs.data()));
    }
    result<void> try_attribute_int(const zstring &name, std::int64_t value)
    {
        return detail::check(clg_builder_attribute_int(get(), name.c_str(), value));
    }
    result<void> try_attribute_float(const zstring &name, float value)
    {
        return detail::check(clg_builder_attribute_float(get(), name.c_str(), value));
    }
    result<void> try_attribute_string(const zstring &name, const zstring &value)
    {
        return detail::check(clg_builder_attribute_string(get(), name.c_str(), value.c_str()));
    }
    result<void> try_attribute_ints(const zstring &name, view<const std::int64_t> values)
    {
        return detail::check(
            clg_builder_attribute_ints(get(), name.c_str(), values.size(), values.data()));
    }
    result<void> try_attribute_floats(const zstring &name, view<const float> values)
    {
        return detail::check(
            clg_builder_attribute_floats(get(), name.c_str(), values.size(), values.data()));
    }
    result<void> try_attribute_strings(const zstring &name, const names &values)
    {
        return detail::check(
            clg_builder_attribute_strings(get(), name.c_str(), values.size(), values.data()));
    }
    /* Makes a value an output of the graph. */
    result<void> try_output(const zstring &name)
    {
        return detail::check(clg_builder_output(get(), name.c_str()));
    }
    /* Checks the graph as a loaded model is checked. The builder can then be extended. */
    result<model> try_build()
    {
        return detail::take<model>([&](clg_model **out) { return clg_builder_build(get(), out); });
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    explicit builder(std::int64_t opset) : builder(create(opset)) {}
    static builder create(std::int64_t opset) { return try_create(opset).value(); }
    static builder create_from(const model &from, std::int64_t opset = 0)
    {
        return try_create_from(from, opset).value();
    }
    void input(const zstring &name, clg_dtype dtype, dims_view dims, const names &dim_names = {})
    {
        try_input(name, dtype, dims, dim_names).value();
    }
    template <class Range> void constant(const zstring &name, dims_view dims, const Range &data)
    {
        try_constant(name, dims, data).value();
    }
    void node(const zstring &op_type, const names &inputs, const names &outputs,
              const zstring &name = nullptr, const zstring &domain = nullptr)
    {
        try_node(op_type, inputs, outputs, name, domain).value();
    }
    void attribute_int(const zstring &name, std::int64_t value)
    {
        try_attribute_int(name, value).value();
    }
    void attribute_float(const zstring &name, float value)
    {
        try_attribute_float(name, value).value();
    }
    void attribute_string(const zstring &name, const zstring &value)
    {
        try_attribute_string(name, value).value();
    }
    void attribute_ints(const zstring &name, view<const std::int64_t> values)
    {
        try_attribute_ints(name, values).value();
    }
    void attribute_floats(const zstring &name, view<const float> values)
    {
        try_attribute_floats(name, values).value();
    }
    void attribute_strings(const zstring &name, const names &values)
    {
        try_attribute_strings(name, values).value();
    }
    void output(const zstring &name) { try_output(name).value(); }
    model build() { return try_build().value(); }
#endif
};

} // namespace clgraph

#endif
