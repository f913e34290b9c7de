/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates tensors from TensorProtos, whose data are in the model itself, in external files, or in
 * memory of the application's. An external file must be below the model's folder, after symbolic
 * links are resolved, so that a model cannot read other files.
 */
#include "base/files.h"
#include "onnx/onnx_internal.h"

#include <inttypes.h>
#include <string.h>

struct onnx_source {
    refcount refs;
    file_view view; /* of the file; unused with copy */
    void *copy;     /* a copy of the bytes in place of a file, or NULL */
    size_t copy_bytes;
};

static clg_status create(onnx_source **out_source)
{
    *out_source = memory_zalloc(1, sizeof **out_source);
    if (!*out_source) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&(*out_source)->refs);
    return CLG_OK;
}

unsigned onnx_view_flags(unsigned flags) { return flags & ONNX_READ_FILES ? FILE_VIEW_READ : 0; }

clg_status onnx_source_open(const char *path, unsigned view_flags, onnx_source **out_source)
{
    CLG_TRY(create(out_source));
    clg_status status = file_view_open(path, view_flags, &(*out_source)->view);
    if (status != CLG_OK) {
        onnx_source_release(*out_source);
        *out_source = NULL;
    }
    return status;
}

clg_status onnx_source_copy(const void *data, size_t size_bytes, onnx_source **out_source)
{
    CLG_TRY(create(out_source));
    onnx_source *s = *out_source;
    s->copy = memory_alloc_aligned(size_bytes);
    if (!s->copy) {
        onnx_source_release(s);
        *out_source = NULL;
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (size_bytes > 0) memcpy(s->copy, data, size_bytes);
    s->copy_bytes = size_bytes;
    return CLG_OK;
}

const void *onnx_source_data(const onnx_source *s, size_t *out_size_bytes)
{
    *out_size_bytes = s->copy ? s->copy_bytes : s->view.size_bytes;
    return s->copy ? s->copy : s->view.data;
}

static void retain(void *source) { refcount_retain(&((onnx_source *)source)->refs); }

void onnx_source_release(void *source)
{
    onnx_source *s = source;
    if (!s || !refcount_release(&s->refs)) return;
    file_view_close(&s->view);
    memory_free_aligned(s->copy);
    memory_free(s);
}

static void unload(void *source, const void *data, size_t size_bytes)
{
    const onnx_source *s = source;
    if (!s->copy) file_view_unload(&s->view, data, size_bytes);
}

tensor_owner onnx_source_owner(onnx_source *s)
{
    return (tensor_owner){
        .retain = retain, .release = onnx_source_release, .user = s, .unload = unload};
}

void onnx_source_unload(onnx_source *s)
{
    size_t size_bytes;
    const void *data = onnx_source_data(s, &size_bytes);
    unload(s, data, size_bytes);
}

/* Returns the source of a file of external data, opened once for all of its tensors. */
static clg_status open_file(onnx_importer *im, const char *location, const char *path,
                            onnx_source **out_source)
{
    size_t at = hash_map_get_string(&im->file_index, location);
    if (at != HASH_MAP_NONE) {
        *out_source = im->files[at];
        return CLG_OK;
    }
    CLG_TRY(MEMORY_RESERVE(im->files, im->files_capacity, im->n_files + 1));
    CLG_TRY(hash_map_set_string(&im->file_index, location, im->n_files));
    clg_status status =
        onnx_source_open(path, onnx_view_flags(im->flags) | FILE_VIEW_REGULAR, out_source);
    im->files[im->n_files++] = *out_source;
    return status;
}

static clg_status find_file(onnx_importer *im, const char *location, const char *path,
                            onnx_source **out_source)
{
    char shown[NAME_TEXT_BYTES];
    bool is_below;
    *out_source = NULL;
    if (!file_exists(path)) {
        if (im->flags & ONNX_ALLOW_MISSING_DATA) return CLG_OK;
        error_set(CLG_ERROR_IO, "the file '%s' with the model's data is not there",
                  name_text(location, shown));
        error_hint("put it beside the model, under this name");
        return CLG_ERROR_IO;
    }
    CLG_TRY(file_is_below(im->folder, path, &is_below));
    if (!is_below) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the data in '%s' is outside the model's folder",
                         name_text(location, shown));
    }
    return open_file(im, location, path, out_source);
}

/* Creates a tensor from an external file. */
static clg_status file_tensor(onnx_importer *im, const tensor_proto *proto, const char *location,
                              tensor **out_tensor, const char **out_missing)
{
    char shown[NAME_TEXT_BYTES];
    char *path;
    onnx_source *file = NULL;
    if (!file_name_is_inside(location)) {
        return error_set(CLG_ERROR_INVALID_MODEL, "the data in '%s' is outside the model's folder",
                         name_text(location, shown));
    }
    *out_missing = location;
    if (!im->folder) {
        if (im->flags & ONNX_ALLOW_MISSING_DATA) return CLG_OK;
        return error_set(
            CLG_ERROR_IO,
            "the data is in the file '%s', which a model in memory cannot have beside it",
            name_text(location, shown));
    }
    CLG_TRY(file_join(im->folder, location, &path));
    clg_status status = find_file(im, location, path, &file);
    memory_free(path);
    if (status != CLG_OK || !file) return status;
    size_t size_bytes;
    const void *data = onnx_source_data(file, &size_bytes);
    tensor_owner owner = onnx_source_owner(file);
    return tensor_proto_resolve(proto, data, size_bytes, &owner, out_tensor);
}

/* ---- memory of the application's ------------------------------------------------------------- */

struct onnx_memory {
    refcount refs;
    clg_external_data_callback get;
    clg_release_callback release;
    void *user;
};

clg_status onnx_memory_create(clg_external_data_callback get, clg_release_callback release,
                              void *user, onnx_memory **out_memory)
{
    *out_memory = memory_zalloc(1, sizeof **out_memory);
    if (!*out_memory) {
        if (release) release(user);
        return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    **out_memory = (onnx_memory){.get = get, .release = release, .user = user};
    refcount_init(&(*out_memory)->refs);
    return CLG_OK;
}

static void retain_memory(void *memory) { refcount_retain(&((onnx_memory *)memory)->refs); }

static void release_memory(void *memory)
{
    onnx_memory *m = memory;
    if (!refcount_release(&m->refs)) return;
    if (m->release) m->release(m->user);
    memory_free(m);
}

void onnx_memory_release(onnx_memory *memory)
{
    if (memory) release_memory(memory);
}

/* Asks the application for the bytes of a tensor, which are not copied. */
static clg_status memory_tensor(const onnx_importer *im, const tensor_proto *proto,
                                const char *location, tensor **out_tensor)
{
    onnx_memory *m = im->external;
    char shown[NAME_TEXT_BYTES];
    size_t size_bytes;
    error_record before;
    const void *data = NULL;
    CLG_TRY(tensor_proto_external_bytes(proto, &size_bytes));
    if (size_bytes > 0) {
        error_callback_begin(&before);
        clg_status status = error_callback_end(
            &before, m->get(m->user, location, proto->external_offset, size_bytes, &data),
            "the callback for external data");
        if (status == CLG_OK && !data) {
            status = error_set(CLG_ERROR_INVALID_ARGUMENT,
                               "the callback for external data gave no pointer for %zu bytes at "
                               "offset %" PRIu64 " of '%s'",
                               size_bytes, proto->external_offset, name_text(location, shown));
        }
        if (status != CLG_OK) return tensor_proto_error(proto, status);
    }
    const tensor_owner owner = {.retain = retain_memory, .release = release_memory, .user = m};
    return tensor_proto_from_external(proto, data, &owner, out_tensor);
}

static clg_status external_tensor(onnx_importer *im, const tensor_proto *proto, tensor **out_tensor,
                                  const char **out_missing)
{
    const char *location;
    CLG_TRY(importer_name(&im->names[3], proto->location, "a location of data", &location));
    return im->external ? memory_tensor(im, proto, location, out_tensor)
                        : file_tensor(im, proto, location, out_tensor, out_missing);
}

clg_status importer_tensor(onnx_importer *im, const tensor_proto *proto, tensor **out_tensor,
                           const char **out_missing)
{
    *out_tensor = NULL;
    *out_missing = NULL;
    if (proto->is_external) return external_tensor(im, proto, out_tensor, out_missing);
    tensor_owner owner = onnx_source_owner(im->model);
    return tensor_proto_to_tensor(proto, &owner, out_tensor);
}
