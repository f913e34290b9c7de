/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares products of weights after DequantizeLinear, which the pass `nbits` keeps packed, with
 * products in double of weights that the test draws, and checks by the plan which forms it takes.
 *
 * Tolerance, relative to the sum of the products' magnitudes: float32 1e-5, as in test_nbits.c.
 */
/* ctest: timeout 900 */
#include "support/cases/run_node.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ALL (-1) /* qdq_case.block: one scale; 0: by column */

typedef struct qdq_case {
    clg_dtype dtype; /* of the weights */
    int64_t m, n, k, block;
    bool by_row;     /* the weights are [n,k], and Transpose or transB makes [k,n] of them */
    bool has_zero;   /* zero points */
    bool gemm;       /* Gemm, with transB for by_row, and a bias */
    bool wrong_axis; /* blocks, or the list of scales, are along the other axis */
    bool packed;     /* the pass takes it */
} qdq_case;

typedef struct qdq_data {
    qdq_case c;
    clg_model *model;
    float *a;
    double *y, *size; /* size: sums of the products' magnitudes */
} qdq_data;

static int bits_of(clg_dtype dtype) { return dtype == CLG_INT4 || dtype == CLG_UINT4 ? 4 : 8; }

static int64_t count_blocks(const qdq_case *c)
{
    return c->block > 0 ? (c->k + c->block - 1) / c->block : 1;
}

/* Returns an integer of the dtype. */
static int64_t draw(double random, clg_dtype dtype)
{
    const int64_t n = (int64_t)1 << bits_of(dtype);
    const int64_t v = (int64_t)floor((random + 1) / 2.001 * (double)n);
    return dtype == CLG_INT4 || dtype == CLG_INT8 ? v - n / 2 : v;
}

static void put(uint8_t *bytes, int64_t at, int64_t number, clg_dtype dtype)
{
    if (bits_of(dtype) == 8)
        bytes[at] = (uint8_t)number;
    else
        bytes[at / 2] |= (uint8_t)((number & 15) << (at % 2 * 4));
}

static void add_constant(clg_builder *b, const char *name, clg_dtype dtype, size_t rank,
                         const int64_t *dims, const int64_t *numbers)
{
    const int64_t n = run_node_count((int)rank, dims);
    uint8_t *bytes = (uint8_t *)run_node_zeros(n);
    for (int64_t i = 0; i < n; i++) put(bytes, i, numbers[i], dtype);
    assert_ok(clg_builder_constant(b, name, dtype, rank, dims, bytes,
                                   (size_t)((n * bits_of(dtype) + 7) / 8)));
}

/* Returns where the scale of weight (n, k) is in the list of scales. */
static int64_t scale_index(const qdq_case *c, int64_t n, int64_t k)
{
    if (c->block == ALL) return 0;
    if (c->block == 0) return c->wrong_axis ? k : n;
    if (c->wrong_axis) { /* blocks along n: [ceil(n/block), k] or its transpose */
        const int64_t blocks = (c->n + c->block - 1) / c->block;
        return c->by_row ? n / c->block * c->k + k : k * blocks + n / c->block;
    }
    return c->by_row ? n * count_blocks(c) + k / c->block : k / c->block * c->n + n;
}

/* Sets the shape of the scales; returns its rank. */
static size_t scale_dims(const qdq_case *c, int64_t dims[2])
{
    const int64_t along_k = c->wrong_axis ? c->k : count_blocks(c),
                  along_n =
                      c->wrong_axis ? (c->n + c->block - 1) / (c->block > 0 ? c->block : 1) : c->n;
    dims[0] = c->wrong_axis ? c->k : c->n;
    if (c->block <= 0) return c->block == ALL ? 0 : 1;
    dims[0] = c->by_row ? along_n : along_k;
    dims[1] = c->by_row ? along_k : along_n;
    return 2;
}

/* Adds the nodes that make "w", a matrix [k,n], or [n,k] for Gemm with transB. */
static void add_weights(clg_builder *b, const qdq_case *c, const int64_t *q, const float *scales,
                        const int64_t *zeros)
{
    const int64_t dims[2] = {c->by_row ? c->n : c->k, c->by_row ? c->k : c->n};
    int64_t s_dims[2];
    const size_t rank = scale_dims(c, s_dims);
    const bool transpose = c->by_row && !c->gemm;
    const int k_axis = c->by_row ? 1 : 0, axis = c->block > 0 ? k_axis : 1 - k_axis;
    add_constant(b, "q", c->dtype, 2, dims, q);
    assert_ok(clg_builder_constant(b, "scale", CLG_FLOAT32, rank, s_dims, scales,
                                   (size_t)run_node_count((int)rank, s_dims) * sizeof *scales));
    if (c->has_zero) add_constant(b, "zero", c->dtype, rank, s_dims, zeros);
    assert_ok(clg_builder_node(b, NULL, "DequantizeLinear", NULL, c->has_zero ? 3 : 2,
                               (const char *const[]){"q", "scale", "zero"}, 1,
                               (const char *const[]){transpose ? "d" : "w"}));
    assert_ok(clg_builder_attribute_int(b, "axis", c->wrong_axis ? 1 - axis : axis));
    if (c->block > 0) assert_ok(clg_builder_attribute_int(b, "block_size", c->block));
    if (!transpose) return;
    assert_ok(clg_builder_node(b, NULL, "Transpose", NULL, 1, (const char *const[]){"d"}, 1,
                               (const char *const[]){"w"}));
}

static clg_model *build(const qdq_case *c, const int64_t *q, const float *scales,
                        const int64_t *zeros, const float *bias)
{
    clg_builder *b;
    clg_model *model;
    assert_ok(clg_builder_create(21, &b));
    assert_ok(clg_builder_input(b, "a", CLG_FLOAT32, 2, (int64_t[]){c->m, c->k}, NULL));
    add_weights(b, c, q, scales, zeros);
    if (c->gemm)
        assert_ok(
            clg_builder_constant(b, "c", CLG_FLOAT32, 1, &c->n, bias, (size_t)c->n * sizeof *bias));
    assert_ok(clg_builder_node(b, NULL, c->gemm ? "Gemm" : "MatMul", NULL, c->gemm ? 3 : 2,
                               (const char *const[]){"a", "w", "c"}, 1,
                               (const char *const[]){"y"}));
    if (c->gemm) assert_ok(clg_builder_attribute_int(b, "transB", c->by_row));
    assert_ok(clg_builder_output(b, "y"));
    assert_ok(clg_builder_build(b, &model));
    clg_builder_free(b);
    return model;
}

/* Draws the numbers, computes the product in double, and builds the model. */
static qdq_data make(qdq_case c)
{
    const int64_t n_weights = c.n * c.k, n_scales = n_weights; /* more than there are */
    const double *random = run_node_random(n_weights), *s = run_node_random(n_scales),
                 *z = run_node_random(n_scales), *a = run_node_random(c.m * c.k),
                 *bias = run_node_random(c.n);
    int64_t *q = (int64_t *)run_node_zeros(n_weights), *zeros = (int64_t *)run_node_zeros(n_scales);
    float *scales = (float *)run_node_zeros(n_scales), *c_bias = (float *)run_node_zeros(c.n);
    qdq_data d = {.c = c,
                  .a = (float *)run_node_zeros(c.m * c.k),
                  .y = run_node_zeros(c.m * c.n),
                  .size = run_node_zeros(c.m * c.n)};
    for (int64_t i = 0; i < c.m * c.k; i++) d.a[i] = (float)a[i];
    for (int64_t i = 0; i < c.n; i++) c_bias[i] = (float)bias[i];
    for (int64_t i = 0; i < n_scales; i++) {
        scales[i] = (float)s[i];
        zeros[i] = c.has_zero ? draw(z[i], c.dtype) : 0;
    }
    for (int64_t i = 0; i < n_weights; i++) q[i] = draw(random[i], c.dtype);
    for (int64_t i = 0; i < c.m * c.n; i++) {
        d.y[i] = c.gemm ? bias[i % c.n] : 0;
        for (int64_t k = 0; k < c.k; k++) {
            const int64_t n = i % c.n, at = scale_index(&c, n, k);
            const double w = (double)(q[c.by_row ? n * c.k + k : k * c.n + n] - zeros[at]) * s[at];
            d.y[i] += a[i / c.n * c.k + k] * w;
            d.size[i] += fabs(a[i / c.n * c.k + k] * w);
        }
    }
    d.model = build(&c, q, scales, zeros, c_bias);
    return d;
}

static void check_place(clg_context *context, const clg_session_options *options, const char *name,
                        void *user)
{
    const qdq_data *d = user;
    const qdq_case *c = &d->c;
    clg_session *s;
    clg_value *y;
    char *plan;
    assert_ok(clg_session_create(context, d->model, options, &s));
    assert_ok(clg_session_plan_text(s, &plan));
    if ((strstr(plan, "MatMulNBits") != NULL) != c->packed)
        fail_msg("%s: %s\n%s", name, c->packed ? "not packed" : "packed", plan);
    clg_text_free(plan);
    assert_ok(clg_session_set_input_data(s, "a", CLG_FLOAT32, 2, (int64_t[]){c->m, c->k}, d->a,
                                         (size_t)(c->m * c->k) * sizeof *d->a));
    assert_ok(clg_session_run(s));
    assert_ok(clg_session_get_output(s, "y", &y));
    for (int64_t i = 0; i < c->m * c->n; i++) {
        const double got = (double)((const float *)clg_value_data(y))[i];
        if (!(fabs(got - d->y[i]) <= 1e-5 * (1 + d->size[i])))
            fail_msg("%s: element %d is %g, not %g", name, (int)i, got, d->y[i]);
    }
    clg_value_free(y);
    clg_session_free(s);
}

static void check(qdq_case c)
{
    qdq_data d = make(c);
    run_node_each_case(check_place, &d);
    clg_model_free(d.model);
}

TEST(nbits_qdq__blocks)
{
    const clg_dtype s4 = CLG_INT4, u4 = CLG_UINT4, s8 = CLG_INT8, u8 = CLG_UINT8;
    check((qdq_case){s4, 3, 33, 64, 32, .packed = true});
    check((qdq_case){s4, 1, 7, 100, 16, .has_zero = true, .packed = true});
    check((qdq_case){u4, 2, 5, 75, 32, .packed = true});
    check((qdq_case){u4, 17, 9, 48, 16, .has_zero = true, .packed = true});
    check((qdq_case){s8, 4, 6, 70, 32, .has_zero = true, .packed = true});
    check((qdq_case){u8, 1, 3, 37, 16, .has_zero = true, .packed = true});
    check((qdq_case){u8, 2, 3, 37, 16, .packed = true});
    check((qdq_case){s4, 2, 5, 99, 48, .packed = true}); /* not a power of two */
}

TEST(nbits_qdq__transposed)
{
    check((qdq_case){CLG_INT4, 3, 11, 65, 32, .by_row = true, .packed = true});
    check((qdq_case){CLG_UINT4, 1, 6, 96, 32, .by_row = true, .has_zero = true, .packed = true});
    check((qdq_case){CLG_INT8, 2, 5, 40, 16, .by_row = true, .has_zero = true, .packed = true});
}

TEST(nbits_qdq__gemm)
{
    check((qdq_case){CLG_INT4, 3, 8, 64, 32, .gemm = true, .packed = true});
    check((qdq_case){CLG_UINT4, 5, 7, 45, 16, .by_row = true, .has_zero = true, .gemm = true,
                     .packed = true});
}

TEST(nbits_qdq__scales_by_column_and_single)
{
    check((qdq_case){CLG_INT8, 3, 10, 50, 0, .packed = true});
    check((qdq_case){CLG_INT4, 1, 10, 33, 0, .by_row = true, .packed = true});
    check((qdq_case){CLG_UINT8, 2, 10, 70, 0, .has_zero = true, .packed = true});
    check((qdq_case){CLG_UINT4, 2, 9, 41, ALL, .has_zero = true, .packed = true});
    check((qdq_case){CLG_INT4, 2, 9, 41, ALL, .by_row = true, .gemm = true, .packed = true});
}

TEST(nbits_qdq__leaves_other_forms)
{
    check((qdq_case){CLG_INT4, 2, 64, 20, 32, .wrong_axis = true}); /* blocks along n */
    check((qdq_case){CLG_INT8, 2, 11, 20, 0, .wrong_axis = true});  /* a scale for each k */
    check((qdq_case){CLG_INT4, 2, 6, 40, 8, .packed = false});      /* blocks of 8 */
}

TEST_GROUP(run_node_open, run_node_close)
