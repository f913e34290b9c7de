/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares OpenCL objects with clgraph, for programs that use OpenCL themselves: clgraph works in the
 * application's context and queue and predicts from a cl_mem that the application's own kernel
 * filled, without a copy through the host.
 */
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <clgraph/opencl.h>

#include <math.h>
#include <stdio.h>

enum { N = 1000 };

static const char *const kernel_text =
    "__kernel void fill(__global float *x)\n"
    "{\n"
    "    x[get_global_id(0)] = 0.01f * (float)get_global_id(0) - 5.0f;\n"
    "}\n";

typedef struct machine {
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    cl_program program;
    cl_kernel fill;
    cl_mem memory;
} machine;

static cl_int open_machine(machine *m)
{
    cl_platform_id platform;
    cl_int error = clGetPlatformIDs(1, &platform, NULL);
    if (error == CL_SUCCESS)
        error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &m->device, NULL);
    if (error == CL_SUCCESS) m->context = clCreateContext(NULL, 1, &m->device, NULL, NULL, &error);
    if (error == CL_SUCCESS) m->queue = clCreateCommandQueue(m->context, m->device, 0, &error);
    if (error == CL_SUCCESS)
        m->program =
            clCreateProgramWithSource(m->context, 1, (const char **)&kernel_text, NULL, &error);
    if (error == CL_SUCCESS) error = clBuildProgram(m->program, 1, &m->device, "", NULL, NULL);
    if (error == CL_SUCCESS) m->fill = clCreateKernel(m->program, "fill", &error);
    if (error == CL_SUCCESS)
        m->memory = clCreateBuffer(m->context, CL_MEM_READ_WRITE, N * sizeof(float), NULL, &error);
    return error;
}

static void close_machine(machine *m)
{
    if (m->memory) (void)clReleaseMemObject(m->memory);
    if (m->fill) (void)clReleaseKernel(m->fill);
    if (m->program) (void)clReleaseProgram(m->program);
    if (m->queue) (void)clReleaseCommandQueue(m->queue);
    if (m->context) (void)clReleaseContext(m->context);
}

/* Builds the model y = sigmoid(x). */
static clg_status build(clg_model **out_model)
{
    clg_builder *b;
    clg_status s = clg_builder_create(13, &b);
    if (s != CLG_OK) return s;
    s = clg_builder_input(b, "x", CLG_FLOAT32, 1, (const int64_t[]){-1}, NULL);
    if (s == CLG_OK)
        s = clg_builder_node(b, NULL, "Sigmoid", "sigmoid", 1, (const char *const[]){"x"}, 1,
                             (const char *const[]){"y"});
    if (s == CLG_OK) s = clg_builder_output(b, "y");
    if (s == CLG_OK) s = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return s;
}

/* Runs the caller's kernel, then the prediction, in one queue. */
static clg_status predict(const machine *m, float *y)
{
    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_value *x = NULL;
    const size_t n = N;
    clg_status s = clg_context_create_opencl(m->context, m->device, m->queue, NULL, &context);
    if (s == CLG_OK) s = build(&model);
    if (s == CLG_OK) s = clg_session_create(context, model, NULL, &session);
    if (s == CLG_OK)
        s = clg_value_create_opencl(context, m->memory, 0, CLG_FLOAT32, 1, (const int64_t[]){N},
                                    &x);
    if (s == CLG_OK) s = clg_session_set_input(session, "x", x);
    if (s == CLG_OK) {
        if (clSetKernelArg(m->fill, 0, sizeof m->memory, &m->memory) != CL_SUCCESS ||
            clEnqueueNDRangeKernel(m->queue, m->fill, 1, NULL, &n, NULL, 0, NULL, NULL) !=
                CL_SUCCESS)
            s = CLG_ERROR_DEVICE_LOST;
    }
    if (s == CLG_OK) s = clg_session_run(session);
    if (s == CLG_OK) s = clg_session_get_output_data(session, "y", y, N * sizeof *y);
    clg_value_free(x);
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    return s;
}

int main(void)
{
    static float y[N];
    machine m = {0};
    cl_int error = open_machine(&m);
    if (error != CL_SUCCESS) {
        fprintf(stderr, "opencl_buffer: OpenCL error %d while setting up\n", (int)error);
        close_machine(&m);
        return 3;
    }
    clg_status status = predict(&m, y);
    close_machine(&m);
    if (status != CLG_OK) {
        fprintf(stderr, "opencl_buffer: %s\n", clg_last_error());
        return 1;
    }
    double worst = 0;
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs((double)y[i] - 1.0 / (1.0 + exp(5.0 - 0.01 * i))));
    printf("sigmoid of a buffer that our own kernel filled: y[0] = %.6f, y[%d] = %.6f, largest "
           "difference %.1e\n",
           (double)y[0], N - 1, (double)y[N - 1], worst);
    return worst < 1e-5 ? 0 : 1;
}
