/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements opencl_delay.h: loads and configures the OpenCL layer that delays commands.
 */
#include "support/fakes/opencl_delay.h"

#include "support/platform.h"
#include "support/unit.h"

#include <dlfcn.h>
#include <string.h>

static void take(void *layer, const char *name, void *out_function)
{
    void *address = dlsym(layer, name);
    assert_non_null(address);
    memcpy(out_function, &address, sizeof address);
}

void opencl_delay_open(opencl_delay *out)
{
    static const char path[] = CLG_TEST_BUILD_DIR "/tests/layers/opencl_delay.so";
    assert_true(platform_set_env("OPENCL_LAYERS", path));
    void *layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!layer) fail_msg("the layer does not load: %s", dlerror());
    take(layer, "opencl_delay_n_late", &out->n_late);
    take(layer, "opencl_delay_n_unflushed", &out->n_unflushed);
    take(layer, "opencl_delay_restart", &out->restart);
}

void opencl_delay_queues(const opencl_delay *delay, const char *which)
{
    assert_true(platform_set_env("CLG_DELAY", which));
    delay->restart();
}
