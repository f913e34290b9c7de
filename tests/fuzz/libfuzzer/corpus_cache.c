/* SPDX-License-Identifier: Apache-2.0
 *
 * Corpora of the targets cache, tuning, records and helper.
 */
#include "corpus.h"
#include "fuzz.h"

#include "base/memory.h"
#include "ocl/cache/cache_entry.h"
#include "ocl/helper/helper_message.h"

#include <stdlib.h>
#include <string.h>

/* ---- cache ----------------------------------------------------------------------------------- */

static void make_cache(void)
{
    char pack[2048] = "CLGPACK1";
    size_t n = 16;
    static const char *const payloads[] = {"", "a payload", "clgraph choices 1\n"};
    for (size_t i = 0; i < 3; i++) {
        size_t size_bytes;
        char *entry = cache_entry_make((hash128){.low = i + 1, .high = 7}, "what", payloads[i],
                                       strlen(payloads[i]), &size_bytes);
        fuzz_require(entry);
        memcpy(pack + n, entry, size_bytes);
        n += size_bytes;
        if (i < 2) corpus_file("cache", i ? "entry" : "entry_empty", entry, size_bytes);
        entry[20] ^= 1; /* the checksum */
        if (i == 2) corpus_file("cache", "entry_damaged", entry, size_bytes);
        entry[24] = 2; /* the version */
        if (i == 2) corpus_file("cache", "entry_newer", entry, size_bytes);
        memory_free(entry);
    }
    pack[8] = 3; /* entries */
    corpus_file("cache", "pack", pack, n);
    corpus_file("cache", "pack_truncated", pack, n - 3);
    pack[8] = 4;
    corpus_file("cache", "pack_count", pack, n);
    corpus_file("cache", "pack_empty", "CLGPACK1\0\0\0\0\0\0\0\0", 16);
    corpus_text("cache", "short", "CLGSTORE");
    corpus_text("cache", "name", "0123456789abcdef0123456789abcdef.clb");
    corpus_text("cache", "name_left_over", "0123456789abcdef0123456789abcdef.clb.tmp.1.2");
}

/* ---- helper ---------------------------------------------------------------------------------- */

/* Writes the message in t after the byte of its kind, without its size. */
static void message(const char *name, char kind, strbuf *t)
{
    fuzz_require(t->status == CLG_OK);
    t->data[sizeof(uint32_t) - 1] = kind;
    corpus_file("helper", name, t->data + sizeof(uint32_t) - 1,
                t->size_bytes - sizeof(uint32_t) + 1);
    strbuf_deinit(t);
    strbuf_init(t, 0);
}

static void make_request(const char *name, strbuf *t, bool has_gemm)
{
    static const double number = 2.5;
    helper_request r = {.n_limits = 3, .name = "n", .entry = "e", .source = "kernel"};
    r.source_bytes = strlen(r.source);
    r.has_launch = true;
    r.launch = (helper_launch){2, true, {64, 32, 1}, {8, 4, 1}, {0, 16, 0}};
    r.content_arg = HELPER_NO_ARG;
    r.wants_binary = true;
    r.has_gemm = has_gemm;
    r.gemm = (ocl_gemm){.m = 2, .n = 3, .k = 4, .batch = 1, .alpha = 1};
    r.blas = has_gemm ? "CLBlast" : NULL;
    fuzz_require(kernel_args_set_value(&r.args, 0, sizeof number, &number) == CLG_OK);
    /* The address identifies the buffer: any constant keeps the file the same. */
    const void *const buffer = (const void *)(uintptr_t)4096; // NOLINT(performance-no-int-to-ptr)
    fuzz_require(kernel_args_set_buffer(&r.args, 1, buffer, 0, 4, "abc") == CLG_OK);
    fuzz_require(kernel_args_set_value(&r.args, 2, 256, NULL) == CLG_OK);
    fuzz_require(kernel_args_set_buffer(&r.args, 3, buffer, 0, 64, NULL) == CLG_OK);
    helper_write_request(t, &r);
    kernel_args_deinit(&r.args);
    message(name, 1, t);
}

static void make_helper(void)
{
    const helper_hello hello = {"a version", 3, {5, 7}, 60, UINT64_C(1) << 40};
    helper_reply reply = {.outcome = HELPER_REFUSED, .status = -3, .signal = 11};
    char text[] = "the driver's text", binary[] = "binary";
    strbuf t;
    strbuf_init(&t, 0);
    helper_write_hello(&t, &hello);
    message("hello", 0, &t);
    make_request("request", &t, false);
    make_request("request_gemm", &t, true);
    helper_write_reply(&t, &reply);
    message("reply_empty", 2, &t);
    reply.text = text;
    reply.binary = reply.content = binary;
    reply.binary_bytes = reply.content_bytes = sizeof binary;
    helper_write_reply(&t, &reply);
    message("reply", 2, &t);
    strbuf_deinit(&t);
    static const char zeros[400] = {1};
    corpus_file("helper", "request_zeros", zeros, sizeof zeros);
    corpus_file("helper", "reply_cut", "\2\0\0", 3);
    corpus_file("helper", "hello_cut", "\0\x09\0\0\0\0\0\0\0abc", 12);
}

/* ---- texts ----------------------------------------------------------------------------------- */

#define TUNING "clgraph choices 1\n"
#define RECORDS "clgraph selftest 1\n"
#define KEY "0123456789abcdef0123456789abcdef"

static void make_texts(void)
{
    corpus_text("tuning", "two",
                TUNING "winograd_4x4\tConv simd float32[1,64] > 5d1e\n"
                       "gemm\tGemm simt float32[2,3]c float32[3]s > 00ff\n");
    corpus_text("tuning", "replaced", TUNING "a\tp\nb\tp\nb\tq");
    corpus_text("tuning", "none", TUNING);
    corpus_text("tuning", "no_tab", TUNING "word\n");
    corpus_text("tuning", "no_problem", TUNING "word\t\n");
    corpus_text("tuning", "no_name", TUNING "\tproblem\n");
    corpus_text("tuning", "late_tab", TUNING "word\nother\tproblem\n");
    corpus_text("tuning", "newer", "clgraph choices 2\na\tb\n");
    corpus_text("tuning", "empty", "");
    corpus_text("records", "two",
                RECORDS "passed " KEY " 3.1e-07 4e-06 winograd_2x2 simd\n"
                        "failed f" KEY " inf 4e-06 gemm blas\n");
    corpus_text("records", "failed", RECORDS "failed " KEY " inf 4e-06 gemm blas\n");
    corpus_text("records", "twice", RECORDS "failed " KEY " nan 1 a b\npassed " KEY " 0 1 a b");
    corpus_text("records", "none", RECORDS);
    corpus_text("records", "word", RECORDS "maybe " KEY " 0 0 a b\n");
    corpus_text("records", "few", RECORDS "passed " KEY " 0 0 a\n");
    corpus_text("records", "many", RECORDS "passed " KEY " 0 0 a b c\n");
    corpus_text("records", "long", RECORDS "passed " KEY KEY KEY " 0 0 a b\n");
    corpus_text("records", "newer", "clgraph selftest 2\n");
}

void corpus_cache(void)
{
    make_cache();
    make_helper();
    make_texts();
}
