/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the fields of a context, private to src/ocl.
 */
#ifndef CLG_OCL_CONTEXT_H
#define CLG_OCL_CONTEXT_H

#include "base/threads.h"
#include "ocl/cache/disk_cache.h"
#include "ocl/diagnose/machine.h"
#include "ocl/helper/trial.h"
#include "ocl/ocl.h"
#include "ocl/program.h"
#include "ocl/tier_queue.h"

typedef struct helper_pool helper_pool;

/* The last upload, after which other queues order their commands (queue_order.c). Guarded by the
 * context's lock, except for reading the count. */
typedef struct upload_order {
    atomic_uint_fast64_t count; /* blocking writes of the upload queue */
    cl_event last;              /* of the last write; NULL once it is known to be complete */
    bool is_ignored;            /* by a test */
} upload_order;

struct ocl_context {
    refcount references; /* of the owner and of each buffer, queue and kernel */
    /* The OpenCL error with which the device was lost (decision 42); CL_SUCCESS: it was not. Never
     * reset. */
    atomic_int lost_code;
    _Atomic(const char *) lost_call; /* which gave the error, for messages; a literal or NULL */
    atomic_bool is_replaced; /* clg_context_recover has made another context for the device */
    /* Frees the context with the last reference. A function pointer, so that files that release
     * references do not depend on context_create.c, which calls them. */
    void (*destroy)(ocl_context *ocl);
    machine_info machine; /* the list of devices that contains this one */
    size_t index;         /* of the device in `machine` */
    cl_context handle;
    cl_device_id device;
    struct cpu_parts *parts;        /* a reference, if device is one of them; else NULL */
    cl_command_queue callers_queue; /* NULL once a queue has taken it; guarded by lock */
    mutex lock;
    upload_order uploads;
    bool profiling;
    disk_cache *disk_cache;
    hash128 identity; /* hash of platform, device, driver and library; in every cache key */
    program_table programs;
    helper_pool *helpers; /* NULL in the helper itself and on Oclgrind */
    trial_table trials;
    clg_compilation compilation; /* not DEFAULT */
    tier_queue tiers;
    atomic_bool used_blas;
    atomic_int parts_state; /* of part_probe.c: whether parts of launches work, once known */
    atomic_uint_fast64_t n_compiled, n_loaded, n_launched, n_spins, n_step_spins, n_blas_calls,
        n_buffers, buffer_bytes, buffer_bytes_peak, bytes_in, bytes_out;
};

static inline const device_record *context_record(const ocl_context *ocl)
{
    return &ocl->machine.records[ocl->index];
}

static inline const device_caps *context_caps(const ocl_context *ocl)
{
    return &ocl->machine.caps[ocl->index];
}

static inline bool context_has_quirk(const ocl_context *ocl, device_quirk which)
{
    return (context_caps(ocl)->quirks & (uint32_t)which) != 0;
}

/* Computes what identifies platform, device, driver and library. */
clg_status context_identify(const device_record *record, hash128 *out_identity);
/* Returns the cache key of data that is valid only for this device, driver and library. */
hash128 context_key(const ocl_context *ocl, const char *kind, const void *data, size_t size_bytes);

/* Returns p's cl_program; NULL until it is built. */
static inline cl_program program_handle(ocl_context *ocl, const ocl_program *p)
{
    mutex_lock(&ocl->programs.lock);
    cl_program handle = p->building ? NULL : p->handle;
    mutex_unlock(&ocl->programs.lock);
    return handle;
}

/* Records that the device is lost, as `call`, a literal, showed with `code`: from now on, no call
 * of this context reaches the driver, except releases and one wait of each queue with commands in
 * flight. */
void context_mark_lost(ocl_context *ocl, cl_int code, const char *call);
/* As cl_check, for a call with objects of this context; records a loss that the code shows. */
clg_status context_check(ocl_context *ocl, cl_int code, const char *call);

/* Calls an OpenCL function with objects of context c, unless its device is lost, and returns the
 * status: CONTEXT_DO(c, Finish, (queue)). CL_TRY returns it from the calling function when the call
 * fails. */
#define CONTEXT_DO(c, function, arguments)                                                         \
    (ocl_context_is_lost(c) ? ocl_context_require(c)                                               \
                            : context_check((c), cl.function arguments, "cl" #function))
#define CL_TRY(c, function, arguments) CLG_TRY(CONTEXT_DO(c, function, arguments))

static inline void count(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif
