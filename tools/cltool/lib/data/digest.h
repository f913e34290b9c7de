/* SPDX-License-Identifier: Apache-2.0
 *
 * The 64-bit FNV-1a hash of bytes, which shows whether outputs changed; not cryptographic.
 */
#ifndef CLTOOL_DIGEST_H
#define CLTOOL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct digest {
    uint64_t state;
} digest;

static inline digest digest_start(void) { return (digest){UINT64_C(0xcbf29ce484222325)}; }

static inline void digest_add(digest *d, const void *data, size_t size_bytes)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size_bytes; i++)
        d->state = (d->state ^ bytes[i]) * UINT64_C(0x100000001b3);
}

#endif
