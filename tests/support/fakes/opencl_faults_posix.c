/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements opencl_faults.h: loads the OpenCL layer that makes calls fail.
 */
#include "support/fakes/opencl_faults.h"

#include "support/unit.h"

#include <clgraph/opencl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take(void *layer, const char *name, void *out_function)
{
    void *address = dlsym(layer, name);
    memcpy(out_function, &address, sizeof address);
    return address != NULL;
}

bool opencl_faults_open(opencl_faults *out)
{
    static const char path[] = CLG_TEST_BUILD_DIR "/tests/layers/opencl_faults.so";
    assert_int_equal(setenv("OPENCL_LAYERS", path, 1), 0);
    void *layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!layer) fail_msg("the layer does not load: %s", dlerror());
    assert_true(take(layer, "opencl_faults_arm", &out->arm));
    assert_true(take(layer, "opencl_faults_n_calls", &out->n_calls));
    assert_true(take(layer, "opencl_faults_has_fired", &out->has_fired));
    assert_true(take(layer, "opencl_faults_n_live", &out->n_live));
    out->arm(-1, 0);
    cl_uint n;
    (void)clGetPlatformIDs(0, NULL, &n);
    if (out->n_calls() == 0)
        print_message("this OpenCL loader knows no layers: no call was made to fail\n");
    return out->n_calls() > 0;
}

long opencl_faults_total_live(const opencl_faults *faults)
{
    long total = 0;
    for (int kind = 0; kind < OPENCL_FAULTS_KINDS; kind++)
        total += faults->n_live((opencl_faults_kind)kind);
    return total;
}
