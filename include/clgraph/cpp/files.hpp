/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of tensors (.npz, .npy by rows), files that are written whole, and the cache of compiled
 * programs (clgraph/inspect.h). clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_FILES_HPP
#define CLGRAPH_CPP_FILES_HPP

#include <clgraph/cpp/value.hpp>

namespace clgraph
{

/* Writes a file: PATH is the old file or the complete new one. */
template <class Range> result<void> try_write_file(const zstring &path, const Range &data)
{
    const auto elements = detail::elements_of(data);
    return detail::check(clg_file_write(path.c_str(), elements.data(), elements.size_bytes()));
}

/* ---- .npz ------------------------------------------------------------------------------------ */

struct named_value {
    std::string name;
    value tensor;
};

/* dtype and dimensions of an array in a file. */
struct array_header {
    clg_dtype dtype = CLG_DTYPE_NONE;
    std::vector<std::int64_t> dims;
};

/* Loads all tensors of a .npz. */
inline result<std::vector<named_value>> try_load_npz(const zstring &path)
{
    struct owner {
        char **names = nullptr;
        clg_value **values = nullptr;
        std::size_t n = 0;
        ~owner() { clg_npz_free(names, values, n); }
    } owned;
    const clg_status status = clg_npz_load(path.c_str(), &owned.names, &owned.values, &owned.n);
    if (status != CLG_OK) return error::last(status);
    std::vector<named_value> tensors;
    tensors.reserve(owned.n);
    for (std::size_t i = 0; i < owned.n; i++)
        tensors.push_back({owned.names[i], value::share(owned.values[i])});
    return result<std::vector<named_value>>(std::move(tensors));
}
/* Saves named tensors to a compressed .npz. */
inline result<void> try_save_npz(const zstring &path, view<const named_value> tensors)
{
    std::vector<const char *> names;
    std::vector<clg_value *> values;
    names.reserve(tensors.size());
    values.reserve(tensors.size());
    for (const named_value &t : tensors) {
        names.push_back(t.name.c_str());
        values.push_back(t.tensor.get());
    }
    return detail::check(clg_npz_save(path.c_str(), names.data(), values.data(), names.size()));
}

/* Reads the arrays of a .npz one at a time. One thread at a time. */
class npz_reader : public handle<clg_npz_reader, clg_npz_reader_free>
{
  public:
    using handle::handle;
    static result<npz_reader> try_open(const zstring &path)
    {
        return detail::take<npz_reader>(
            [&](clg_npz_reader **out) { return clg_npz_reader_open(path.c_str(), out); });
    }
    std::size_t n_arrays() const noexcept { return clg_npz_reader_n_arrays(get()); }
    /* nullptr when i is out of range. */
    const char *name(std::size_t i) const noexcept { return clg_npz_reader_name(get(), i); }
    /* Without unpacking the array. */
    result<array_header> try_header(std::size_t i) const
    {
        clg_dtype dtype = CLG_DTYPE_NONE;
        std::size_t rank = 0;
        std::int64_t dims[CLG_MAX_RANK];
        const clg_status status = clg_npz_reader_header(get(), i, &dtype, &rank, dims);
        if (status != CLG_OK) return error::last(status);
        return array_header{dtype, {dims, dims + rank}};
    }
    result<value> try_read(std::size_t i) const
    {
        return detail::take<value>(
            [&](clg_value **out) { return clg_npz_reader_read(get(), i, out); });
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    static npz_reader open(const zstring &path) { return try_open(path).value(); }
    array_header header(std::size_t i) const { return try_header(i).value(); }
    value read(std::size_t i) const { return try_read(i).value(); }
#endif
};

/* ---- .npy by rows ---------------------------------------------------------------------------- */

/* Reads rows of a .npy, which may be larger than memory. One thread at a time. */
class npy_reader : public handle<clg_npy_reader, clg_npy_reader_free>
{
  public:
    using handle::handle;
    static result<npy_reader> try_open(const zstring &path)
    {
        return detail::take<npy_reader>(
            [&](clg_npy_reader **out) { return clg_npy_reader_open(path.c_str(), out); });
    }
    clg_dtype dtype() const noexcept { return clg_npy_reader_dtype(get()); }
    /* dims()[0] is the number of rows. */
    dims_view dims() const noexcept
    {
        return {clg_npy_reader_dims(get()), clg_npy_reader_rank(get())};
    }
    /* Reads n_rows rows into data, whose elements must have the file's dtype. */
    template <class Range>
    result<void> try_read(std::int64_t first_row, std::size_t n_rows, Range &&data)
    {
        const auto to = detail::elements_of(data);
        if (dtype() != dtype_v<detail::element<Range>>)
            return detail::wrong_dtype("the file's", dtype(), dtype_v<detail::element<Range>>);
        return detail::check(
            clg_npy_reader_read(get(), first_row, n_rows, to.data(), to.size_bytes()));
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    static npy_reader open(const zstring &path) { return try_open(path).value(); }
    template <class Range> void read(std::int64_t first_row, std::size_t n_rows, Range &&data)
    {
        try_read(first_row, n_rows, data).value();
    }
#endif
};

/* Writes a .npy of any number of rows. Without commit() no file is left. */
class npy_writer : public handle<clg_npy_writer, clg_npy_writer_free>
{
  public:
    using handle::handle;
    npy_writer() noexcept = default; /* empty */
    /* dims[0] is ignored. */
    static result<npy_writer> try_open(const zstring &path, clg_dtype dtype, dims_view dims)
    {
        result<npy_writer> opened = detail::take<npy_writer>([&](clg_npy_writer **out) {
            return clg_npy_writer_open(path.c_str(), dtype, dims.size(), dims.data(), out);
        });
        if (opened) opened->dtype_ = dtype;
        return opened;
    }
    /* For the rows from first_row on of a file of dims[0] rows, of which other writers write the
     * rest. */
    static result<npy_writer> try_open_part(const zstring &path, clg_dtype dtype, dims_view dims,
                                            std::int64_t first_row)
    {
        result<npy_writer> opened = detail::take<npy_writer>([&](clg_npy_writer **out) {
            return clg_npy_writer_open_part(path.c_str(), dtype, dims.size(), dims.data(),
                                            first_row, out);
        });
        if (opened) opened->dtype_ = dtype;
        return opened;
    }
    template <class Range> result<void> try_append(std::size_t n_rows, const Range &data)
    {
        const auto from = detail::elements_of(data);
        if (dtype_ != CLG_DTYPE_NONE && dtype_ != dtype_v<detail::element<Range>>)
            return detail::wrong_dtype("the file's", dtype_, dtype_v<detail::element<Range>>);
        return detail::check(clg_npy_writer_append(get(), n_rows, from.data(), from.size_bytes()));
    }
    /* Waits until the rows appended so far are stored. */
    result<void> try_flush() { return detail::check(clg_npy_writer_flush(get())); }
    /* Completes the file and gives it its name. */
    result<void> try_commit() { return detail::check(clg_npy_writer_commit(get())); }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    static npy_writer open(const zstring &path, clg_dtype dtype, dims_view dims)
    {
        return try_open(path, dtype, dims).value();
    }
    static npy_writer open_part(const zstring &path, clg_dtype dtype, dims_view dims,
                                std::int64_t first_row)
    {
        return try_open_part(path, dtype, dims, first_row).value();
    }
    template <class Range> void append(std::size_t n_rows, const Range &data)
    {
        try_append(n_rows, data).value();
    }
    void flush() { try_flush().value(); }
    void commit() { try_commit().value(); }
#endif

  private:
    clg_dtype dtype_ = CLG_DTYPE_NONE; /* not known of a writer of the C interface */
};

/* ---- the cache of compiled programs ---------------------------------------------------------- */

/* A cache folder; nullopt: $CLG_CACHE_DIR, else the user's. Not opened: each call does. */
class cache
{
  public:
    using entry_list = list<clg_cache_entry, clg_cache_list_free>;
    explicit cache(std::optional<std::string> folder = std::nullopt) : folder_(std::move(folder)) {}
    result<std::string> try_path() const
    {
        return detail::take_text([&](char **text) { return clg_cache_path(c_folder(), text); });
    }
    result<entry_list> try_entries() const
    {
        return detail::take_list<entry_list>([&](clg_cache_entry **entries, std::size_t *n) {
            return clg_cache_list(c_folder(), entries, n);
        });
    }
    /* Remove entries, and return their number: all; those that match a pattern; the least recently
     * used ones until at most max_bytes remain (0: 256 MiB). */
    result<std::size_t> try_clear()
    {
        std::size_t n = 0;
        const clg_status status = clg_cache_clear(c_folder(), &n);
        return detail::check(status, n);
    }
    result<std::size_t> try_remove(const zstring &pattern)
    {
        std::size_t n = 0;
        const clg_status status = clg_cache_remove(c_folder(), pattern.c_str(), &n);
        return detail::check(status, n);
    }
    result<std::size_t> try_prune(std::uint64_t max_bytes = 0)
    {
        std::size_t n = 0;
        const clg_status status = clg_cache_prune(c_folder(), max_bytes, &n);
        return detail::check(status, n);
    }
    /* Writes all entries into one file; adds those of such a file, and returns their number. */
    result<void> try_pack(const zstring &file) const
    {
        return detail::check(clg_cache_pack(c_folder(), file.c_str()));
    }
    result<std::size_t> try_unpack(const zstring &file)
    {
        std::size_t n = 0;
        const clg_status status = clg_cache_unpack(c_folder(), file.c_str(), &n);
        return detail::check(status, n);
    }

#if CLGRAPH_EXCEPTIONS
    /* The same, with exceptions. */
    std::string path() const { return try_path().value(); }
    entry_list entries() const { return try_entries().value(); }
    std::size_t clear() { return try_clear().value(); }
    std::size_t remove(const zstring &pattern) { return try_remove(pattern).value(); }
    std::size_t prune(std::uint64_t max_bytes = 0) { return try_prune(max_bytes).value(); }
    void pack(const zstring &file) const { try_pack(file).value(); }
    std::size_t unpack(const zstring &file) { return try_unpack(file).value(); }
#endif

  private:
    const char *c_folder() const noexcept { return folder_ ? folder_->c_str() : nullptr; }
    std::optional<std::string> folder_;
};

#if CLGRAPH_EXCEPTIONS
/* The same, with exceptions. */
template <class Range> void write_file(const zstring &path, const Range &data)
{
    try_write_file(path, data).value();
}
inline std::vector<named_value> load_npz(const zstring &path) { return try_load_npz(path).value(); }
inline void save_npz(const zstring &path, view<const named_value> tensors)
{
    try_save_npz(path, tensors).value();
}
#endif

} // namespace clgraph

#endif
