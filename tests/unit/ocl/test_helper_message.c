/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests messages of the compile helper: decoding restores every encoded field, and damaged messages
 * are rejected.
 */
#include "support/unit.h"

#include "base/memory.h"
#include "ocl/helper/helper_message.h"

#include <string.h>

#define SIZE_BYTES sizeof(uint32_t)

TEST(message__hello)
{
    const helper_hello hello = {"a version", 3, {5, 7}, 60, UINT64_C(1) << 40};
    helper_hello back;
    strbuf t;
    strbuf_init(&t, 0);
    helper_write_hello(&t, &hello);
    assert_ok(t.status);
    assert_true(helper_read_hello(t.data + SIZE_BYTES, t.size_bytes - SIZE_BYTES, &back));
    assert_string_equal(back.version, "a version");
    assert_int_equal(back.device_index, 3);
    assert_int_equal(back.identity.low, 5);
    assert_int_equal(back.identity.high, 7);
    assert_int_equal(back.limit_s, 60);
    assert_true(back.max_memory_bytes == UINT64_C(1) << 40);
    for (size_t n = 0; n < t.size_bytes - SIZE_BYTES; n++)
        assert_false(helper_read_hello(t.data + SIZE_BYTES, n, &back));
    strbuf_deinit(&t);
}

static void make_request(helper_request *r)
{
    static const char *const source = "kernel";
    static const double number = 2.5;
    *r = (helper_request){.quirks = QUIRK_SLOW_DECLARATIONS,
                          .n_limits = 3,
                          .name = "n",
                          .entry = "e",
                          .source = source,
                          .source_bytes = strlen(source),
                          .has_launch = true,
                          .launch = {2, true, {64, 32, 1}, {8, 4, 1}, {0, 16, 0}},
                          .content_arg = HELPER_NO_ARG,
                          .wants_binary = true};
    assert_ok(kernel_args_set_buffer(&r->args, 0, r, 0, 4096, NULL));
    assert_ok(kernel_args_set_value(&r->args, 1, sizeof number, &number));
    assert_ok(kernel_args_set_value(&r->args, 3, 256, NULL));
    assert_ok(kernel_args_set_buffer(&r->args, 4, r, 0, 4, "abc"));
}

TEST(message__request)
{
    helper_request request, back;
    strbuf t;
    double number;
    make_request(&request);
    strbuf_init(&t, 0);
    helper_write_request(&t, &request);
    const char *data = t.data + SIZE_BYTES;
    const size_t n_bytes = t.size_bytes - SIZE_BYTES;
    assert_true(helper_read_request(data, n_bytes, &back));
    assert_int_equal(back.quirks, QUIRK_SLOW_DECLARATIONS);
    assert_int_equal(back.n_limits, 3);
    assert_string_equal(back.source, "kernel");
    assert_int_equal(back.source_bytes, 6);
    assert_int_equal(back.launch.global[1], 32);
    assert_int_equal(back.launch.local[0], 8);
    assert_int_equal(back.launch.offset[1], 16);
    assert_int_equal(back.content_arg, HELPER_NO_ARG);
    assert_int_equal(back.args.count, 5);
    assert_int_equal(back.args.items[0].kind, KERNEL_ARG_BUFFER);
    assert_ptr_equal(back.args.items[0].buffer, back.args.items[4].buffer);
    memcpy(&number, back.args.bytes + back.args.items[1].at, sizeof number);
    assert_true(number == 2.5);
    assert_int_equal(back.args.items[2].kind, KERNEL_ARG_UNSET);
    assert_int_equal(back.args.items[3].kind, KERNEL_ARG_LOCAL);
    assert_memory_equal(back.args.bytes + back.args.items[4].at, "abc", 4);
    memory_free(back.args.items);
    for (size_t n = 0; n < n_bytes; n++) assert_false(helper_read_request(data, n, &back));
    kernel_args_deinit(&request.args);
    strbuf_deinit(&t);
}

TEST(message__gemm)
{
    const helper_request request = {.n_limits = 7,
                                    .content_arg = HELPER_NO_ARG,
                                    .has_gemm = true,
                                    .gemm = {.m = 3,
                                             .n = 4,
                                             .k = INT64_C(1) << 40,
                                             .lda = 5,
                                             .batch = 2,
                                             .stride_c = 12,
                                             .offset_b = 9,
                                             .trans_b = true,
                                             .alpha = -2.5f,
                                             .beta = 1},
                                    .blas = "/lib/libclblast.so 1 2"};
    helper_request back;
    strbuf t;
    strbuf_init(&t, 0);
    helper_write_request(&t, &request);
    const char *data = t.data + SIZE_BYTES;
    const size_t n_bytes = t.size_bytes - SIZE_BYTES;
    assert_int_equal(helper_read_n_limits(data, n_bytes), 7);
    assert_int_equal(helper_read_n_limits(data, 3), 1);
    assert_true(helper_read_request(data, n_bytes, &back));
    assert_true(back.has_gemm);
    assert_int_equal(back.gemm.m, 3);
    assert_int_equal(back.gemm.n, 4);
    assert_true(back.gemm.k == INT64_C(1) << 40);
    assert_int_equal(back.gemm.lda, 5);
    assert_int_equal(back.gemm.batch, 2);
    assert_int_equal(back.gemm.stride_c, 12);
    assert_int_equal(back.gemm.offset_b, 9);
    assert_false(back.gemm.trans_a);
    assert_true(back.gemm.trans_b);
    assert_true(back.gemm.alpha == -2.5f && back.gemm.beta == 1);
    assert_string_equal(back.blas, "/lib/libclblast.so 1 2");
    memory_free(back.args.items);
    for (size_t n = 0; n < n_bytes; n++) assert_false(helper_read_request(data, n, &back));
    strbuf_deinit(&t);
}

TEST(message__limits)
{
    assert_true(helper_limit_ns(60, 1) == UINT64_C(60000000000));
    assert_true(helper_limit_ns(60, 5) == UINT64_C(300000000000));
    assert_true(helper_limit_ns(UINT32_MAX, 64) == UINT64_C(536870911000000000));
}

/* Checks that a message with a flipped bit is either rejected or decoded, and that the decoder does
 * not read beyond its end. */
TEST(message__damaged)
{
    helper_request request, back;
    strbuf t;
    make_request(&request);
    strbuf_init(&t, 0);
    helper_write_request(&t, &request);
    const size_t n_bytes = t.size_bytes - SIZE_BYTES;
    char *copy = memory_alloc(n_bytes); /* of exact size, for the address sanitizer */
    assert_non_null(copy);
    for (size_t i = 0; i < n_bytes; i++)
        for (int bit = 0; bit < 8; bit += 7) {
            memcpy(copy, t.data + SIZE_BYTES, n_bytes);
            copy[i] ^= (char)(1 << bit);
            if (helper_read_request(copy, n_bytes, &back)) memory_free(back.args.items);
        }
    memory_free(copy);
    kernel_args_deinit(&request.args);
    strbuf_deinit(&t);
}

TEST(message__reply)
{
    helper_reply reply = {.outcome = HELPER_CRASHED, .status = -14, .signal = 6}, back;
    strbuf t;
    reply.text = memory_strdup("last words");
    reply.binary = memory_strdup("bin");
    reply.binary_bytes = 3;
    strbuf_init(&t, 0);
    helper_write_reply(&t, &reply);
    assert_ok(helper_read_reply(t.data + SIZE_BYTES, t.size_bytes - SIZE_BYTES, &back));
    assert_int_equal(back.outcome, HELPER_CRASHED);
    assert_int_equal(back.status, -14);
    assert_int_equal(back.signal, 6);
    assert_string_equal(back.text, "last words");
    assert_memory_equal(back.binary, "bin", 3);
    assert_null(back.content);
    helper_reply_deinit(&back);
    for (size_t n = 0; n < t.size_bytes - SIZE_BYTES; n++)
        assert_error(helper_read_reply(t.data + SIZE_BYTES, n, &back), CLG_ERROR_IO, "damaged");
    helper_reply_deinit(&reply);
    strbuf_deinit(&t);
}
