/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of the memory and time that models take, for models that are not trusted. clgraph.h
 * includes this header, and its rules apply.
 *
 * A call that would exceed a limit fails with LIMIT, and its message names the limit; nothing is in
 * flight then, and its objects can be used again and freed. What a plan needs is compared with the
 * limits before it is allocated or computed, and every allocation is counted. docs/security.md says
 * what is not covered: memory that drivers take for themselves above all.
 *
 *     clg_limits limits = CLG_LIMITS_UNTRUSTED;
 *     clg_model_options model_options = CLG_MODEL_OPTIONS_INIT;
 *     clg_session_options session_options = CLG_SESSION_OPTIONS_INIT;
 *     limits.max_memory_bytes = (uint64_t)4 << 30;
 *     model_options.limits = session_options.limits = &limits;
 */
#ifndef CLGRAPH_LIMITS_H
#define CLGRAPH_LIMITS_H

#include <clgraph/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In each field, 0 means no limit. */
struct clg_limits {
    size_t struct_size;
    /* Bytes that clgraph allocates on host and device together. In a model's options: for the
     * model, without files that are mapped. In a session's: for all sessions of one model, context
     * and equal options (they share weights), and what the model takes if it was loaded with
     * max_memory_bytes. Values of the application's do not count; copies of them do. */
    uint64_t max_memory_bytes;
    /* Steps of a run: launches of kernels, copies and calls of CLBlast; in unrolled loops those of
     * each iteration. A loop that is not unrolled counts as one iteration, and
     * clg_session_options.max_iterations is its limit. */
    uint64_t max_steps;
    /* Time of loading a model, of creating a session, of a preparation, and in a run of planning
     * and compiling. The call ends at the latest when the driver's call in progress does. */
    uint64_t max_compile_ms;
    /* Time of a run without planning and compiling. With it, runs wait where more than 100 ms of
     * estimated work would be in the device's queue; a launch in progress is waited for. */
    uint64_t max_run_ms;
};
#define CLG_LIMITS_INIT                                                                            \
    {                                                                                              \
        sizeof(clg_limits), 0, 0, 0, 0                                                             \
    }
/* For models from anywhere, as cltool --limits untrusted: 1 GiB, 100,000 steps, 60 s to compile and
 * 30 s to run. */
#define CLG_LIMITS_UNTRUSTED                                                                       \
    {                                                                                              \
        sizeof(clg_limits), (uint64_t)1 << 30, 100000, 60000, 30000                                \
    }

#ifdef __cplusplus
}
#endif

#endif
