/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a .pb file: as a TensorProto, with and without an owner that keeps its bytes, as external
 * data, and as a sequence, an optional and a map.
 */
#include "fuzz.h"

#include "base/memory.h"
#include "tensor/formats/tensor_proto.h"
#include "tensor/formats/value_proto.h"

static void read_tensor(const uint8_t *data, size_t size_bytes)
{
    const wire_cursor message = wire_open(data, size_bytes);
    static const uint8_t file[64] = {1, 2, 3};
    tensor_proto proto;
    tensor *t;
    if (tensor_proto_parse(&message, &proto) != CLG_OK) return;
    if (tensor_proto_to_tensor(&proto, NULL, &t) == CLG_OK) {
        const char *path = fuzz_file("again.pb", NULL, 0);
        char *name;
        tensor *back;
        if (tensor_proto_save(path, "again", t) == CLG_OK) {
            fuzz_require(tensor_proto_load(path, &name, &back) == CLG_OK);
            fuzz_require(back->dtype == t->dtype && shape_equal(&back->dims, &t->dims));
            tensor_free(back);
            memory_free(name);
        }
        tensor_free(t);
    }
    if (proto.is_external && tensor_proto_resolve(&proto, file, sizeof file, NULL, &t) == CLG_OK)
        tensor_free(t);
}

void fuzz_proto(const uint8_t *data, size_t size_bytes)
{
    read_tensor(data, size_bytes);
    for (int kind = 0; kind <= (int)CLG_VALUE_MAP; kind++) {
        const wire_cursor message = wire_open(data, size_bytes);
        clg_value *value = NULL;
        if (value_proto_read(&message, (clg_value_kind)kind, &value) == CLG_OK) value_free(value);
    }
}
