/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of OrtEp: they convert errors and call what does the work.
 */
#include "ep_provider.h"

#include "base/memory.h"
#include "ep_allocator.h"
#include "ep_capability.h"
#include "ep_program.h"

static const char *ORT_API_CALL get_name(const OrtEp *this_ptr)
{
    (void)this_ptr;
    return EP_NAME;
}

static OrtStatus *ORT_API_CALL get_capability(OrtEp *this_ptr, const OrtGraph *graph,
                                              OrtEpGraphSupportInfo *support)
{
    ep_provider *p = (ep_provider *)this_ptr;
    return ep_to_ort(&p->host, ep_capability_claim(p, graph, support));
}

static void ORT_API_CALL release_node_compute_infos(OrtEp *this_ptr, OrtNodeComputeInfo **infos,
                                                    size_t n_infos)
{
    (void)this_ptr;
    for (size_t i = 0; i < n_infos; i++) ep_program_free((ep_program *)infos[i]);
}

static OrtStatus *ORT_API_CALL compile(OrtEp *this_ptr, const OrtGraph **graphs,
                                       const OrtNode **fused_nodes, size_t n_graphs,
                                       OrtNodeComputeInfo **infos, OrtNode **context_nodes)
{
    ep_provider *p = (ep_provider *)this_ptr;
    (void)context_nodes; /* compiled models are not written */
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n_graphs; i++) infos[i] = NULL;
    for (size_t i = 0; i < n_graphs && status == CLG_OK; i++) {
        ep_program *program = NULL;
        status = ep_program_create(p, graphs[i], fused_nodes[i], &program);
        if (status == CLG_OK) infos[i] = &program->info;
    }
    if (status != CLG_OK) {
        OrtStatus *failure = ep_to_ort(&p->host, status);
        release_node_compute_infos(this_ptr, infos, n_graphs);
        for (size_t i = 0; i < n_graphs; i++) infos[i] = NULL;
        return failure;
    }
    return NULL;
}

/* The allocator of a session, in its context. */
static OrtStatus *ORT_API_CALL create_allocator(OrtEp *this_ptr, const OrtMemoryInfo *memory_info,
                                                OrtAllocator **allocator)
{
    ep_provider *p = (ep_provider *)this_ptr;
    const char *device = clg_context_device(p->context)->id;
    return ep_to_ort(&p->host, ep_allocator_create(&p->host, p->contexts, p->context, device,
                                                   memory_info, allocator));
}

clg_status ep_provider_create(const ep_host *host, ep_contexts *contexts, const char *device,
                              const OrtSessionOptions *session_options, ep_provider **out_provider)
{
    ep_provider *p = memory_zalloc(1, sizeof *p);
    if (p == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    p->host = *host;
    p->contexts = contexts;
    p->ep.ort_version_supported = EP_API_VERSION;
    p->ep.GetName = get_name;
    p->ep.GetCapability = get_capability;
    p->ep.Compile = compile;
    p->ep.CreateAllocator = create_allocator;
    p->ep.ReleaseNodeComputeInfos = release_node_compute_infos;
    clg_status status = ep_options_read(host, session_options, &p->options);
    if (status == CLG_OK) {
        if (p->options.device != NULL) device = p->options.device;
        status = ep_contexts_acquire(contexts, device != NULL ? device : "auto", &p->options,
                                     &p->context);
    }
    if (status != CLG_OK) {
        ep_provider_free(p);
        return status;
    }
    *out_provider = p;
    return CLG_OK;
}

void ep_provider_free(ep_provider *provider)
{
    if (provider == NULL) return;
    ep_contexts_release(provider->contexts, provider->context);
    ep_options_deinit(&provider->options);
    memory_free(provider->claimed_graph);
    memory_free(provider);
}
