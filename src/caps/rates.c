/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the estimates of rates.h. OpenCL reports compute units and clocks, but not what a unit
 * computes in a cycle, nor the bandwidth of memory.
 */
#include "caps/rates.h"

/* What a kernel reaches of a GPU's peak at least, if it is not very unsuited to the device. */
#define SHARE_OF_PEAK 0.125
#define DEFAULT_CLOCK_MHZ 500
#define DEFAULT_LIMIT_MS 500
/* Bytes per ns (GB/s) of a CPU's memory, of memory that a GPU shares with the CPU, and of a card's:
 * those of slow ones. */
#define CPU_BYTES_PER_NS 4.0
#define SHARED_BYTES_PER_NS 8.0
#define CARD_BYTES_PER_NS 32.0

/* Returns the float32 operations of a compute unit in a cycle, of the smallest ones of the
 * family. */
static double unit_flops(const device_caps *caps)
{
    switch (caps->family) {
    case PLATFORM_NVIDIA:
    case PLATFORM_AMD:
    case PLATFORM_APPLE:
    case PLATFORM_QUALCOMM: return 2.0 * 64.0;
    case PLATFORM_ARM: return 2.0 * 16.0;
    case PLATFORM_INTEL_GPU: return 2.0 * 8.0;
    default: return 2.0 * (caps->vector_width > 4 ? caps->vector_width : 4.0);
    }
}

device_rates caps_rates(const device_record *record, const device_caps *caps)
{
    const uint32_t mhz = record->max_clock_mhz > 0 ? record->max_clock_mhz : DEFAULT_CLOCK_MHZ;
    device_rates r = {.units = caps->compute_units > 0 ? caps->compute_units : 1};
    r.flops_per_ns = SHARE_OF_PEAK * unit_flops(caps) * r.units * (double)mhz * 1e-3;
    r.bytes_per_ns = caps->kind == CLG_DEVICE_CPU ? CPU_BYTES_PER_NS
                     : caps->unified_memory       ? SHARED_BYTES_PER_NS
                                                  : CARD_BYTES_PER_NS;
    return r;
}

double rates_time_ns(const device_rates *rates, double flops, double bytes, double n_groups)
{
    const double share = n_groups < (double)rates->units ? n_groups / (double)rates->units : 1.0;
    const double computing = flops / (rates->flops_per_ns * share),
                 moving = bytes / rates->bytes_per_ns;
    return computing > moving ? computing : moving;
}

/* Returns whether a watchdog of the system may reset the device during a long launch. */
static bool is_watched(const device_caps *caps)
{
    return !caps->is_software &&
           (caps->kind == CLG_DEVICE_INTEGRATED_GPU || caps->kind == CLG_DEVICE_DISCRETE_GPU);
}

uint64_t caps_launch_limit_ns(const device_caps *caps, uint32_t max_launch_ms)
{
    if (max_launch_ms == CAPS_NO_LAUNCH_LIMIT) return 0;
    if (max_launch_ms == 0) max_launch_ms = is_watched(caps) ? DEFAULT_LIMIT_MS : 0;
    return (uint64_t)max_launch_ms * 1000000;
}
