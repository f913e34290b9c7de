/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes WebP images by libwebp. Animations are refused.
 */
#include "images/decoder.h"

#ifdef CLG_HAS_WEBP
#include <webp/decode.h>

images_code decode_webp(image_job *j)
{
    static const char damaged[] = "is damaged or of an unsupported format (WebP)";
    const images_request *r = j->request;
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(r->bytes, r->n_bytes, &features) != VP8_STATUS_OK)
        return image_fail(j, damaged);
    if (features.has_animation) return image_fail(j, "is an animation, which is not read");
    images_code code = image_size(j, (uint64_t)features.width, (uint64_t)features.height);
    if (code != IMAGES_OK || image_wants_size(j)) return code;
    const uint64_t told = 8 + ((uint64_t)r->bytes[4] | (uint64_t)r->bytes[5] << 8 |
                               (uint64_t)r->bytes[6] << 16 | (uint64_t)r->bytes[7] << 24);
    if (told > r->n_bytes) return image_fail_cut(j);
    const int channels = features.has_alpha && r->channels == 4 ? 4 : 3;
    code = image_pixels(j, channels, false);
    if (code != IMAGES_OK) return code;
    const int stride = features.width * channels;
    const size_t size_bytes = (size_t)stride * (size_t)features.height;
    uint8_t *to = j->result->pixels;
    return (channels == 4 ? WebPDecodeRGBAInto(r->bytes, r->n_bytes, to, size_bytes, stride)
                          : WebPDecodeRGBInto(r->bytes, r->n_bytes, to, size_bytes, stride))
               ? IMAGES_OK
               : image_fail(j, damaged);
}
#endif
