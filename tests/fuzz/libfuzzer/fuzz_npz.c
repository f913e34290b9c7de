/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads all arrays of a .npz file, and finds each by its name.
 */
#include "fuzz.h"

#include "base/hash_map.h"
#include "tensor/formats/npz.h"

void fuzz_npz(const uint8_t *data, size_t size_bytes)
{
    npz_reader reader = {0};
    if (npz_open_memory(data, size_bytes, &reader) == CLG_OK) {
        fuzz_require(npz_find(&reader, "no such array") == HASH_MAP_NONE || reader.count > 0);
        for (size_t i = 0; i < reader.count; i++) {
            tensor *t = NULL;
            fuzz_require(npz_find(&reader, reader.names[i]) != HASH_MAP_NONE);
            if (npz_read(&reader, i, &t) != CLG_OK) fuzz_require(!t);
            tensor_free(t);
        }
    }
    npz_close(&reader);
}
