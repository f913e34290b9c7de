/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements opencl_lost.h: loads the OpenCL layer in which a device is lost.
 */
#include "support/fakes/opencl_lost.h"

#include "support/platform.h"
#include "support/unit.h"

#include <clgraph/opencl.h>

#include <dlfcn.h>
#include <string.h>

static void take(void *layer, const char *name, void *out_function)
{
    void *address = dlsym(layer, name);
    assert_non_null(address);
    memcpy(out_function, &address, sizeof address);
}

bool opencl_lost_open(opencl_lost *out)
{
    static const char path[] = CLG_TEST_BUILD_DIR "/tests/layers/opencl_lost.so";
    assert_true(platform_set_env("OPENCL_LAYERS", path));
    void *layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!layer) fail_msg("the layer does not load: %s", dlerror());
    take(layer, "opencl_lost_arm", &out->arm);
    take(layer, "opencl_lost_alone", &out->alone);
    take(layer, "opencl_lost_late", &out->late);
    take(layer, "opencl_lost_release", &out->release);
    take(layer, "opencl_lost_hide", &out->hide);
    take(layer, "opencl_lost_has_fired", &out->has_fired);
    take(layer, "opencl_lost_fired_code", &out->fired_code);
    take(layer, "opencl_lost_n_calls", &out->n_calls);
    take(layer, "opencl_lost_n_touches", &out->n_touches);
    take(layer, "opencl_lost_n_live", &out->n_live);
    take(layer, "opencl_lost_n_lost", &out->n_lost);
    out->hide(true);
    cl_uint n = 0;
    cl_platform_id platform;
    const bool is_there = clGetPlatformIDs(1, &platform, &n) == CL_SUCCESS && n > 0 &&
                          clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n) != CL_SUCCESS;
    out->hide(false);
    if (!is_there) print_message("this OpenCL loader knows no layers: no device was lost\n");
    return is_there;
}
