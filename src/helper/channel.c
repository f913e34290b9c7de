/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the portable part of channel.h: reads and writes whole messages over a channel.
 */
#include "helper/channel.h"

#include "base/memory.h"

static bool read_all(int channel, void *data, size_t n_bytes)
{
    char *at = data;
    while (n_bytes > 0) {
        const int64_t n = channel_read(channel, at, n_bytes);
        if (n <= 0) return false;
        at += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

bool message_read(int channel, char **out_data, size_t *out_n_bytes)
{
    uint32_t n_bytes;
    *out_data = NULL;
    if (!read_all(channel, &n_bytes, sizeof n_bytes) || n_bytes > HELPER_MESSAGE_MAX_BYTES)
        return false;
    char *data = memory_alloc((size_t)n_bytes + 1);
    if (!data) return false;
    if (!read_all(channel, data, n_bytes)) {
        memory_free(data);
        return false;
    }
    *out_data = data;
    *out_n_bytes = n_bytes;
    return true;
}

static bool write_all(int channel, const void *data, size_t n_bytes)
{
    const char *at = data;
    while (n_bytes > 0) {
        const int64_t n = channel_write(channel, at, n_bytes);
        if (n <= 0) return false;
        at += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

bool message_pass_on(int channel, const char *data, size_t n_bytes)
{
    const uint32_t size = (uint32_t)n_bytes;
    return write_all(channel, &size, sizeof size) && write_all(channel, data, n_bytes);
}

bool message_write_reply(int channel, helper_reply *reply)
{
    strbuf t;
    strbuf_init(&t, HELPER_MESSAGE_MAX_BYTES);
    helper_write_reply(&t, reply);
    const bool sent = t.status == CLG_OK && write_all(channel, t.data, t.size_bytes);
    strbuf_deinit(&t);
    helper_reply_deinit(reply);
    return sent;
}
