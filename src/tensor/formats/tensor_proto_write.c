/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes tensors as TensorProtos, in messages and in .pb files. The bytes of numbers are borrowed,
 * so that a large tensor is copied to its file only.
 */
#include "base/files.h"
#include "tensor/formats/tensor_fields.h"
#include "tensor/formats/tensor_proto.h"

#include <inttypes.h>
#include <stdio.h>

static void put_entry(wire_writer *w, const char *key, const char *value)
{
    wire_begin(w, EXTERNAL_DATA);
    wire_put_string(w, ENTRY_KEY, key);
    wire_put_string(w, ENTRY_VALUE, value);
    wire_end(w);
}

static void put_number(wire_writer *w, const char *key, uint64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRIu64, number);
    put_entry(w, key, digits);
}

void tensor_proto_put(wire_writer *w, const char *name, const tensor *t,
                      const tensor_proto_place *external)
{
    for (int i = 0; i < t->dims.rank; i++) wire_put_int(w, DIMS, t->dims.dims[i]);
    wire_put_int(w, DATA_TYPE, t->dtype);
    if (name[0]) wire_put_string(w, NAME, name);
    if (t->dtype == CLG_STRING) {
        for (int64_t i = 0; i < t->n_elements; i++)
            wire_put_string(w, STRING_DATA, tensor_get_string(t, i));
    } else if (external) {
        put_entry(w, "location", external->location);
        put_number(w, "offset", external->offset_bytes);
        put_number(w, "length", t->size_bytes);
        wire_put_int(w, DATA_LOCATION, LOCATION_EXTERNAL);
    } else {
        wire_put_borrowed(w, RAW_DATA, t->data, t->size_bytes);
    }
}

static clg_status append(void *writer, const void *data, size_t size_bytes)
{
    return file_writer_append(writer, data, size_bytes);
}

clg_status tensor_proto_save(const char *path, const char *name, const tensor *t)
{
    clg_status status;
    size_t size_bytes;
    wire_writer w;
    file_writer writer = {0};
    wire_writer_init(&w);
    tensor_proto_put(&w, name, t, NULL);
    CLG_TRY_GOTO(wire_writer_size(&w, &size_bytes), done); /* before the file is touched */
    CLG_TRY_GOTO(file_writer_open(path, &writer), done);
    CLG_TRY_GOTO(wire_writer_send(&w, append, &writer), done);
    status = file_writer_commit(&writer);
done:
    file_writer_abandon(&writer);
    wire_writer_deinit(&w);
    return status;
}
