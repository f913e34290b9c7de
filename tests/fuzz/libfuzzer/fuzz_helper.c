/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads messages between the library and its compile helper. The first byte is the kind of message;
 * what is read is written again, and must be read as the same bytes.
 */
#include "fuzz.h"

#include "base/memory.h"
#include "ocl/helper/helper_message.h"

#include <string.h>

static void hello(const char *data, size_t n)
{
    helper_hello h, again;
    strbuf t;
    if (!helper_read_hello(data, n, &h)) return;
    strbuf_init(&t, 0);
    helper_write_hello(&t, &h);
    fuzz_require(t.status == CLG_OK && t.size_bytes - sizeof(uint32_t) == n);
    fuzz_require(helper_read_hello(t.data + sizeof(uint32_t), n, &again));
    fuzz_require(strcmp(h.version, again.version) == 0 && h.limit_s == again.limit_s);
    strbuf_deinit(&t);
}

static void request(const char *data, size_t n)
{
    helper_request r, again;
    strbuf t;
    const uint32_t n_limits = helper_read_n_limits(data, n);
    fuzz_require(n_limits >= 1 && n_limits <= HELPER_MAX_LIMITS);
    if (!helper_read_request(data, n, &r)) return;
    strbuf_init(&t, 0);
    helper_write_request(&t, &r);
    fuzz_require(t.status == CLG_OK);
    fuzz_require(
        helper_read_request(t.data + sizeof(uint32_t), t.size_bytes - sizeof(uint32_t), &again));
    fuzz_require(r.args.count == again.args.count && r.source_bytes == again.source_bytes);
    memory_free(again.args.items);
    memory_free(r.args.items);
    strbuf_deinit(&t);
}

static void reply(const char *data, size_t n)
{
    helper_reply r, again;
    strbuf t;
    if (helper_read_reply(data, n, &r) != CLG_OK) return;
    strbuf_init(&t, 0);
    helper_write_reply(&t, &r);
    fuzz_require(t.status == CLG_OK && t.size_bytes - sizeof(uint32_t) == n);
    fuzz_require(helper_read_reply(t.data + sizeof(uint32_t), n, &again) == CLG_OK);
    fuzz_require(r.status == again.status && r.binary_bytes == again.binary_bytes);
    helper_reply_deinit(&again);
    helper_reply_deinit(&r);
    strbuf_deinit(&t);
}

void fuzz_helper(const uint8_t *data, size_t size_bytes)
{
    static void (*const kinds[])(const char *, size_t) = {hello, request, reply};
    if (size_bytes > 0) kinds[data[0] % 3]((const char *)data + 1, size_bytes - 1);
}
