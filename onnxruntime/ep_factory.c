/* SPDX-License-Identifier: Apache-2.0
 *
 * The two functions that the library exports, and the factory of providers that ONNX Runtime gets
 * from them.
 */
#include "ep_devices.h"
#include "ep_provider.h"

#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct ep_factory {
    OrtEpFactory factory; /* first: ONNX Runtime gives back its address */
    ep_host host;
    ep_contexts contexts;
    ep_memories memories;
} ep_factory;

static const char *ORT_API_CALL get_name(const OrtEpFactory *this_ptr)
{
    (void)this_ptr;
    return EP_NAME;
}

static const char *ORT_API_CALL get_vendor(const OrtEpFactory *this_ptr)
{
    (void)this_ptr;
    return "clgraph";
}

/* No PCI vendor: the provider serves devices of all. */
static uint32_t ORT_API_CALL get_vendor_id(const OrtEpFactory *this_ptr)
{
    (void)this_ptr;
    return 0;
}

static const char *ORT_API_CALL get_version(const OrtEpFactory *this_ptr)
{
    (void)this_ptr;
    return clg_version();
}

static OrtStatus *ORT_API_CALL get_supported_devices(OrtEpFactory *this_ptr,
                                                     const OrtHardwareDevice *const *devices,
                                                     size_t n_devices, OrtEpDevice **ep_devices,
                                                     size_t max_ep_devices, size_t *n_ep_devices)
{
    ep_factory *f = (ep_factory *)this_ptr;
    return ep_to_ort(&f->host,
                     ep_devices_create(&f->host, this_ptr, &f->memories, devices, n_devices,
                                       ep_devices, max_ep_devices, n_ep_devices));
}

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *this_ptr,
                                         const OrtHardwareDevice *const *devices,
                                         const OrtKeyValuePairs *const *metadata, size_t n_devices,
                                         const OrtSessionOptions *session_options,
                                         const OrtLogger *logger, OrtEp **ep)
{
    ep_factory *f = (ep_factory *)this_ptr;
    (void)devices;
    *ep = NULL;
    ep_log_attach(&f->host); /* the logger's level may have changed */
    ep_host host = f->host;
    host.logger = logger;
    /* Of several devices the first is used: ep_devices_create lists the best first. */
    const char *id = n_devices > 0 ? host.api->GetKeyValue(metadata[0], EP_KEY_ID) : NULL;
    if (n_devices > 1)
        ep_log(&host, ORT_LOGGING_LEVEL_INFO,
               "a session computes on one device; using the first of %zu", n_devices);
    ep_provider *provider = NULL;
    clg_status status = ep_provider_create(&host, &f->contexts, id, session_options, &provider);
    const char *memory = n_devices > 0 ? host.api->GetKeyValue(metadata[0], EP_KEY_MEMORY) : NULL;
    if (status == CLG_OK) {
        provider->on_device = memory != NULL && strcmp(memory, EP_MEMORY_DEVICE) == 0;
        *ep = &provider->ep;
    }
    return ep_to_ort(&host, status);
}

static void ORT_API_CALL release_ep(OrtEpFactory *this_ptr, OrtEp *ep)
{
    (void)this_ptr;
    ep_provider_free((ep_provider *)ep);
}

/* An allocator that sessions of a process share. */
static OrtStatus *ORT_API_CALL create_allocator(OrtEpFactory *this_ptr,
                                                const OrtMemoryInfo *memory_info,
                                                const OrtKeyValuePairs *options,
                                                OrtAllocator **allocator)
{
    ep_factory *f = (ep_factory *)this_ptr;
    (void)options; /* those of ONNX Runtime's arenas */
    *allocator = NULL;
    const char *device = ep_memories_device(&f->memories, &f->host, memory_info);
    if (device == NULL) return NULL; /* the default allocator, of host memory */
    return ep_to_ort(&f->host, ep_allocator_create(&f->host, &f->contexts, NULL, device,
                                                   memory_info, allocator));
}

static void ORT_API_CALL release_allocator(OrtEpFactory *this_ptr, OrtAllocator *allocator)
{
    (void)this_ptr;
    ep_allocator_free(allocator);
}

static OrtStatus *ORT_API_CALL create_data_transfer(OrtEpFactory *this_ptr,
                                                    OrtDataTransferImpl **data_transfer)
{
    ep_factory *f = (ep_factory *)this_ptr;
    *data_transfer = NULL;
    if (f->memories.n == 0) return NULL; /* all tensors are in host memory */
    return ep_to_ort(&f->host, ep_transfer_create(&f->host, &f->memories, data_transfer));
}

static bool ORT_API_CALL is_stream_aware(const OrtEpFactory *this_ptr)
{
    (void)this_ptr;
    return false;
}

static clg_status factory_create(const ep_host *host, ep_factory **out_factory)
{
    ep_factory *f = memory_zalloc(1, sizeof *f);
    if (f == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = ep_contexts_init(&f->contexts);
    if (status != CLG_OK) {
        memory_free(f);
        return status;
    }
    f->host = *host;
    f->factory.ort_version_supported = EP_API_VERSION;
    f->factory.GetName = get_name;
    f->factory.GetVendor = get_vendor;
    f->factory.GetVendorId = get_vendor_id;
    f->factory.GetVersion = get_version;
    f->factory.GetSupportedDevices = get_supported_devices;
    f->factory.CreateEp = create_ep;
    f->factory.ReleaseEp = release_ep;
    f->factory.CreateAllocator = create_allocator;
    f->factory.ReleaseAllocator = release_allocator;
    f->factory.CreateDataTransfer = create_data_transfer;
    f->factory.IsStreamAware = is_stream_aware;
    ep_log_attach(&f->host);
    *out_factory = f;
    return CLG_OK;
}

/* Returns the second number of a version, INT_MAX (nothing is worked around) if there is none. */
static int minor_version(const char *version)
{
    int minor = 0;
    const char *dot = strchr(version, '.');
    if (dot == NULL || dot[1] < '0' || dot[1] > '9') return INT_MAX;
    for (const char *c = dot + 1; *c >= '0' && *c <= '9' && minor < 10000; c++)
        minor = minor * 10 + (*c - '0');
    return minor;
}

#define EP_EXPORT __attribute__((visibility("default")))

/* Of type CreateEpApiFactoriesFn. */
EP_EXPORT OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *api_base,
                                       const OrtLogger *logger, OrtEpFactory **factories,
                                       size_t max_factories, size_t *n_factories);
EP_EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *api_base,
                             const OrtLogger *logger, OrtEpFactory **factories,
                             size_t max_factories, size_t *n_factories)
{
    (void)registered_name; /* the provider's name is fixed: options and users refer to it */
    *n_factories = 0;
    ep_host host = {.api = api_base->GetApi(EP_API_VERSION), .logger = logger};
    if (host.api == NULL) {
        /* The oldest table of all has CreateStatus. */
        const OrtApi *oldest = api_base->GetApi(1);
        char text[160];
        (void)snprintf(text, sizeof text,
                       "clgraph: this is ONNX Runtime %s; " EP_NAME " needs 1.%d or newer",
                       api_base->GetVersionString(), EP_API_VERSION);
        return oldest != NULL ? oldest->CreateStatus(ORT_NOT_IMPLEMENTED, text) : NULL;
    }
    host.minor = minor_version(api_base->GetVersionString());
    host.ep_api = host.api->GetEpApi();
    if (host.ep_api == NULL)
        return host.api->CreateStatus(ORT_NOT_IMPLEMENTED,
                                      "clgraph: this build of ONNX Runtime has no interface for "
                                      "execution providers in libraries");
    if (max_factories < 1)
        return host.api->CreateStatus(ORT_INVALID_ARGUMENT,
                                      "clgraph: needs room for one factory, got none");
    ep_factory *factory = NULL;
    clg_status status = factory_create(&host, &factory);
    if (status == CLG_OK) {
        factories[0] = &factory->factory;
        *n_factories = 1;
    }
    return ep_to_ort(&host, status);
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    ep_factory *f = (ep_factory *)factory;
    if (f == NULL) return NULL;
    ep_contexts_deinit(&f->contexts);
    ep_log_detach(&f->host);
    ep_memories_deinit(&f->memories, &f->host);
    memory_free(f);
    return NULL;
}
