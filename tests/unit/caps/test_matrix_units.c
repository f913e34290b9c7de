/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests when the implementation on matrix units is a candidate for a GEMM (devices, dtypes, sizes),
 * its position in the list of candidates, and its work-group sizes.
 */
#include "support/unit.h"

#include "ops/matmul/gemm.h"

#include <string.h>

typedef struct offer {
    clg_kernel_class kernels;
    matrix_unit unit;
    uint64_t group_size;
    clg_dtype dtype;
    int64_t m, n, k;
    uint64_t items; /* expected work-items per work-group; 0: matrix units are not a candidate */
} offer;

#define MAX_VALUE (INT32_MAX - 1024)

static const offer offers[] = {
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT16, 64, 64, 64, 128},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_BFLOAT16, 1, 1, 1, 128},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_EMULATED, 128, CLG_FLOAT16, 1023, 5000, 9, 128},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 256, CLG_FLOAT16, 1024, 1024, 64, 256},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT16, 64, 64, MAX_VALUE, 128},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT16, MAX_VALUE, 64, 64, 128},
    /* no unit, other kernels, other dtypes */
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NONE, 1024, CLG_FLOAT16, 64, 64, 64, 0},
    {CLG_KERNELS_SIMD, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT16, 64, 64, 64, 0},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT32, 64, 64, 64, 0},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_INT32, 64, 64, 64, 0},
    /* work-groups larger than the device's maximum */
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 64, CLG_FLOAT16, 64, 64, 64, 0},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 128, CLG_FLOAT16, 1024, 1024, 64, 0},
    /* the end of the last tile is beyond 31 bits */
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT16, 64, 64, MAX_VALUE + 1, 0},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT16, MAX_VALUE + 1, 64, 64, 0},
    {CLG_KERNELS_SIMT, MATRIX_UNIT_NVIDIA, 1024, CLG_FLOAT16, 64, MAX_VALUE + 1, 64, 0},
};

static const candidate *find(const candidate *impl)
{
    while (impl && strcmp(impl->variant, "gemm_matrix") != 0) impl = impl->next;
    return impl;
}

static void check(const offer *o)
{
    arena memory = {0};
    const device_caps caps = {.matrix = o->unit,
                              .max_work_group_size = o->group_size,
                              .max_work_item_sizes = {o->group_size, o->group_size, 64},
                              .vector_width = 8,
                              .compute_units = 4};
    lower_context c = {.caps = &caps, .kernel_class = o->kernels, .memory = &memory};
    step_builder_init(&c.build, &memory, NULL);
    gemm_job j = {.dtype = o->dtype,
                  .m = o->m,
                  .n = o->n,
                  .k = o->k,
                  .batch = 1,
                  .batch_in = 1,
                  .epilogue = {.alpha = 1, .beta = 1}};
    j.a = (gemm_matrix){operand_input(0), 1, 1, 0, 0, false};
    j.b = (gemm_matrix){operand_input(1), 1, 1, 0, 0, false};
    j.c = (gemm_matrix){operand_output(0), 1, 1, 0, 0, false};
    assert_ok(gemm_lower(&c, &j, 1));
    const candidate *impl = find(c.build.candidates);
    assert_int_equal(impl != NULL, o->items > 0);
    if (impl) {
        assert_true(impl != c.build.candidates);
        assert_null(impl->next); /* the last one: never used by default */
        assert_true(impl->requires_selftest);
        assert_int_equal(impl->steps->local[0], o->items);
        assert_int_equal(impl->steps->local[1] * impl->steps->local[2], 1);
        assert_true(impl->steps->global[0] % o->items == 0);
    }
    arena_deinit(&memory);
}

TEST(matrix_units__are_offered_where_they_fit)
{
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
        print_message("    offer %zu\n", i);
        check(&offers[i]);
    }
}
