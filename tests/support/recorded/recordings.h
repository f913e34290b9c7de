/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines made of recorded devices, for tests of code that depends only on device records: no
 * OpenCL is needed.
 */
#ifndef CLG_TESTS_SUPPORT_RECORDINGS_H
#define CLG_TESTS_SUPPORT_RECORDINGS_H

#include "support/recorded/recorded_devices.h"

#define RECORDING_MAX_DEVICES 8

/* A device with its platform and device index in a machine. Platforms without devices leave gaps in
 * the platform indices. */
typedef struct recorded_place {
    const device_record *record;
    int platform_index, device_index;
    uint32_t twin; /* 0, or the number of another card of the same model: PCI bus and UUID differ */
} recorded_place;

typedef struct recording {
    const char *name;
    recorded_place
        places[RECORDING_MAX_DEVICES]; /* in the order of enumeration; ends where record is NULL */
} recording;

extern const recording recordings[];
extern const size_t n_recordings;

/* Finds a machine by its name; NULL when there is none. */
const recording *recording_find(const char *name);

/* Copies the machine's records, as ocl_enumerate would return them. Freed by device_records_free.
 */
clg_status recording_records(const recording *r, device_record **out_records, size_t *out_n);

/* All recorded devices, each once. */
extern const device_record *const recorded_devices[];
extern const size_t n_recorded_devices;

#endif
