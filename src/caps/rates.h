/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates how fast a device computes, from what its driver reports, and how long a launch on it
 * may take. Pure functions. See decision 43.
 */
#ifndef CLG_CAPS_RATES_H
#define CLG_CAPS_RATES_H

#include "caps/caps.h"

/* Rates that most kernels reach or exceed: an estimate of a launch's time by them is rather too
 * long than too short. */
typedef struct device_rates {
    double flops_per_ns; /* float32 */
    double bytes_per_ns; /* of device memory, read and written */
    uint32_t units;      /* compute units, at least 1 */
} device_rates;

/* How long a launch on a device may take. */
typedef struct launch_budget {
    uint64_t limit_ns; /* 0: unlimited */
    device_rates rates;
} launch_budget;

/* Returns the estimated nanoseconds of a launch of n_groups work-groups, which occupy a device only
 * if they are as many as its compute units. */
double rates_time_ns(const device_rates *rates, double flops, double bytes, double n_groups);

/* Computes the rates of a device. */
device_rates caps_rates(const device_record *record, const device_caps *caps);

/* clg_context_options.max_launch_ms: no limit. */
#define CAPS_NO_LAUNCH_LIMIT UINT32_MAX

/* Returns the longest time of a launch in nanoseconds; 0: unlimited. max_launch_ms 0 is the default
 * of the device: 0.5 s on GPUs, which may drive a display, and unlimited elsewhere. */
uint64_t caps_launch_limit_ns(const device_caps *caps, uint32_t max_launch_ms);

#endif
