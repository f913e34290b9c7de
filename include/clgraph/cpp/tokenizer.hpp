/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers of language models (clgraph/tokenizer.h). clgraph.hpp includes this header.
 *
 *     auto tokenizer = clgraph::tokenizer::open("model/");
 *     std::vector<std::int64_t> ids = tokenizer.encode("Hello");
 *     std::string text = tokenizer.decode(ids);
 */
#ifndef CLGRAPH_CPP_TOKENIZER_HPP
#define CLGRAPH_CPP_TOKENIZER_HPP

#include <clgraph/cpp/handle.hpp>
#include <clgraph/tokenizer.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace clgraph
{

/* Threads may share one. */
class tokenizer : public handle<clg_tokenizer, clg_tokenizer_free>
{
  public:
    using handle::handle;
    /* Of a tokenizer.json, or of a folder that has one. */
    static result<tokenizer> try_open(const zstring &path)
    {
        return detail::take<tokenizer>(
            [&](clg_tokenizer **out) { return clg_tokenizer_open(path.c_str(), out); });
    }
    std::size_t size() const noexcept { return clg_tokenizer_size(get()); }
    /* nullptr when there is no such id. */
    const char *token(std::int64_t id) const noexcept { return clg_tokenizer_token(get(), id); }
    bool is_special(std::int64_t id) const noexcept { return clg_tokenizer_is_special(get(), id); }
    /* Of a token as the file spells it. */
    result<std::int64_t> try_id(const zstring &token) const
    {
        std::int64_t id;
        const clg_status status = clg_tokenizer_id(get(), token.c_str(), &id);
        return detail::check(status, id);
    }
    /* Of a special token by its role, "bos" or "eos". */
    result<std::int64_t> try_special_id(const zstring &role) const
    {
        std::int64_t id;
        const clg_status status = clg_tokenizer_special_id(get(), role.c_str(), &id);
        return detail::check(status, id);
    }
    result<std::vector<std::int64_t>> try_encode(std::string_view text,
                                                 bool add_special = true) const
    {
        struct owner {
            std::int64_t *ids = nullptr;
            ~owner() { clg_ids_free(ids); }
        } owned;
        std::size_t n = 0;
        const clg_status status =
            clg_tokenizer_encode(get(), text.data(), text.size(), add_special, &owned.ids, &n);
        if (status != CLG_OK) return error::last(status);
        return std::vector<std::int64_t>(owned.ids, owned.ids + n);
    }
    result<std::string> try_decode(view<const std::int64_t> ids, bool skip_special = true) const
    {
        struct owner {
            char *text = nullptr;
            ~owner() { clg_text_free(text); }
        } owned;
        std::size_t n = 0;
        const clg_status status =
            clg_tokenizer_decode(get(), ids.data(), ids.size(), skip_special, &owned.text, &n);
        if (status != CLG_OK) return error::last(status);
        return std::string(owned.text, n);
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    static tokenizer open(const zstring &path) { return try_open(path).value(); }
    std::int64_t id(const zstring &token) const { return try_id(token).value(); }
    std::int64_t special_id(const zstring &role) const { return try_special_id(role).value(); }
    std::vector<std::int64_t> encode(std::string_view text, bool add_special = true) const
    {
        return try_encode(text, add_special).value();
    }
    std::string decode(view<const std::int64_t> ids, bool skip_special = true) const
    {
        return try_decode(ids, skip_special).value();
    }
#endif
};

/* The text of tokens that come one by one. One thread at a time. */
class token_stream : public handle<clg_token_stream, clg_token_stream_free>
{
  public:
    using handle::handle;
    static result<token_stream> try_create(const tokenizer &t, bool skip_special = true)
    {
        return detail::take<token_stream>([&](clg_token_stream **out) {
            return clg_token_stream_create(t.get(), skip_special, out);
        });
    }
    /* The text that is complete with a token, valid until the next call. */
    result<std::string_view> try_push(std::int64_t id)
    {
        const char *text = nullptr;
        std::size_t n = 0;
        const clg_status status = clg_token_stream_push(get(), id, &text, &n);
        return detail::check(status, std::string_view(text ? text : "", n));
    }
    /* What is left, valid until the next call. */
    result<std::string_view> try_end()
    {
        const char *text = nullptr;
        std::size_t n = 0;
        const clg_status status = clg_token_stream_end(get(), &text, &n);
        return detail::check(status, std::string_view(text ? text : "", n));
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    static token_stream create(const tokenizer &t, bool skip_special = true)
    {
        return try_create(t, skip_special).value();
    }
    std::string_view push(std::int64_t id) { return try_push(id).value(); }
    std::string_view end() { return try_end().value(); }
#endif
};

} // namespace clgraph

#endif
