/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of open contexts with counts of their users. A context that is not used any more is freed:
 * its programs stay in the cache on disk.
 */
#include "ep_contexts.h"

#include "base/memory.h"

#include <string.h>

struct shared_context {
    struct shared_context *next;
    char *device, *cache_dir; /* the keys; cache_dir may be NULL */
    uint32_t cpu_threads;
    size_t n_users;
    clg_context *context;
};

clg_status ep_contexts_init(ep_contexts *contexts)
{
    contexts->first = NULL;
    return mutex_init(&contexts->lock);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void free_entry(struct shared_context *entry)
{
    if (entry == NULL) return;
    clg_context_free(entry->context);
    memory_free(entry->device);
    memory_free(entry->cache_dir);
    memory_free(entry);
}

static clg_status create_entry(const char *device, const ep_options *options,
                               struct shared_context **out_entry)
{
    struct shared_context *entry = memory_zalloc(1, sizeof *entry);
    if (entry == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    entry->cpu_threads = options->cpu_threads;
    entry->device = memory_strdup(device);
    if (entry->device == NULL) goto failed;
    if (options->cache_dir != NULL) {
        entry->cache_dir = memory_strdup(options->cache_dir);
        if (entry->cache_dir == NULL) goto failed;
    }
    clg_context_options context_options = CLG_CONTEXT_OPTIONS_INIT;
    context_options.cache_dir = entry->cache_dir;
    context_options.cpu_threads = entry->cpu_threads;
    EP_TRY_CLG_GOTO(clg_context_create(device, &context_options, &entry->context), failed);
    *out_entry = entry;
    return CLG_OK;
failed:
    free_entry(entry);
    return status;
}

/* options NULL: any. */
static bool is_wanted(const struct shared_context *entry, const char *device,
                      const ep_options *options)
{
    if (!same_text(entry->device, device)) return false;
    return options == NULL || (same_text(entry->cache_dir, options->cache_dir) &&
                               entry->cpu_threads == options->cpu_threads);
}

static clg_status acquire(ep_contexts *contexts, const char *device, const ep_options *options,
                          clg_context **out_context)
{
    static const ep_options defaults = {0};
    clg_status status = CLG_OK;
    *out_context = NULL;
    mutex_lock(&contexts->lock);
    struct shared_context *entry = contexts->first;
    while (entry != NULL && !is_wanted(entry, device, options)) entry = entry->next;
    if (entry == NULL) {
        status = create_entry(device, options != NULL ? options : &defaults, &entry);
        if (status == CLG_OK) {
            entry->next = contexts->first;
            contexts->first = entry;
        }
    }
    if (status == CLG_OK) {
        entry->n_users++;
        *out_context = entry->context;
    }
    mutex_unlock(&contexts->lock);
    return status;
}

clg_status ep_contexts_acquire(ep_contexts *contexts, const char *device, const ep_options *options,
                               clg_context **out_context)
{
    return acquire(contexts, device, options, out_context);
}

clg_status ep_contexts_acquire_any(ep_contexts *contexts, const char *device,
                                   clg_context **out_context)
{
    return acquire(contexts, device, NULL, out_context);
}

clg_context *ep_contexts_retain(ep_contexts *contexts, clg_context *context)
{
    mutex_lock(&contexts->lock);
    for (struct shared_context *entry = contexts->first; entry != NULL; entry = entry->next)
        if (entry->context == context) entry->n_users++;
    mutex_unlock(&contexts->lock);
    return context;
}

void ep_contexts_release(ep_contexts *contexts, clg_context *context)
{
    if (context == NULL) return;
    mutex_lock(&contexts->lock);
    for (struct shared_context **link = &contexts->first; *link != NULL; link = &(*link)->next) {
        struct shared_context *entry = *link;
        if (entry->context != context) continue;
        if (--entry->n_users == 0) {
            *link = entry->next;
            free_entry(entry);
        }
        break;
    }
    mutex_unlock(&contexts->lock);
}

void ep_contexts_deinit(ep_contexts *contexts)
{
    while (contexts->first != NULL) {
        struct shared_context *entry = contexts->first;
        contexts->first = entry->next;
        free_entry(entry);
    }
    mutex_deinit(&contexts->lock);
}
