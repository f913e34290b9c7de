/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a test on every OpenCL implementation of the machine.
 */
#include "support/ocl_platforms.h"

#include "support/unit.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

size_t ocl_platforms_each(const ocl_context_options *options, ocl_platforms_body body, void *user)
{
    device_record *records;
    device_caps *caps;
    size_t n, n_used = 0;
    assert_ok(ocl_enumerate(&records, &caps, &n));
    for (size_t i = 0; i < n; i++) {
        ocl_context *context;
        ocl_counters counters;
        if (caps_check(&records[i]) != CLG_OK) {
            print_message("%s '%s' is passed by: %s\n", caps[i].selector, records[i].name,
                          error_text());
            continue;
        }
        print_message("%s '%s' of '%s'\n", caps[i].selector, records[i].name,
                      records[i].platform_name);
        assert_ok(ocl_context_create(i, options, &context));
        body(context, user);
        ocl_context_counters(context, &counters);
        if (counters.kernels_launched + counters.blas_calls == 0)
            fail_msg("no kernel ran on '%s'", records[i].name);
        ocl_context_free(context);
        n_used++;
    }
    device_records_free(records, n);
    device_caps_free(caps, n);
    if (n_used == 0) fail_msg("there is no OpenCL device to test on");
    return n_used;
}

int ocl_platforms_leaks(void **state)
{
    (void)state;
    return memory_n_live() == 0 ? 0 : -1;
}

static clg_status run_axpy(ocl_queue *q, ocl_kernel *k, ocl_buffer *b, float a, size_t n,
                           size_t local, float *y)
{
    const uint64_t global_size = n, local_size = local;
    CLG_TRY(ocl_queue_write(q, b, 0, y, n * sizeof *y, true));
    CLG_TRY(ocl_kernel_set_buffer(k, 0, b));
    CLG_TRY(ocl_kernel_set_bytes(k, 1, sizeof a, &a));
    CLG_TRY(ocl_queue_launch(q, k, 1, &global_size, &local_size));
    return ocl_queue_read(q, b, 0, y, n * sizeof *y, true);
}

clg_status ocl_platforms_axpy(ocl_context *c, ocl_queue *q, const char *name, float a, size_t n,
                              size_t local, float *out_y)
{
    char body[512];
    ocl_kernel *k = NULL;
    ocl_buffer *b = NULL;
    (void)snprintf(
        body, sizeof body,
        "/* %s */\n__kernel void axpy(__global float *y, const float a)\n"
        "{\n    const int i = (int)get_global_id(0);\n    y[i] = a * y[i] + %zu.0f;\n}\n",
        name, strlen(name));
    const kernel_ref ref = {.source = name,
                            .entry = "axpy",
                            .body = body,
                            .prelude = "#define P_T 1\n#define P_VEC 1\n#define P_FMA 0\n"};
    clg_status status = ocl_kernel_create(c, &ref, &k);
    if (status == CLG_OK) status = ocl_buffer_create(c, n * sizeof *out_y, OCL_BUFFER_DEVICE, &b);
    if (status == CLG_OK) status = run_axpy(q, k, b, a, n, local, out_y);
    ocl_kernel_free(k);
    ocl_buffer_free(b);
    return status;
}
