/* SPDX-License-Identifier: Apache-2.0
 *
 * What C programs of this folder need to use ONNX Runtime: its library opened by path, and calls
 * that end the program with a message when they fail.
 */
#ifndef CLG_TESTS_ORT_HOST_H
#define CLG_TESTS_ORT_HOST_H

#include <onnxruntime_c_api.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROVIDER "ClgraphExecutionProvider"

static const OrtApi *api;

static inline void check(OrtStatus *status, const char *what)
{
    if (status == NULL) return;
    (void)fprintf(stderr, "%s: %s\n", what, api->GetErrorMessage(status));
    exit(1);
}
#define CHECK(call) check(api->call, #call)

/* Sets `api` to the functions of the ONNX Runtime at a path. */
static inline void open_onnxruntime(const char *path)
{
    union {
        void *object;
        const OrtApiBase *(*function)(void);
    } symbol = {NULL};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) symbol.object = dlsym(library, "OrtGetApiBase");
    if (symbol.object == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    api = symbol.function()->GetApi(23);
    if (api == NULL) {
        (void)fprintf(stderr, "%s is older than 1.23\n", path);
        exit(1);
    }
}

/* Returns the provider's first device. */
static inline const OrtEpDevice *first_device(OrtEnv *env)
{
    const OrtEpDevice *const *devices = NULL;
    size_t n = 0;
    CHECK(GetEpDevices(env, &devices, &n));
    for (size_t i = 0; i < n; i++)
        if (strcmp(api->EpDevice_EpName(devices[i]), PROVIDER) == 0) return devices[i];
    (void)fprintf(stderr, "no device of " PROVIDER "\n");
    exit(1);
}

#endif
