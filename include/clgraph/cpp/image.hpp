/* SPDX-License-Identifier: Apache-2.0
 *
 * Images as tensors (clgraph/image.h). clgraph.hpp includes this header.
 */
#ifndef CLGRAPH_CPP_IMAGE_HPP
#define CLGRAPH_CPP_IMAGE_HPP

#include <clgraph/cpp/value.hpp>
#include <clgraph/image.h>

namespace clgraph
{

/* Members as in clg_image_options. */
struct image_options {
    int channels = 0;
    bool keep_16_bits = false;
    std::uint64_t max_pixels = 0;

    clg_image_options c_options() const noexcept
    {
        clg_image_options c = CLG_IMAGE_OPTIONS_INIT;
        c.channels = channels;
        c.keep_16_bits = keep_16_bits;
        c.max_pixels = max_pixels;
        return c;
    }
};

/* What the header of an image says. */
struct image_header {
    const char *format; /* "PNG"; static */
    std::int64_t width, height;
};

inline result<image_header> try_read_image_header(view<const unsigned char> file,
                                                  const image_options &options = {})
{
    image_header header{};
    const clg_image_options c = options.c_options();
    const clg_status status =
        clg_image_size(file.data(), file.size(), &c, &header.format, &header.width, &header.height);
    return detail::check(status, header);
}

/* An image in memory as [height, width, channels]. */
inline result<value> try_decode_image(view<const unsigned char> file,
                                      const image_options &options = {})
{
    const clg_image_options c = options.c_options();
    return detail::take<value>(
        [&](clg_value **out) { return clg_image_decode(file.data(), file.size(), &c, out); });
}

#if CLGRAPH_EXCEPTIONS
inline image_header read_image_header(view<const unsigned char> file,
                                      const image_options &options = {})
{
    return try_read_image_header(file, options).value();
}
inline value decode_image(view<const unsigned char> file, const image_options &options = {})
{
    return try_decode_image(file, options).value();
}
#endif

} // namespace clgraph

#endif
