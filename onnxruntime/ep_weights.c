/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies weights. ONNX Runtime frees its own after compiling; the library uploads a weight when a
 * plan first needs it, again after a lost device, and in another packing for other shapes. A mapped
 * file can serve all of that without a second copy in memory.
 */
#include "ep_weights.h"

#include "base/checked.h"
#include "base/files.h"

#include <clgraph/inspect.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME_BYTES 64

struct weights_store {
    file_view view; /* of the file; closed if the weights are in memory */
    void *memory;   /* else NULL */
};

/* Sets items[i].data to the weight's offset, in multiples of MEMORY_ALIGNMENT: CPU devices read
 * such memory in place. */
static clg_status place(const ep_onnx *onnx, size_t *offsets, size_t *out_size_bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < onnx->n_weights; i++) {
        offsets[i] = at;
        if (!checked_add_size(at, onnx->weights[i].size_bytes, &at) ||
            !checked_add_size(at, MEMORY_ALIGNMENT - 1, &at))
            return error_set(CLG_ERROR_INVALID_MODEL, "the weights exceed the address space");
        at -= at % MEMORY_ALIGNMENT;
    }
    *out_size_bytes = at;
    return CLG_OK;
}

/* ---- in a file ----------------------------------------------------------------------------- */

static clg_status write_file(const ep_onnx *onnx, const size_t *offsets, size_t size_bytes,
                             file_writer *writer)
{
    static const char zeros[MEMORY_ALIGNMENT];
    for (size_t i = 0; i < onnx->n_weights; i++) {
        const ep_weight *w = &onnx->weights[i];
        size_t end = i + 1 < onnx->n_weights ? offsets[i + 1] : size_bytes;
        CLG_TRY(file_writer_append(writer, w->data, w->size_bytes));
        CLG_TRY(file_writer_append(writer, zeros, end - offsets[i] - w->size_bytes));
    }
    return CLG_OK;
}

/* Writes the temporary file of a file that will never be, maps it and removes its name. */
static clg_status open_file(const ep_onnx *onnx, const size_t *offsets, size_t size_bytes,
                            const char *folder, file_view *out_view)
{
    static atomic_uint counter;
    char name[FILE_NAME_BYTES], *path = NULL;
    file_writer writer = {0};
    (void)snprintf(name, sizeof name, "onnxruntime-weights-%u", atomic_fetch_add(&counter, 1));
    CLG_TRY(file_make_folders(folder));
    CLG_TRY(file_join(folder, name, &path));
    clg_status status = file_writer_open(path, &writer);
    if (status == CLG_OK) status = write_file(onnx, offsets, size_bytes, &writer);
    if (status == CLG_OK) status = file_view_open(writer.temporary, FILE_VIEW_REGULAR, out_view);
    file_writer_abandon(&writer);
    memory_free(path);
    return status;
}

static clg_status store_in_file(const ep_onnx *onnx, const size_t *offsets, size_t size_bytes,
                                const ep_options *options, struct weights_store *store)
{
    char *folder = NULL;
    EP_TRY_CLG(clg_cache_path(options->cache_dir, &folder));
    clg_status status = open_file(onnx, offsets, size_bytes, folder, &store->view);
    clg_text_free(folder);
    return status;
}

/* ---- in memory ----------------------------------------------------------------------------- */

static clg_status store_in_memory(const ep_onnx *onnx, const size_t *offsets, size_t size_bytes,
                                  struct weights_store *store)
{
    store->memory = memory_alloc_aligned(size_bytes);
    if (store->memory == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < onnx->n_weights; i++)
        memcpy((char *)store->memory + offsets[i], onnx->weights[i].data,
               onnx->weights[i].size_bytes);
    return CLG_OK;
}

/* ---- both ---------------------------------------------------------------------------------- */

clg_status ep_weights_copy(const ep_host *host, const ep_onnx *onnx, const ep_options *options,
                           ep_weights **out_weights)
{
    size_t size_bytes = 0;
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    ep_weights *w = memory_zalloc(1, sizeof *w);
    size_t *offsets = memory_zalloc(onnx->n_weights + 1, sizeof *offsets);
    if (w == NULL || offsets == NULL) goto failed;
    refcount_init(&w->users);
    w->store = memory_zalloc(1, sizeof *w->store);
    w->items = memory_zalloc(onnx->n_weights + 1, sizeof *w->items);
    if (w->store == NULL || w->items == NULL) goto failed;
    CLG_TRY_GOTO(place(onnx, offsets, &size_bytes), failed);
    if (size_bytes > 0) {
        status = store_in_file(onnx, offsets, size_bytes, options, w->store);
        if (status != CLG_OK) {
            ep_log(host, ORT_LOGGING_LEVEL_INFO, "weights stay in memory: %s", error_text());
            status = store_in_memory(onnx, offsets, size_bytes, w->store);
        }
        if (status != CLG_OK) goto failed;
    }
    const char *data =
        w->store->memory != NULL ? w->store->memory : (const char *)w->store->view.data;
    w->n_items = onnx->n_weights;
    for (size_t i = 0; i < w->n_items; i++)
        w->items[i] = (ep_weight){data + offsets[i], onnx->weights[i].size_bytes};
    memory_free(offsets);
    *out_weights = w;
    return CLG_OK;
failed:
    memory_free(offsets);
    if (w != NULL) ep_weights_release(w);
    return status;
}

void ep_weights_unload(const ep_weights *weights)
{
    if (weights == NULL || weights->store->view.data == NULL) return;
    file_view_unload(&weights->store->view, weights->store->view.data,
                     weights->store->view.size_bytes);
}

void ep_weights_release(ep_weights *weights)
{
    if (weights == NULL || !refcount_release(&weights->users)) return;
    if (weights->store != NULL) {
        file_view_close(&weights->store->view);
        memory_free_aligned(weights->store->memory);
    }
    memory_free(weights->store);
    memory_free(weights->items);
    memory_free(weights);
}
