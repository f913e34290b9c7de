/* SPDX-License-Identifier: Apache-2.0
 *
 * Generation of tokens (clgraph/generate.h). clgraph.hpp includes this header.
 *
 *     clgraph::generator generator(context, "folder");
 *     generator.append(prompt);
 *     for (clgraph::generated made; made.end == CLG_END_NONE;) {
 *         made = generator.next();
 *         use(made.token);
 *     }
 */
#ifndef CLGRAPH_CPP_GENERATE_HPP
#define CLGRAPH_CPP_GENERATE_HPP

#include <clgraph/cpp/session.hpp>
#include <clgraph/generate.h>

namespace clgraph
{

/* Members as in clg_generator_options. */
struct generator_options {
    session_options session;
    std::uint64_t max_context = 0;
    std::uint32_t chunk = 0;
    clg_generator_cache cache = CLG_CACHE_AUTO;
    bool read_files = false;
};

/* The struct of the C interface: the most likely token. */
struct sampling : clg_sampling {
    sampling() noexcept : clg_sampling(CLG_SAMPLING_INIT) {}
};

/* A token, -1 after an end, and whether it ends the text. */
struct generated {
    std::int64_t token = -1;
    clg_generator_end end = CLG_END_NONE;
};

/* Text, valid until the generator's next call, and whether it is the end. */
struct generated_text {
    std::string_view text;
    clg_generator_end end = CLG_END_NONE;
};

/* A decoder, and a sequence that it continues. One thread at a time. */
class generator : public handle<clg_generator, clg_generator_free>
{
  public:
    using handle::handle;

    static result<generator> try_open(const context &device, const zstring &folder,
                                      const generator_options &options = {})
    {
        detail::session_options_call session(options.session);
        clg_generator_options c = CLG_GENERATOR_OPTIONS_INIT;
        c.session = &session.c;
        c.max_context = options.max_context;
        c.chunk = options.chunk;
        c.cache = options.cache;
        c.read_files = options.read_files;
        clg_generator *opened = nullptr;
        const clg_status status = clg_generator_open(device.get(), folder.c_str(), &c, &opened);
        if (status != CLG_OK) return session.progress.guard.finish(status);
        return generator(opened);
    }

    result<clg_generator_info> try_describe() const
    {
        clg_generator_info info = CLG_GENERATOR_INFO_INIT;
        const clg_status status = clg_generator_describe(get(), &info);
        return detail::check(status, info);
    }
    result<sampling> try_get_sampling() const
    {
        sampling s;
        const clg_status status = clg_generator_get_sampling(get(), &s);
        return detail::check(status, s);
    }
    result<void> try_set_sampling(const sampling &s)
    {
        return detail::check(clg_generator_set_sampling(get(), &s));
    }
    /* Settings of the folder. */
    result<void> try_reset_sampling()
    {
        return detail::check(clg_generator_set_sampling(get(), nullptr));
    }
    result<void> try_append(view<const std::int64_t> tokens)
    {
        return detail::check(clg_generator_append(get(), tokens.data(), tokens.size()));
    }
    result<generated> try_next()
    {
        generated made;
        const clg_status status = clg_generator_next(get(), &made.token, &made.end);
        return detail::check(status, made);
    }
    result<void> try_append_text(std::string_view text)
    {
        return detail::check(clg_generator_append_text(get(), text.data(), text.size()));
    }
    /* The text that is certain with the next token, and whether it is the end. */
    result<generated_text> try_next_text()
    {
        generated_text made;
        const char *text = "";
        std::size_t n_bytes = 0;
        const clg_status status = clg_generator_next_text(get(), &text, &n_bytes, &made.end);
        if (status == CLG_OK) made.text = std::string_view(text, n_bytes);
        return detail::check(status, made);
    }
    result<void> try_set_stops(const std::vector<std::string> &texts)
    {
        const names all(texts);
        return detail::check(clg_generator_set_stops(get(), all.data(), all.size()));
    }
    /* Writes as many logits as there are tokens in the vocabulary. */
    result<void> try_logits(view<float> out)
    {
        return detail::check(clg_generator_logits(get(), out.data(), out.size()));
    }
    result<void> try_rewind(std::size_t n_tokens)
    {
        return detail::check(clg_generator_rewind(get(), n_tokens));
    }
    /* Ends the call in progress. Any thread. */
    void cancel() noexcept { clg_generator_cancel(get()); }
    /* The sequence, until the next call that changes it. */
    view<const std::int64_t> tokens() const noexcept
    {
        return {clg_generator_tokens(get()), clg_generator_n_tokens(get())};
    }
    result<clg_generator_stats> try_stats()
    {
        clg_generator_stats stats = CLG_GENERATOR_STATS_INIT;
        const clg_status status = clg_generator_get_stats(get(), &stats);
        return detail::check(status, stats);
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    generator(const context &device, const zstring &folder, const generator_options &options = {})
        : generator(open(device, folder, options))
    {
    }
    static generator open(const context &device, const zstring &folder,
                          const generator_options &options = {})
    {
        return try_open(device, folder, options).value();
    }
    clg_generator_info describe() const { return try_describe().value(); }
    sampling get_sampling() const { return try_get_sampling().value(); }
    void set_sampling(const sampling &s) { try_set_sampling(s).value(); }
    void reset_sampling() { try_reset_sampling().value(); }
    void append(view<const std::int64_t> tokens) { try_append(tokens).value(); }
    generated next() { return try_next().value(); }
    void append_text(std::string_view text) { try_append_text(text).value(); }
    generated_text next_text() { return try_next_text().value(); }
    void set_stops(const std::vector<std::string> &texts) { try_set_stops(texts).value(); }
    void logits(view<float> out) { try_logits(out).value(); }
    void rewind(std::size_t n_tokens) { try_rewind(n_tokens).value(); }
    clg_generator_stats stats() { return try_stats().value(); }
#endif
};

} // namespace clgraph

#endif
