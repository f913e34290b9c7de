/* SPDX-License-Identifier: Apache-2.0
 *
 * Models: ONNX files, their inputs, outputs and initializers, parts and gradients
 * (clgraph/model.h, gradient.h, inspect.h). clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_MODEL_HPP
#define CLGRAPH_CPP_MODEL_HPP

#include <clgraph/cpp/value.hpp>
#include <clgraph/gradient.h>

#include <cstdint>
#include <functional>

namespace clgraph
{

using node_list = list<clg_node_info, clg_node_list_free>;
using estimate_list = list<clg_node_estimate, clg_node_estimate_list_free>;
using operator_list = list<clg_operator_info, clg_operator_list_free>;
using bytes_view = view<const std::byte>;

/* An ONNX file in memory, as clg_model_save_memory returned it: not copied. */
class bytes
{
  public:
    bytes() noexcept = default;
    bytes(void *owned, std::size_t size) noexcept : memory_(owned), size_(size) {}
    const std::byte *data() const noexcept { return static_cast<std::byte *>(memory_.get()); }
    std::size_t size() const noexcept { return size_; }

  private:
    handle<void, clg_bytes_free> memory_;
    std::size_t size_ = 0;
};

/* Gives the memory of external data, which must stay valid and unchanged until `released`: see
 * clg_external_data_callback. An error or an exception ends loading. */
struct external_data {
    std::function<result<bytes_view>(std::string_view location, std::uint64_t offset_bytes,
                                     std::uint64_t length_bytes)>
        find;
    /* Called once, when nothing refers to the memory any more; may be empty. Exceptions of it and
     * of `unload` are dropped. */
    std::function<void()> released;
    /* These bytes were copied to a device: see clg_unload_callback. Any thread; may be empty. */
    std::function<void(bytes_view)> unload;
};

/* Members as in clg_model_options. */
struct model_options {
    bool allow_external_data_missing = false;
    bool allow_unsupported = false;
    bool read_files = false;
    const cancel_token *cancel = nullptr;
    std::optional<clgraph::limits> limits;
    /* Copied: lives until the model and its sessions are gone. */
    std::optional<clgraph::external_data> external_data;
};

/* A shape for one input, in place of the declared one. */
struct shape {
    std::string input;
    std::vector<std::int64_t> dims;
};

namespace detail
{

/* Calls what must not throw: callbacks without a result. */
template <class F> void drop_exceptions(F &&f) noexcept
{
#if CLGRAPH_EXCEPTIONS
    try {
        f();
    } catch (...) {
    }
#else
    f();
#endif
}

/* The callbacks of external data. Made for a call that loads, deleted by external_release. */
struct external_state {
    clgraph::external_data callbacks;
    callback_guard *guard; /* of the call that loads; not used after it */

    static clg_status find(void *user, const char *location, std::uint64_t offset_bytes,
                           std::uint64_t length_bytes, const void **out_data)
    {
        auto *self = static_cast<external_state *>(user);
        const auto found = self->guard->call([&]() -> result<bytes_view> {
            auto memory = self->callbacks.find(location, offset_bytes, length_bytes);
            if (memory && memory->size() < length_bytes)
                return error(CLG_ERROR_INVALID_ARGUMENT,
                             "a callback gave fewer bytes of external data than were requested");
            return memory;
        });
        if (!found) return found.error().status();
        *out_data = found->data();
        return CLG_OK;
    }
    static void release(void *user)
    {
        const std::unique_ptr<external_state> self(static_cast<external_state *>(user));
        if (self->callbacks.released) drop_exceptions(self->callbacks.released);
    }
    static void unload(void *user, const void *data, std::size_t size_bytes)
    {
        auto *self = static_cast<external_state *>(user);
        drop_exceptions([&] {
            self->callbacks.unload(bytes_view(static_cast<const std::byte *>(data), size_bytes));
        });
    }
};

/* Arrays of the C interface for a list of shapes; they point into it. */
struct shape_array {
    std::vector<clg_shape_override> overrides;
    explicit shape_array(view<const shape> shapes)
    {
        overrides.reserve(shapes.size());
        for (const shape &s : shapes) {
            clg_shape_override o{};
            o.input = s.input.c_str();
            o.rank = s.dims.size(); /* above CLG_MAX_RANK: refused by the library */
            for (std::size_t i = 0; i < s.dims.size() && i < CLG_MAX_RANK; i++)
                o.dims[i] = s.dims[i];
            overrides.push_back(o);
        }
    }
};

} // namespace detail

/* The dimensions of a port, < 0 where they are chosen at run time; none where any rank is. */
inline dims_view dims_of(const clg_port &port) noexcept
{
    return {port.dims, port.rank < 0 ? 0 : static_cast<std::size_t>(port.rank)};
}

/* Inputs, outputs or initializers of a model, or parameters of a trainer: a range of const
 * clg_port, by index, that lives as long as what it is of. */
template <class Owner, std::size_t (*Count)(const Owner *),
          const clg_port *(*At)(const Owner *, std::size_t)>
class port_range
{
  public:
    explicit port_range(const Owner *owner) noexcept : owner_(owner) {}
    std::size_t size() const noexcept { return Count(owner_); }
    bool empty() const noexcept { return size() == 0; }
    /* Not checked. */
    const clg_port &operator[](std::size_t i) const noexcept { return *At(owner_, i); }
    /* nullptr when there is none of that name, or at that index. */
    const clg_port *find(std::string_view name) const noexcept
    {
        for (std::size_t i = 0; i < size(); i++)
            if (name == (*this)[i].name) return &(*this)[i];
        return nullptr;
    }
    const clg_port *find(std::size_t i) const noexcept { return At(owner_, i); }

    class iterator
    {
      public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = clg_port;
        using difference_type = std::ptrdiff_t;
        using pointer = const clg_port *;
        using reference = const clg_port &;
        iterator() noexcept = default;
        iterator(const Owner *owner, std::size_t i) noexcept : owner_(owner), i_(i) {}
        reference operator*() const noexcept { return *At(owner_, i_); }
        pointer operator->() const noexcept { return At(owner_, i_); }
        iterator &operator++() noexcept
        {
            i_++;
            return *this;
        }
        iterator operator++(int) noexcept
        {
            iterator before = *this;
            i_++;
            return before;
        }
        friend bool operator==(const iterator &a, const iterator &b) noexcept
        {
            return a.i_ == b.i_;
        }
        friend bool operator!=(const iterator &a, const iterator &b) noexcept
        {
            return a.i_ != b.i_;
        }

      private:
        const Owner *owner_ = nullptr;
        std::size_t i_ = 0;
    };
    iterator begin() const noexcept { return {owner_, 0}; }
    iterator end() const noexcept { return {owner_, size()}; }

  private:
    const Owner *owner_;
};

/* A graph with its weights. May be shared between threads. */
class model : public handle<clg_model, clg_model_free>
{
  public:
    using handle::handle;
    using input_range = port_range<clg_model, clg_model_n_inputs, clg_model_input>;
    using output_range = port_range<clg_model, clg_model_n_outputs, clg_model_output>;
    using initializer_range =
        port_range<clg_model, clg_model_n_initializers, clg_model_initializer>;

    /* Loads an ONNX file, which is mapped and must not change unless options.read_files is set. */
    static result<model> try_load(const zstring &path, const model_options &options = {})
    {
        return load_by(options, [&](const clg_model_options *c, clg_model **out) {
            return clg_model_load_file(path.c_str(), c, out);
        });
    }
    /* Loads an ONNX file in memory (bytes, char, ...), which is copied. */
    template <class Range>
    static result<model> try_load_memory(const Range &file, const model_options &options = {})
    {
        const auto elements = detail::elements_of(file);
        return load_by(options, [&](const clg_model_options *c, clg_model **out) {
            return clg_model_load_memory(elements.data(), elements.size_bytes(), c, out);
        });
    }
    /* Writes an ONNX file. external_bytes: initializers of at least this many bytes go to
     * PATH.data; 0: none. */
    result<void> try_save(const zstring &path, std::size_t external_bytes = 0,
                          const zstring &producer = nullptr) const
    {
        clg_model_save_options c = CLG_MODEL_SAVE_OPTIONS_INIT;
        c.external_bytes = external_bytes;
        c.producer = producer.c_str();
        return detail::check(clg_model_save(get(), path.c_str(), &c));
    }
    result<bytes> try_save_memory(const zstring &producer = nullptr) const
    {
        clg_model_save_options c = CLG_MODEL_SAVE_OPTIONS_INIT;
        c.producer = producer.c_str();
        void *data = nullptr;
        std::size_t size = 0;
        const clg_status status = clg_model_save_memory(get(), &c, &data, &size);
        if (status != CLG_OK) return error::last(status);
        return bytes(data, size);
    }

    /* ---- inputs, outputs, initializers: for (const clg_port &port : model.inputs()) ---------- */

    input_range inputs() const noexcept { return input_range(get()); }
    output_range outputs() const noexcept { return output_range(get()); }
    initializer_range initializers() const noexcept { return initializer_range(get()); }
    /* A copy of the elements of initializer `index`. */
    result<value> try_initializer_value(std::size_t index) const
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_model_initializer_value(get(), index, out); });
    }

    /* ---- other models from this one, which share its initializers ---------------------------- */

    /* Other elements for initializers: replaced[i] gets those of elements[i]. */
    result<model> try_replace_initializers(const names &replaced, view<const value> elements) const
    {
        if (replaced.size() != elements.size())
            return error(CLG_ERROR_INVALID_ARGUMENT, "as many names as values are needed");
        const std::vector<clg_value *> pointers = detail::pointers_of<clg_value>(elements);
        return detail::take<model>([&](clg_model **out) {
            return clg_model_replace_initializers(get(), replaced.data(), pointers.data(),
                                                  pointers.size(), out);
        });
    }
    /* The part of the model between values. */
    result<model> try_extract(const names &inputs, const names &outputs) const
    {
        return detail::take<model>([&](clg_model **out) {
            return clg_model_extract(get(), inputs.data(), inputs.size(), outputs.data(),
                                     outputs.size(), out);
        });
    }
    /* A model of the gradient of the sum of y with respect to each of the values xs. */
    result<model> try_gradient(const zstring &y, const names &xs) const
    {
        return detail::take<model>([&](clg_model **out) {
            return clg_model_gradient(get(), y.c_str(), xs.data(), xs.size(), out);
        });
    }

    /* ---- what it is ---------------------------------------------------------------------- */

    /* Strings in the result are the model's. */
    result<clg_model_info> try_info() const
    {
        clg_model_info info = CLG_MODEL_INFO_INIT;
        const clg_status status = clg_model_get_info(get(), &info);
        return detail::check(status, info);
    }
    /* The nodes, with the place of each as far as it is known without a device. */
    result<node_list> try_nodes() const
    {
        return detail::take_list<node_list>([&](clg_node_info **nodes, std::size_t *n) {
            return clg_model_nodes(get(), nodes, n);
        });
    }
    /* The nodes of an ONNX file, also of one that cannot be loaded. */
    static result<node_list> try_file_nodes(const zstring &path)
    {
        return detail::take_list<node_list>([&](clg_node_info **nodes, std::size_t *n) {
            return clg_model_file_nodes(path.c_str(), nodes, n);
        });
    }
    /* The graph in Graphviz's language. */
    result<std::string> try_dot() const
    {
        return detail::take_text([&](char **text) { return clg_model_dot(get(), text); });
    }
    /* Floating-point operations of a run, for the declared shapes and those given. */
    result<double> try_flops(view<const shape> shapes = {}) const
    {
        const detail::shape_array a(shapes);
        double flops = 0;
        const clg_status status =
            clg_model_flops(get(), a.overrides.data(), a.overrides.size(), &flops);
        return detail::check(status, flops);
    }
    /* An estimate of the memory of a run, without a device. */
    result<clg_memory_estimate> try_memory(view<const shape> shapes = {}) const
    {
        const detail::shape_array a(shapes);
        clg_memory_estimate estimate = CLG_MEMORY_ESTIMATE_INIT;
        const clg_status status =
            clg_model_memory(get(), a.overrides.data(), a.overrides.size(), &estimate);
        return detail::check(status, estimate);
    }
    /* Estimates of each node, in the order of nodes(). The model must outlive them: their names are
     * the model's. */
    result<estimate_list> try_node_estimates(view<const shape> shapes = {}) const
    {
        const detail::shape_array a(shapes);
        return detail::take_list<estimate_list>([&](clg_node_estimate **list, std::size_t *n) {
            return clg_model_node_estimates(get(), a.overrides.data(), a.overrides.size(), list, n);
        });
    }
    struct batch_axes {
        std::vector<int> inputs, outputs; /* CLG_BATCH_NONE: does not carry the batch */
    };
    /* Proves that the rows of a batch do not depend on each other. input_axes: the axis of each
     * input, or none for the usual ones. */
    result<batch_axes> try_batch(view<const int> input_axes = {},
                                 view<const shape> shapes = {}) const
    {
        if (!input_axes.empty() && input_axes.size() != inputs().size())
            return error(CLG_ERROR_INVALID_ARGUMENT, "an axis is needed for each input");
        const detail::shape_array a(shapes);
        clg_batch_options c = CLG_BATCH_OPTIONS_INIT;
        c.input_axes = input_axes.empty() ? nullptr : input_axes.data();
        c.shapes = a.overrides.data();
        c.n_shapes = a.overrides.size();
        batch_axes axes{std::vector<int>(inputs().size()), std::vector<int>(outputs().size())};
        const clg_status status =
            clg_model_batch(get(), &c, axes.inputs.data(), axes.outputs.data());
        return detail::check(status, std::move(axes));
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    explicit model(const zstring &path, const model_options &options = {})
        : model(load(path, options))
    {
    }
    static model load(const zstring &path, const model_options &options = {})
    {
        return try_load(path, options).value();
    }
    template <class Range>
    static model load_memory(const Range &file, const model_options &options = {})
    {
        return try_load_memory(file, options).value();
    }
    void save(const zstring &path, std::size_t external_bytes = 0,
              const zstring &producer = nullptr) const
    {
        try_save(path, external_bytes, producer).value();
    }
    bytes save_memory(const zstring &producer = nullptr) const
    {
        return try_save_memory(producer).value();
    }
    value initializer_value(std::size_t index) const
    {
        return try_initializer_value(index).value();
    }
    model replace_initializers(const names &replaced, view<const value> elements) const
    {
        return try_replace_initializers(replaced, elements).value();
    }
    model extract(const names &inputs, const names &outputs) const
    {
        return try_extract(inputs, outputs).value();
    }
    model gradient(const zstring &y, const names &xs) const { return try_gradient(y, xs).value(); }
    clg_model_info info() const { return try_info().value(); }
    node_list nodes() const { return try_nodes().value(); }
    static node_list file_nodes(const zstring &path) { return try_file_nodes(path).value(); }
    std::string dot() const { return try_dot().value(); }
    double flops(view<const shape> shapes = {}) const { return try_flops(shapes).value(); }
    estimate_list node_estimates(view<const shape> shapes = {}) const
    {
        return try_node_estimates(shapes).value();
    }
    clg_memory_estimate memory(view<const shape> shapes = {}) const
    {
        return try_memory(shapes).value();
    }
    batch_axes batch(view<const int> input_axes = {}, view<const shape> shapes = {}) const
    {
        return try_batch(input_axes, shapes).value();
    }
#endif

  private:
    template <class Load> static result<model> load_by(const model_options &options, Load &&load)
    {
        detail::callback_guard guard;
        clg_model_options c = CLG_MODEL_OPTIONS_INIT;
        clg_limits limits = CLG_LIMITS_INIT;
        c.allow_external_data_missing = options.allow_external_data_missing;
        c.allow_unsupported = options.allow_unsupported;
        c.read_files = options.read_files;
        c.cancel = options.cancel ? options.cancel->get() : nullptr;
        if (options.limits) {
            limits = options.limits->c_struct();
            c.limits = &limits;
        }
        if (options.external_data) {
            c.external_data = &detail::external_state::find;
            c.external_release = &detail::external_state::release;
            c.external_unload =
                options.external_data->unload ? &detail::external_state::unload : nullptr;
            c.external_user = new detail::external_state{*options.external_data, &guard};
        }
        clg_model *loaded = nullptr;
        const clg_status status = load(&c, &loaded);
        if (status != CLG_OK) return guard.finish(status);
        return model(loaded);
    }
};

/* All supported operators, by family. */
inline result<operator_list> try_list_operators()
{
    return detail::take_list<operator_list>([](clg_operator_info **operators, std::size_t *n) {
        return clg_operator_list(operators, n);
    });
}
inline const char *place_name(clg_place place) noexcept { return clg_place_name(place); }

#if CLGRAPH_EXCEPTIONS
/* The same, with exceptions. */
inline operator_list list_operators() { return try_list_operators().value(); }
#endif

} // namespace clgraph

#endif
