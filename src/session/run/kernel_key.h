/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies the text of a kernel by the addresses of its pieces, for tables in memory: equal texts
 * of a plan have one address (step_texts). Comparing the texts themselves, some kilobytes, takes
 * ten microseconds a kernel.
 */
#ifndef CLG_SESSION_KERNEL_KEY_H
#define CLG_SESSION_KERNEL_KEY_H

#include "step/step.h"

typedef struct kernel_key {
    const void *source, *entry, *prelude, *body, *packed;
    uint32_t part, baseline;
} kernel_key;

static inline kernel_key kernel_key_of(const kernel_ref *ref)
{
    return (kernel_key){ref->source, ref->entry, ref->prelude, ref->body,
                        ref->packed, ref->part,  ref->baseline};
}

#endif
