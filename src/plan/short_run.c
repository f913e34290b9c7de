/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives each launch of a short segment one work-group: one thread computes it (decision 96).
 *
 * Threads of PoCL sleep between runs. To wake a second one takes longer than it saves where all
 * launches together take one thread some ten microseconds; and a host that waits for several
 * threads sleeps too, while it polls for one (decision 31). Kernels of the SIMD class loop over the
 * work that is left, so any number of work-groups computes the same.
 */
#include "base/threads.h"
#include "plan/state.h"

#include <string.h>

/* Time that a second thread must save before it is worth waking: in a virtual machine both it and
 * the host were woken in about 35 us (decision 31). */
#define WAKING_NS 45000.0
/* float32 operations per ns of a core, by its lanes: with 16 and 8 lanes, 75 and 70 % of what two
 * units of 8 lanes do at 3.7 GHz; with 4 a quarter of that. Estimated, not measured */
#define FLOPS_PER_NS_16 90.0
#define FLOPS_PER_NS_8 80.0
#define FLOPS_PER_NS_4 24.0
/* Bytes per ns of a GEMM or convolution, which a core reads in order from caches and memory, and of
 * other steps, most of which take some operations for each element; estimated, not measured. */
#define READ_PER_NS 50.0
#define MOVED_PER_NS 4.0

static atomic_int use = PLAN_SHORT_RUNS_WHERE_FASTER;

void plan_short_runs_use(plan_short_runs mode) { atomic_store(&use, mode); }

static double core_flops_per_ns(const device_caps *caps)
{
    const int lanes = caps_simd_lanes(caps);
    return lanes >= 16 ? FLOPS_PER_NS_16 : lanes >= 8 ? FLOPS_PER_NS_8 : FLOPS_PER_NS_4;
}

/* Kernels, by their source, whose operations are not counted and are few for each element that they
 * move; as those of generated kernels. Of others, such as trees and sorting, nothing is known. */
static const char *const movers[] = {"arg",     "epilogue", "fill",     "gather",   "kvcache",
                                     "norm",    "pad",      "pool",     "quantize", "reduce",
                                     "reverse", "rotary",   "skipnorm", "softmax",  "strided"};

/* Returns whether the time of a step can be estimated. */
static bool is_estimated(const step *s)
{
    if (s->kind != STEP_KERNEL || s->flops > 0 || s->kernel.body) return true;
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        if (strcmp(s->kernel.source, movers[i]) == 0) return true;
    return false;
}

/* Returns the estimated nanoseconds of the step on one thread. */
static double thread_time_ns(const device_caps *caps, const step *s)
{
    const double computing = s->flops / core_flops_per_ns(caps);
    const double moving = step_bytes(s) / (s->flops > 0 ? READ_PER_NS : MOVED_PER_NS);
    return computing > moving ? computing : moving;
}

/* Returns whether one thread computes the segment before others, once awake, could have saved
 * time. */
static bool is_short(const device_caps *caps, const plan_segment *segment)
{
    const double share_of_others = 1.0 - 1.0 / caps->compute_units;
    double saved_ns = 0;
    for (size_t i = 0; i < segment->n_steps; i++) {
        const step *s = segment->steps[i].what;
        if (s->kind == STEP_BLAS_GEMM || !is_estimated(s)) return false;
        saved_ns += thread_time_ns(caps, s) * share_of_others;
        if (saved_ns > WAKING_NS) return false;
    }
    return true;
}

/* Returns whether the launches of a segment have one work-group each. */
static bool is_for_one(const plan_context *context, const plan_segment *segment)
{
    const device_caps *caps = context->caps;
    const int mode = atomic_load_explicit(&use, memory_order_relaxed);
    if (context->kernel_class != CLG_KERNELS_SIMD || caps->kind != CLG_DEVICE_CPU) return false;
    if (mode != PLAN_SHORT_RUNS_WHERE_FASTER) return mode == PLAN_SHORT_RUNS_ALWAYS;
    return caps->family == PLATFORM_POCL && caps->compute_units > 1 && is_short(caps, segment);
}

clg_status short_run_settle(const plan_context *context, plan_segment *segment)
{
    if (!is_for_one(context, segment)) return CLG_OK;
    for (size_t i = 0; i < segment->n_steps; i++) {
        const step *s = segment->steps[i].what;
        if (s->kind != STEP_KERNEL || s->fixed_groups) continue;
        step *one = arena_alloc(&segment->memory, 1, sizeof *one);
        if (!one) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        *one = *s;
        for (uint32_t d = 0; d < s->n_dims; d++)
            if (s->local[d] > 0 && s->global[d] > s->local[d]) one->global[d] = s->local[d];
        segment->steps[i].what = one;
    }
    return CLG_OK;
}
