/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the memory traffic of a decoder's layer for one token, as its launches declare it: weights
 * of 4 bits are read as they are, and the caches in place and as far as they are used. The least
 * that can be read is the packed weights with their scales and the used positions of the caches;
 * all accesses together may be 1.15 times that.
 */
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/ocl_platforms.h"
#include "support/fixtures/pocl_context.h"
#include "support/fixtures/sized_data.h"
#include "support/literals.h"

#include <clgraph/inspect.h>

#include <stdio.h>

enum {
    WIDTH = 1024,
    HEADS = 8,
    KV_HEADS = 2,
    D = WIDTH / HEADS,
    ROOM = 512, /* positions of a cache */
    USED = 17,  /* of them, with the new token's */
    INNER = 2 * WIDTH,
    BLOCK = 32,
    CACHE = KV_HEADS * ROOM * D
};

/* A product of one row by weights of 4 bits, [k] -> [n]. */
typedef struct product {
    const char *name, *from;
    int64_t k, n;
} product;

static const product products[] = {{"qkv", "x", WIDTH, (HEADS + 2 * KV_HEADS) * D},
                                   {"out", "attention", WIDTH, WIDTH},
                                   {"up", "out", WIDTH, INNER},
                                   {"down", "up", INNER, WIDTH}};

static int64_t weight_bytes(const product *p)
{
    return p->k * p->n / 2 + p->k * p->n / BLOCK * (int64_t)sizeof(float);
}

static void add_product(clg_builder *g, const product *p)
{
    static uint8_t packed[WIDTH * INNER / 2];
    static float scales[WIDTH * INNER / BLOCK];
    char weights[16], scale[16];
    (void)snprintf(weights, sizeof weights, "%s.q", p->name);
    (void)snprintf(scale, sizeof scale, "%s.s", p->name);
    for (size_t i = 0; i < sizeof packed; i++) packed[i] = (uint8_t)(i * 29 % 251);
    for (size_t i = 0; i < WIDTH * INNER / BLOCK; i++) scales[i] = 0.001F * (float)(1 + i % 7);
    assert_ok(clg_builder_constant(g, weights, CLG_UINT8, 3, DIMS(p->n, p->k / BLOCK, BLOCK / 2),
                                   packed, (size_t)(p->n * p->k / 2)));
    assert_ok(clg_builder_constant(g, scale, CLG_FLOAT32, 1, DIMS(p->n * p->k / BLOCK), scales,
                                   (size_t)(p->n * p->k / BLOCK) * sizeof *scales));
    assert_ok(clg_builder_node(g, "com.microsoft", "MatMulNBits", p->name, 3,
                               NAMES(p->from, weights, scale), 1, NAMES(p->name)));
    assert_ok(clg_builder_attribute_int(g, "K", p->k));
    assert_ok(clg_builder_attribute_int(g, "N", p->n));
    assert_ok(clg_builder_attribute_int(g, "bits", 4));
    assert_ok(clg_builder_attribute_int(g, "block_size", BLOCK));
}

static clg_session *open_layer(clg_context *on, clg_kernel_class kernels)
{
    clg_session_options options = CLG_SESSION_OPTIONS_INIT;
    options.kernels = kernels;
    clg_builder *g = start_graph();
    assert_ok(clg_builder_input(g, "x", CLG_FLOAT32, 3, DIMS(1, 1, WIDTH), NULL));
    for (int i = 0; i < 2; i++)
        assert_ok(clg_builder_input(g, NAMES("past_key", "past_value")[i], CLG_FLOAT32, 4,
                                    DIMS(1, KV_HEADS, ROOM, D), NULL));
    assert_ok(clg_builder_input(g, "lengths", CLG_INT32, 1, DIMS(1), NULL));
    assert_ok(clg_builder_input(g, "total", CLG_INT32, 1, DIMS(1), NULL));
    add_product(g, &products[0]);
    assert_ok(clg_builder_node(g, "com.microsoft", "GroupQueryAttention", "gqa", 7,
                               NAMES("qkv", "", "", "past_key", "past_value", "lengths", "total"),
                               3, NAMES("attention", "present_key", "present_value")));
    assert_ok(clg_builder_attribute_int(g, "num_heads", HEADS));
    assert_ok(clg_builder_attribute_int(g, "kv_num_heads", KV_HEADS));
    for (size_t i = 1; i < sizeof products / sizeof *products; i++) add_product(g, &products[i]);
    for (int i = 0; i < 3; i++)
        assert_ok(clg_builder_output(g, NAMES("down", "present_key", "present_value")[i]));
    clg_session *s = build_session(on, g, &options);
    assert_ok(clg_session_link(s, "present_key", "past_key"));
    assert_ok(clg_session_link(s, "present_value", "past_value"));
    return s;
}

static void run_token(clg_session *s)
{
    static float x[WIDTH], cache[CACHE];
    const int32_t before = USED - 1, total = USED;
    for (int i = 0; i < WIDTH; i++) x[i] = (float)(i % 13 - 6) / 8;
    for (int i = 0; i < CACHE; i++) cache[i] = (float)(i % 17 - 8) / 16;
    assert_ok(sized_input(s, "x", CLG_FLOAT32, 3, DIMS(1, 1, WIDTH), x));
    assert_ok(sized_input(s, "past_key", CLG_FLOAT32, 4, DIMS(1, KV_HEADS, ROOM, D), cache));
    assert_ok(sized_input(s, "past_value", CLG_FLOAT32, 4, DIMS(1, KV_HEADS, ROOM, D), cache));
    assert_ok(sized_input(s, "lengths", CLG_INT32, 1, DIMS(1), &before));
    assert_ok(sized_input(s, "total", CLG_INT32, 1, DIMS(1), &total));
    assert_ok(clg_session_run(s));
}

/* Returns the bytes that the launches of the last run access. */
static double accessed(clg_session *s)
{
    clg_step_profile *steps;
    size_t n;
    double bytes = 0;
    assert_ok(clg_session_profile(s, &steps, &n));
    for (size_t i = 0; i < n; i++) {
        if (steps[i].bytes <= 0) fail_msg("%s declares nothing", steps[i].kernel);
        bytes += steps[i].bytes;
    }
    clg_session_profile_free(steps, n);
    return bytes;
}

TEST(token_bytes__are_those_of_weights_and_used_caches)
{
    const clg_kernel_class classes[] = {CLG_KERNELS_SIMD, CLG_KERNELS_SIMT};
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *profiled;
    options.profiling = true;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &profiled));
    int64_t least = (int64_t)2 * KV_HEADS * USED * D * (int64_t)sizeof(float);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        least += weight_bytes(&products[i]);
    for (int c = 0; c < 2; c++) {
        clg_session *s = open_layer(profiled, classes[c]);
        run_token(s); /* packs the weights */
        run_token(s);
        const double ratio = accessed(s) / (double)least;
        print_message("%.3f of the least\n", ratio);
        assert_true(ratio >= 1 && ratio <= 1.15);
        clg_session_free(s);
    }
    clg_context_free(profiled);
}
