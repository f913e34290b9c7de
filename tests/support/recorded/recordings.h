/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines as OpenCL reports them, for tests of code that depends on records only: no OpenCL is
 * needed.
 */
#ifndef CLG_TESTS_SUPPORT_RECORDINGS_H
#define CLG_TESTS_SUPPORT_RECORDINGS_H

#include "support/recorded/recorded_devices.h"

#define RECORDING_MAX_DEVICES 8

/* A device in its place. Platforms that show no device leave gaps in the platform indices. */
typedef struct recorded_place {
    const device_record *record;
    int platform_index, device_index;
    uint32_t twin; /* 0, or the number of one more card of the same make: PCI bus and UUID differ */
} recorded_place;

typedef struct recording {
    const char *name;
    recorded_place
        places[RECORDING_MAX_DEVICES]; /* in the order of the list; ends where record is NULL */
} recording;

extern const recording recordings[];
extern const size_t n_recordings;

/* NULL when there is not one of that name. */
const recording *recording_find(const char *name);

/* Copies of the records, as ocl_enumerate would give them. Freed by device_records_free. */
clg_status recording_records(const recording *r, device_record **out_records, size_t *out_n);

/* Every recorded device once. */
extern const device_record *const recorded_devices[];
extern const size_t n_recorded_devices;

#endif
