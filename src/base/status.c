/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of names and texts of statuses. A new status needs an entry here and one in the public
 * header; a test checks that both have the same statuses.
 */
#include "base/status.h"

static const struct status_row {
    clg_status code;
    const char *name;
    const char *text;
} rows[] = {
    {CLG_OK, "CLG_OK", "no error"},
    {CLG_ERROR_INVALID_ARGUMENT, "CLG_ERROR_INVALID_ARGUMENT", "a parameter of the call is wrong"},
    {CLG_ERROR_INVALID_MODEL, "CLG_ERROR_INVALID_MODEL", "the model breaks the rules of ONNX"},
    {CLG_ERROR_UNSUPPORTED_OPERATOR, "CLG_ERROR_UNSUPPORTED_OPERATOR",
     "an operator is not supported"},
    {CLG_ERROR_UNSUPPORTED_ATTRIBUTE, "CLG_ERROR_UNSUPPORTED_ATTRIBUTE",
     "an attribute value is not supported"},
    {CLG_ERROR_UNSUPPORTED_DTYPE, "CLG_ERROR_UNSUPPORTED_DTYPE",
     "an element type is not supported"},
    {CLG_ERROR_SHAPE, "CLG_ERROR_SHAPE", "shapes do not fit"},
    {CLG_ERROR_DATA, "CLG_ERROR_DATA", "a value at run time is out of range"},
    {CLG_ERROR_NOT_FOUND, "CLG_ERROR_NOT_FOUND", "there is nothing of that name"},
    {CLG_ERROR_NO_OPENCL, "CLG_ERROR_NO_OPENCL", "there is no OpenCL on this machine"},
    {CLG_ERROR_NO_DEVICE, "CLG_ERROR_NO_DEVICE", "no OpenCL device matches"},
    {CLG_ERROR_UNSUPPORTED_DEVICE, "CLG_ERROR_UNSUPPORTED_DEVICE",
     "the device lacks a required feature"},
    {CLG_ERROR_OUT_OF_HOST_MEMORY, "CLG_ERROR_OUT_OF_HOST_MEMORY", "out of host memory"},
    {CLG_ERROR_OUT_OF_DEVICE_MEMORY, "CLG_ERROR_OUT_OF_DEVICE_MEMORY", "out of device memory"},
    {CLG_ERROR_KERNEL_BUILD, "CLG_ERROR_KERNEL_BUILD", "the driver's compiler rejected a kernel"},
    {CLG_ERROR_DEVICE_LOST, "CLG_ERROR_DEVICE_LOST", "the device failed during work"},
    {CLG_ERROR_IO, "CLG_ERROR_IO", "a file cannot be read or written"},
    {CLG_ERROR_CANCELLED, "CLG_ERROR_CANCELLED", "cancelled"},
    {CLG_ERROR_BUSY, "CLG_ERROR_BUSY", "the session is running another request"},
    {CLG_ERROR_INTERNAL, "CLG_ERROR_INTERNAL", "a defect of clgraph"},
    {CLG_ERROR_LIMIT, "CLG_ERROR_LIMIT", "the work exceeds a limit of the options"},
    {CLG_ERROR_FORKED, "CLG_ERROR_FORKED", "the process was forked after OpenCL was used"},
};

static const struct status_row *find(clg_status status)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == status) return &rows[i];
    }
    return NULL;
}

const char *status_name(clg_status status)
{
    const struct status_row *row = find(status);
    return row ? row->name : "unknown status";
}

const char *status_text(clg_status status)
{
    const struct status_row *row = find(status);
    return row ? row->text : "unknown status";
}
