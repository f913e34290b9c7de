/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutates a ZIP file, then makes the CRC in the directory right for stored entries in three of four
 * cases, so that changed arrays are read.
 */
#include "fuzz.h"

#include "tensor/formats/zip.h"

#include <string.h>

#define DIRECTORY_HEAD_BYTES 46
#define AT_CRC 16

static void put_crc(uint8_t *to, unsigned long crc)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(crc >> (8 * i));
}

/* Sets the CRC of the n-th header of the directory. */
static void set_crc(uint8_t *data, size_t size_bytes, size_t n, unsigned long crc)
{
    for (size_t at = 0; at + DIRECTORY_HEAD_BYTES <= size_bytes; at++)
        if (memcmp(data + at, "PK\1\2", 4) == 0 && n-- == 0) {
            put_crc(data + at + AT_CRC, crc);
            return;
        }
}

size_t fuzz_mutate_zip(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed)
{
    zip_archive zip = {0};
    size_bytes = LLVMFuzzerMutate(data, size_bytes, max_bytes);
    if (seed % 4 && zip_open(data, size_bytes, &zip) == CLG_OK) {
        for (size_t i = 0; i < zip.count; i++)
            if (zip.entries[i].method == 0)
                set_crc(data, size_bytes, i,
                        crc32(0, zip.entries[i].packed, (uInt)zip.entries[i].packed_bytes));
    }
    zip_close(&zip);
    return size_bytes;
}
