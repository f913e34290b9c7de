/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a program. ONNX Runtime gives the memory of an output once it is told the shape, which
 * is then fixed for that run. Where the library infers the shape from the graph, and the last run
 * with the same shapes of inputs had it, it writes into that memory. Otherwise an output is a value
 * of the library first, and is copied. Where tensors cross the border in memory of the device,
 * nothing is copied through the host.
 */
#include "ep_blocks.h"
#include "ep_sessions.h"
#include "ep_strings.h"

#include <clgraph/opencl.h>

#include <string.h>

/* ---- inputs -------------------------------------------------------------------------------- */

/* Makes an input in memory of the device a value. */
static clg_status view_input(const ep_program *p, const OrtValue *tensor, clg_call_input *input)
{
    const OrtEpApi *api = p->provider->host.ep_api;
    const clg_status status =
        ep_blocks_view(input->data, input->dtype, input->rank, input->dims, &input->value);
    if (status != CLG_OK) return error_prefix(status, "input '%s'", input->name);
    const OrtMemoryDevice *memory = api->Value_GetMemoryDevice(tensor);
    if (input->value == NULL && memory != NULL &&
        api->MemoryDevice_GetDeviceType(memory) != OrtMemoryInfoDeviceType_CPU)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "input '%s' is at %p, which is not memory of a device of " EP_NAME
                         " or was freed",
                         input->name, input->data);
    return CLG_OK;
}

static clg_status read_input(const ep_program *p, ep_session *s, const OrtKernelContext *context,
                             size_t i)
{
    const ep_host *host = &p->provider->host;
    const OrtApi *api = host->api;
    const OrtValue *value = NULL;
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    clg_call_input *input = &s->inputs[i];
    size_t n = 0;
    EP_TRY_ORT(host, api->KernelContext_GetInput(context, p->inputs[i].index, &value));
    if (value == NULL)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "input '%s' has no value", input->name);
    EP_TRY_ORT(host, api->GetTensorTypeAndShape(value, &info));
    clg_status status = CLG_OK;
    EP_TRY_ORT_GOTO(host, api->GetTensorElementType(info, &element), end);
    EP_TRY_ORT_GOTO(host, api->GetDimensionsCount(info, &input->rank), end);
    EP_TRY_ORT_GOTO(host, api->GetTensorShapeElementCount(info, &n), end);
    if (input->rank > CLG_MAX_RANK) {
        status = error_set(CLG_ERROR_SHAPE, "input '%s' has rank %zu; the highest is %d",
                           input->name, input->rank, CLG_MAX_RANK);
        goto end;
    }
    EP_TRY_ORT_GOTO(host, api->GetDimensions(info, s->dims[i], input->rank), end);
    input->dims = s->dims[i];
    input->dtype = ep_dtype(element);
    if (input->dtype == CLG_STRING) {
        status = ep_strings_read(host, value, n, input->rank, input->dims, &input->value);
        goto end;
    }
    EP_TRY_ORT_GOTO(host, api->GetTensorData(value, &input->data), end);
    EP_TRY_ORT_GOTO(host, api->GetTensorSizeInBytes(value, &input->size_bytes), end);
    if (p->provider->on_device && input->size_bytes > 0) status = view_input(p, value, input);
end:
    api->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

/* Returns whether the inputs have the shapes of the last run that was verified. */
static bool has_verified_shapes(const ep_program *p, const ep_session *s)
{
    if (!s->verified) return false;
    for (size_t i = 0; i < p->n_inputs; i++)
        if (s->inputs[i].rank != s->verified_ranks[i] ||
            memcmp(s->dims[i], s->verified_dims[i], s->inputs[i].rank * sizeof(int64_t)) != 0)
            return false;
    return true;
}

/* ---- outputs ------------------------------------------------------------------------------- */

/* Returns whether two tensors of device memory have bytes in common. */
static bool share_memory(const clg_value *a, const clg_value *b)
{
    cl_mem x = NULL, y = NULL;
    size_t i = 0, k = 0;
    if (clg_value_opencl(a, &x, &i) != CLG_OK || clg_value_opencl(b, &y, &k) != CLG_OK) return true;
    return x == y && i < k + clg_value_size_bytes(b) && k < i + clg_value_size_bytes(a);
}

/* Lets the run write an output into memory of the device. If that is memory of another context, or
 * an input has some of it, as a cache that the caller updates in place, the output is copied after
 * the run. */
static clg_status bind_output(const ep_program *p, ep_session *s, size_t o, void *data)
{
    clg_value *target = NULL;
    const ep_output *output = &p->outputs[o];
    CLG_TRY(ep_blocks_view(data, output->dtype, output->rank, output->dims, &target));
    if (target == NULL)
        return error_set(CLG_ERROR_INTERNAL, "output '%s' is not in memory of the device",
                         s->outputs[o].name);
    bool copied = !ep_blocks_have(data, p->provider->context);
    for (size_t i = 0; i < p->n_inputs && !copied; i++)
        copied = s->inputs[i].value != NULL && clg_value_data(s->inputs[i].value) == NULL &&
                 share_memory(target, s->inputs[i].value);
    clg_status status = CLG_OK;
    if (!copied) {
        status = ep_from_clg(clg_session_bind_output(s->session, s->outputs[o].name, target));
        s->bound[o] = status == CLG_OK;
    }
    clg_value_free(target);
    return status;
}

/* Lets the library write an output into ONNX Runtime's memory. */
static clg_status prepare_output(const ep_program *p, ep_session *s, OrtKernelContext *context,
                                 size_t o)
{
    const ep_host *host = &p->provider->host;
    OrtValue *value = NULL;
    void *data = NULL;
    size_t size_bytes = 0;
    const int64_t *dims = p->outputs[o].dims;
    EP_TRY_ORT(host,
               host->api->KernelContext_GetOutput(context, o, dims, p->outputs[o].rank, &value));
    if (value == NULL) return CLG_OK; /* nothing reads it */
    EP_TRY_ORT(host, host->api->GetTensorMutableData(value, &data));
    EP_TRY_ORT(host, host->api->GetTensorSizeInBytes(value, &size_bytes));
    if (size_bytes == 0) return CLG_OK;
    if (p->provider->on_device) return bind_output(p, s, o, data);
    s->outputs[o].data = data;
    s->outputs[o].capacity_bytes = size_bytes;
    return CLG_OK;
}

static bool is_expected(const ep_program *p, const ep_session *s, size_t o)
{
    const clg_call_output *output = &s->outputs[o];
    return output->rank == p->outputs[o].rank &&
           memcmp(p->outputs[o].dims, output->dims, output->rank * sizeof *output->dims) == 0;
}

static clg_status copy_on_device(const clg_call_output *output, void *data)
{
    clg_value *target = NULL;
    CLG_TRY(ep_blocks_view(data, output->dtype, output->rank, output->dims, &target));
    if (target == NULL)
        return error_set(CLG_ERROR_INTERNAL, "output '%s' is not in memory of the device",
                         output->name);
    const clg_status status = ep_from_clg(clg_value_copy(output->value, target));
    clg_value_free(target);
    return status;
}

/* Gives a value that the library returned to ONNX Runtime. */
static clg_status copy_output(const ep_program *p, const clg_call_output *output,
                              OrtKernelContext *context, size_t o)
{
    const ep_host *host = &p->provider->host;
    OrtValue *tensor = NULL;
    void *data = NULL;
    size_t size_bytes = 0;
    if (output->kind != CLG_VALUE_TENSOR)
        return error_set(CLG_ERROR_UNSUPPORTED_DTYPE, "output '%s' is not a tensor", output->name);
    EP_TRY_ORT(host,
               host->api->KernelContext_GetOutput(context, o, output->dims, output->rank, &tensor));
    if (tensor == NULL) return CLG_OK; /* nothing reads it */
    if (output->dtype == CLG_STRING) return ep_strings_write(host, output->value, tensor);
    EP_TRY_ORT(host, host->api->GetTensorSizeInBytes(tensor, &size_bytes));
    if (size_bytes != output->size_bytes)
        return error_set(CLG_ERROR_INTERNAL,
                         "output '%s' has %zu bytes as %s, ONNX Runtime expects %zu", output->name,
                         output->size_bytes, clg_dtype_name(output->dtype), size_bytes);
    if (size_bytes == 0) return CLG_OK;
    EP_TRY_ORT(host, host->api->GetTensorMutableData(tensor, &data));
    if (p->provider->on_device) return copy_on_device(output, data);
    memcpy(data, clg_value_data(output->value), size_bytes);
    return CLG_OK;
}

/* Returns whether the run wrote an output into ONNX Runtime's memory. */
static bool is_delivered(const ep_program *p, const ep_session *s, size_t o, bool direct)
{
    return p->provider->on_device ? s->bound[o] : direct && p->outputs[o].known;
}

/* Lists the outputs, which are in memory of the device, as clg_session_call lists outputs. */
static clg_status list_device_outputs(const ep_program *p, ep_session *s)
{
    for (size_t o = 0; o < p->n_outputs; o++) {
        clg_call_output *output = &s->outputs[o];
        EP_TRY_CLG(clg_session_get_output_device(s->session, output->name, &output->value));
        output->kind = clg_value_get_kind(output->value);
        output->dtype = clg_value_dtype(output->value);
        output->rank = clg_value_rank(output->value);
        output->size_bytes = clg_value_size_bytes(output->value);
        if (output->rank > 0)
            memcpy(output->dims, clg_value_dims(output->value),
                   output->rank * sizeof *output->dims);
    }
    return CLG_OK;
}

static clg_status deliver_outputs(const ep_program *p, ep_session *s, bool direct,
                                  OrtKernelContext *context)
{
    bool all_expected = true;
    for (size_t o = 0; o < p->n_outputs; o++) {
        bool known = p->outputs[o].known, expected = known && is_expected(p, s, o);
        if (known && !expected) all_expected = false;
        if (direct && known && !expected)
            return error_set(CLG_ERROR_SHAPE,
                             "output '%s' has another shape than in the last run, although the "
                             "shapes of the inputs are the same and the model declares it",
                             s->outputs[o].name);
        if (!is_delivered(p, s, o, direct)) CLG_TRY(copy_output(p, &s->outputs[o], context, o));
    }
    s->verified = all_expected;
    if (direct) return CLG_OK;
    ep_weights_unload(p->weights); /* new shapes may have needed some of them */
    if (!all_expected) return CLG_OK;
    for (size_t i = 0; i < p->n_inputs; i++) {
        s->verified_ranks[i] = s->inputs[i].rank;
        memcpy(s->verified_dims[i], s->dims[i], sizeof s->dims[i]);
    }
    return CLG_OK;
}

/* ---- a run --------------------------------------------------------------------------------- */

static clg_status run_session(ep_program *p, ep_session *s, OrtKernelContext *context)
{
    for (size_t i = 0; i < p->n_inputs; i++) CLG_TRY(read_input(p, s, context, i));
    bool direct = has_verified_shapes(p, s);
    for (size_t o = 0; direct && o < p->n_outputs; o++)
        if (p->outputs[o].known) CLG_TRY(prepare_output(p, s, context, o));
    const size_t n_listed = p->provider->on_device ? 0 : p->n_outputs;
    EP_TRY_CLG(clg_session_call(s->session, s->inputs, p->n_inputs, s->outputs, n_listed));
    if (p->provider->on_device) CLG_TRY(list_device_outputs(p, s));
    return deliver_outputs(p, s, direct, context);
}

static clg_status unbind_outputs(const ep_program *p, ep_session *s)
{
    clg_status status = CLG_OK;
    for (size_t o = 0; o < p->n_outputs; o++) {
        if (s->bound[o] && status == CLG_OK)
            status = ep_from_clg(clg_session_bind_output(s->session, s->outputs[o].name, NULL));
        s->bound[o] = false;
    }
    return status;
}

/* Empties the lists of inputs and outputs but for names. */
static void clear_lists(const ep_program *p, ep_session *s)
{
    for (size_t i = 0; i < p->n_inputs; i++) {
        clg_value_free(s->inputs[i].value);
        s->inputs[i] = (clg_call_input){.name = s->inputs[i].name};
    }
    for (size_t o = 0; o < p->n_outputs; o++) {
        clg_value_free(s->outputs[o].value);
        s->outputs[o] = (clg_call_output){.name = s->outputs[o].name};
    }
}

clg_status ep_program_compute(ep_program *program, OrtKernelContext *context)
{
    ep_session *s = NULL;
    if (atomic_exchange(&program->lost, false))
        EP_TRY_CLG(clg_context_recover(program->provider->context));
    CLG_TRY(ep_sessions_acquire(program, &s));
    clg_status status = run_session(program, s, context);
    const clg_status unbound = unbind_outputs(program, s);
    if (status == CLG_OK) status = unbound;
    if (status == CLG_ERROR_DEVICE_LOST) atomic_store(&program->lost, true);
    clear_lists(program, s);
    ep_sessions_release(program, s);
    return status;
}
