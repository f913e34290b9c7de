/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves a device selector on a recorded machine. The first byte is the machine; a line end
 * separates the selector from its fallback.
 */
#include "fuzz.h"

#include "base/error.h"
#include "base/memory.h"
#include "support/recorded/recordings.h"

#include <stdlib.h>
#include <string.h>

static void select_on(const recording *machine, const char *selector, const char *fallback)
{
    device_record *records;
    device_caps *caps;
    device_choice *chosen;
    size_t n, n_chosen;
    fuzz_require(recording_records(machine, &records, &n) == CLG_OK);
    fuzz_require(caps_derive(records, n, &caps) == CLG_OK);
    if (caps_select(records, caps, n, selector, fallback, &chosen, &n_chosen) == CLG_OK) {
        fuzz_require(n_chosen >= 1);
        for (size_t i = 0; i < n_chosen; i++) {
            const device_choice *c = &chosen[i];
            fuzz_require(c->index < n);
            fuzz_require(c->part == DEVICE_WHOLE ||
                         (c->part >= 0 && caps[c->index].kind == CLG_DEVICE_CPU));
        }
    } else {
        fuzz_require(n_chosen == 0 && *error_text());
    }
    memory_free(chosen);
    device_caps_free(caps, n);
    device_records_free(records, n);
}

void fuzz_selector(const uint8_t *data, size_t size_bytes)
{
    if (size_bytes == 0) return;
    char *selector = fuzz_text(data + 1, size_bytes - 1), *fallback = strchr(selector, '\n');
    if (fallback) *fallback++ = '\0';
    select_on(&recordings[data[0] % n_recordings], selector, fallback);
    free(selector);
}
