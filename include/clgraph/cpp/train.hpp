/* SPDX-License-Identifier: Apache-2.0
 *
 * Training (clgraph/train.h). clgraph.hpp includes this header.
 *
 *     clgraph::train_options options;
 *     options.loss.kind = CLG_LOSS_CROSS_ENTROPY;
 *     options.optimizer.kind = CLG_OPTIMIZER_ADAM;
 *     clgraph::trainer trainer(context, model, options);
 *     trainer.set_input("image", images);
 *     trainer.set_input("target", labels);
 *     double loss = trainer.step().loss;
 */
#ifndef CLGRAPH_CPP_TRAIN_HPP
#define CLGRAPH_CPP_TRAIN_HPP

#include <clgraph/cpp/session.hpp>
#include <clgraph/train.h>

namespace clgraph
{

/* Members as in clg_loss_options. */
struct loss_options {
    clg_loss kind = CLG_LOSS_OUTPUT;
    std::string output; /* "": the model's only output */
    std::string target; /* "": "target" */
    std::optional<std::int64_t> ignore_index;
    float label_smoothing = 0.0f;
    float delta = 1.0f;
    std::vector<float> weights; /* none: 1 */

    /* The C struct, which points into this object. */
    clg_loss_options c_struct() const noexcept
    {
        clg_loss_options c = CLG_LOSS_OPTIONS_INIT;
        c.kind = kind;
        c.output = output.empty() ? nullptr : output.c_str();
        c.target = target.empty() ? nullptr : target.c_str();
        c.has_ignore_index = ignore_index.has_value();
        c.ignore_index = ignore_index.value_or(0);
        c.label_smoothing = label_smoothing;
        c.delta = delta;
        c.weights = weights.empty() ? nullptr : weights.data();
        c.n_weights = weights.size();
        return c;
    }
};

/* The structs of the C interface with its defaults. */
struct optimizer_options : clg_optimizer_options {
    optimizer_options(clg_optimizer kind_ = CLG_OPTIMIZER_SGD) noexcept
        : clg_optimizer_options(CLG_OPTIMIZER_OPTIONS_INIT)
    {
        kind = kind_;
    }
};
struct schedule_options : clg_schedule_options {
    schedule_options(double rate_ = 1e-3, clg_schedule kind_ = CLG_SCHEDULE_CONSTANT) noexcept
        : clg_schedule_options(CLG_SCHEDULE_OPTIONS_INIT)
    {
        rate = rate_;
        kind = kind_;
    }
};

/* Members as in clg_train_options. */
struct train_options {
    loss_options loss;
    optimizer_options optimizer;
    schedule_options schedule;
    std::vector<std::string> train, freeze; /* patterns of names */
    double clip_value = 0.0;
    double clip_norm = 0.0;
    std::uint32_t accumulate = 1;
    session_options session;
    clg_train_form batchnorm = CLG_FORM_MODEL;
    bool population_variance = false;
    clg_train_form dropout = CLG_FORM_MODEL;
    std::uint64_t seed = 0;
    bool step_metrics = false;
    clg_on_nan on_nan = CLG_ON_NAN_STOP;
    std::optional<std::string> data_settings;
    std::uint32_t parts = 0;
};

/* Adds a loss to a model: its target becomes an input, and its only output is "loss". */
inline result<model> try_add_loss(const model &graph, const loss_options &options)
{
    const clg_loss_options c = options.c_struct();
    return detail::take<model>(
        [&](clg_model **out) { return clg_model_add_loss(graph.get(), &c, out); });
}
/* Which of n_rows rows is at a position of an epoch. */
inline std::uint64_t train_row(std::uint64_t seed, std::uint64_t epoch, std::uint64_t n_rows,
                               std::uint64_t position) noexcept
{
    return clg_train_row(seed, epoch, n_rows, position);
}

/* Parameters, their gradients and an optimizer on a device. One thread at a time. */
class trainer : public handle<clg_trainer, clg_trainer_free>
{
  public:
    using handle::handle;
    using parameter_range =
        port_range<clg_trainer, clg_trainer_n_parameters, clg_trainer_parameter>;

    static result<trainer> try_create(const context &device, const model &graph,
                                      const train_options &options)
    {
        detail::session_options_call session(options.session);
        const clg_loss_options loss = options.loss.c_struct();
        const names train(options.train), freeze(options.freeze);
        clg_train_options c = CLG_TRAIN_OPTIONS_INIT;
        c.loss = &loss;
        c.optimizer = &options.optimizer;
        c.schedule = &options.schedule;
        c.train = train.size() ? train.data() : nullptr;
        c.n_train = train.size();
        c.freeze = freeze.size() ? freeze.data() : nullptr;
        c.n_freeze = freeze.size();
        c.clip_value = options.clip_value;
        c.clip_norm = options.clip_norm;
        c.accumulate = options.accumulate;
        c.session = &session.c;
        c.batchnorm = options.batchnorm;
        c.population_variance = options.population_variance;
        c.dropout = options.dropout;
        c.seed = options.seed;
        c.step_metrics = options.step_metrics;
        c.on_nan = options.on_nan;
        c.data_settings = options.data_settings ? options.data_settings->c_str() : nullptr;
        c.parts = options.parts;
        clg_trainer *created = nullptr;
        const clg_status status = clg_trainer_create(device.get(), graph.get(), &c, &created);
        if (status != CLG_OK) return session.progress.guard.finish(status);
        return trainer(created);
    }

    /* Sets an input of the model, or the targets, for the next batches; keeps a reference. */
    result<void> try_set_input(const zstring &name, const value &v)
    {
        return detail::check(clg_trainer_set_input(get(), name.c_str(), v.get()));
    }
    /* The same with a copy of row-major elements. */
    template <class Range>
    result<void> try_set_input(const zstring &name, dims_view dims, const Range &data)
    {
        const result<value> v = value::try_copy_of(dims, data);
        if (!v) return v.error();
        return try_set_input(name, *v);
    }
    /* Computes the gradients of a batch, and updates the parameters when a step is complete. */
    result<clg_train_stats> try_step()
    {
        clg_train_stats stats = CLG_TRAIN_STATS_INIT;
        const clg_status status = clg_trainer_step(get(), &stats);
        return detail::check(status, stats);
    }
    /* The loss of the inputs that are set; nothing changes. */
    result<double> try_evaluate()
    {
        double loss = 0;
        const clg_status status = clg_trainer_evaluate(get(), &loss);
        return detail::check(status, loss);
    }
    result<clg_measures> try_measure()
    {
        clg_measures measures = CLG_MEASURES_INIT;
        const clg_status status = clg_trainer_measure(get(), &measures);
        return detail::check(status, measures);
    }
    /* Ends the step or evaluation in progress. Any thread. */
    void cancel() noexcept { clg_trainer_cancel(get()); }
    std::uint64_t n_steps() const noexcept { return clg_trainer_n_steps(get()); }

    parameter_range parameters() const noexcept { return parameter_range(get()); }
    /* Copies, in host memory. */
    result<value> try_get_parameter(const zstring &name)
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_trainer_get_parameter(get(), name.c_str(), out); });
    }
    result<value> try_get_gradient(const zstring &name)
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_trainer_get_gradient(get(), name.c_str(), out); });
    }
    result<void> try_set_parameter(const zstring &name, const value &v)
    {
        return detail::check(clg_trainer_set_parameter(get(), name.c_str(), v.get()));
    }
    /* Checkpoints: .npz files. */
    result<void> try_save(const zstring &path)
    {
        return detail::check(clg_trainer_save(get(), path.c_str()));
    }
    result<void> try_load(const zstring &path)
    {
        return detail::check(clg_trainer_load(get(), path.c_str()));
    }
    /* The device memory that a step needs at most. */
    result<clg_memory_estimate> try_memory()
    {
        clg_memory_estimate estimate = CLG_MEMORY_ESTIMATE_INIT;
        const clg_status status = clg_trainer_memory(get(), &estimate);
        return detail::check(status, estimate);
    }
    /* Checks that the gradient of a batch is the mean of those of its parts. */
    result<void> try_check_parts() { return detail::check(clg_trainer_check_parts(get())); }
    /* A session that predicts with the parameters as they are when it runs. */
    result<clgraph::session> try_session()
    {
        return detail::take<clgraph::session>(
            [&](clg_session **out) { return clg_trainer_session(get(), out); });
    }
    /* The model with the parameters as they are now. */
    result<clgraph::model> try_model()
    {
        return detail::take<clgraph::model>(
            [&](clg_model **out) { return clg_trainer_model(get(), out); });
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    trainer(const context &device, const model &graph, const train_options &options)
        : trainer(create(device, graph, options))
    {
    }
    static trainer create(const context &device, const model &graph, const train_options &options)
    {
        return try_create(device, graph, options).value();
    }
    void set_input(const zstring &name, const value &v) { try_set_input(name, v).value(); }
    template <class Range> void set_input(const zstring &name, dims_view dims, const Range &data)
    {
        try_set_input(name, dims, data).value();
    }
    clg_train_stats step() { return try_step().value(); }
    double evaluate() { return try_evaluate().value(); }
    clg_measures measure() { return try_measure().value(); }
    value get_parameter(const zstring &name) { return try_get_parameter(name).value(); }
    value get_gradient(const zstring &name) { return try_get_gradient(name).value(); }
    void set_parameter(const zstring &name, const value &v) { try_set_parameter(name, v).value(); }
    void save(const zstring &path) { try_save(path).value(); }
    void load(const zstring &path) { try_load(path).value(); }
    clg_memory_estimate memory() { return try_memory().value(); }
    void check_parts() { try_check_parts().value(); }
    clgraph::session session() { return try_session().value(); }
    clgraph::model model() { return try_model().value(); }
#endif
};

#if CLGRAPH_EXCEPTIONS
/* The same, with exceptions. */
inline model add_loss(const model &graph, const loss_options &options)
{
    return try_add_loss(graph, options).value();
}
#endif

} // namespace clgraph

#endif
