/* SPDX-License-Identifier: Apache-2.0
 *
 * device_context: an initialised device, a utility queue for copies outside of runs, and the
 * registry through which sessions of one model with equal options share an exec (optimised graph,
 * weights and plans). A clg_context (context_handle.h) has one, and another one after a loss of the
 * device.
 */
#ifndef CLG_SESSION_CONTEXT_H
#define CLG_SESSION_CONTEXT_H

#include "base/hash_map.h"
#include "base/threads.h"
#include "caps/rates.h"
#include "ocl/ocl.h"
#include "session/selftest/selftest_records.h"
#include "tensor/value.h"

typedef struct device_context {
    refcount refs;
    ocl_context *ocl;
    clg_device_info info; /* strings belong to ocl's caps and record */
    bool profiling;
    launch_budget budget; /* how long a launch may take */
    /* The clock by which runs and launches are measured; tests replace it. */
    uint64_t (*now_ns)(void);
    mutex utility_lock;
    ocl_queue *utility; /* used under utility_lock */
    mutex registry_lock;
    struct session_exec *execs;   /* weak list: an exec leaves it when freed */
    struct tuning_table *choices; /* see tuning_table.h; guarded by registry_lock */
    bool choices_loaded;          /* from the cache; guarded by registry_lock */
    /* Self-tests (context_validate.c). selftest_records_lock guards the three fields from
     * selftest_records_loaded on; it may be taken while an exec's build_lock and plan_lock, or
     * test_lock, are held. test_lock is held while a kernel is tested. */
    mutex test_lock, selftest_records_lock;
    bool trusting; /* kernels are used without self-tests */
    bool selftest_records_loaded;
    selftest_records records;
    hash_map validated; /* hash of a variant -> self-test status, so far as looked up */
    atomic_uint_fast64_t plans_made, weights_packed; /* counters */
} device_context;

typedef struct context_settings {
    bool profiling;
    bool trusting;          /* use kernels without self-tests */
    uint32_t max_launch_ms; /* as in clg_context_options */
} context_settings;

/* Creates a context. Takes ownership of the reference to ocl, also on failure. */
clg_status context_create(ocl_context *ocl, const context_settings *settings,
                          device_context **out_context);
device_context *context_retain(device_context *context);
void context_free(device_context *context);
/* Makes a new context use the measured choices of an earlier one for the same device. */
void context_inherit(device_context *context, device_context *earlier);
/* Returns whether the device still executes commands; if not, it is recorded as lost. */
bool context_answers(device_context *context);
/* Fills in a device's public description; its strings are borrowed from record and caps. */
void context_describe(const device_record *record, const device_caps *caps,
                      clg_device_info *out_info);

/* Loads the tuning table from the cache at the first call (context_tuning.c). Call it with
 * registry_lock held. A table that cannot be read is logged and ignored. */
void context_load_choices(device_context *context);
/* Adds lines in the tuning table's text format to the table, and stores it in the cache. */
clg_status context_add_choices(device_context *context, const char *lines);
/* Returns the tuning table as text, which the caller frees. */
clg_status context_choices_text(device_context *context, char **out_text);

struct impl_check;
struct lower_context;
struct candidate;
/* Implements plan_compiler.compiles; self is a device_context. */
clg_status context_compiles(void *self, const struct candidate *impl, bool *out_compiles);
/* Sets *out_known: whether context_validate_impl can answer without running a test. */
clg_status context_knows(device_context *context, const struct lower_context *lc,
                         const struct candidate *impl, bool *out_known);
/* Tests a candidate before its first use, or finds the result of an earlier test. */
clg_status context_validate_impl(device_context *context, const struct lower_context *lc,
                                 const struct candidate *impl, struct impl_check *out);

/* Counts the results of self-tests that the cache has for a device of ocl_enumerate, which it does
 * not open. cache_dir: as in ocl_context_options. */
clg_status device_count_selftests(const device_record *device, const char *cache_dir,
                                  size_t *out_n_passed, size_t *out_n_failed);

/* Copies from host to device memory on the utility queue; returns when done. */
clg_status context_upload(device_context *context, ocl_buffer *b, size_t offset_bytes,
                          const void *data, size_t size_bytes);
/* Copies from device to host memory on the utility queue; returns when done. */
clg_status context_download(device_context *context, ocl_buffer *b, size_t offset_bytes, void *data,
                            size_t size_bytes);

/* Fills a buffer, of a multiple of 4 bytes, with zeros on the utility queue; returns when done. */
clg_status context_clear(device_context *context, ocl_buffer *b, size_t size_bytes);

/* Creates a device value from a buffer of the context. Takes ownership of the reference to the
 * buffer, also on failure. */
clg_status context_wrap_buffer(device_context *context, ocl_buffer *b, size_t offset_bytes,
                               clg_dtype dtype, const shape *dims, clg_value **out_value);
/* Returns the host memory of a tensor value; NULL for one in device memory. */
static inline void *value_host_data(const clg_value *v) { return v->host ? v->host->data : NULL; }
/* Returns whether the caller holds the only reference to the value and to its host tensor. */
static inline bool value_is_unshared(const clg_value *v)
{
    return atomic_load(&v->refs.count) == 1 && v->host && atomic_load(&v->host->refs.count) == 1;
}
/* Returns the buffer of a device value of this context, borrowed; NULL for other values. */
ocl_buffer *context_value_buffer(const device_context *context, const clg_value *v);
/* Copies a tensor to another of the same dtype and size, on the host or any device; returns when
 * done. INVALID_ARGUMENT for other values. */
clg_status context_copy_value(const clg_value *from, clg_value *to);
/* Returns whether the value, or an item of it, was in the memory of a device that was lost. */
bool value_is_lost(const clg_value *v);
/* As context_value_buffer, for any context; *out_context is borrowed. */
ocl_buffer *value_buffer(const clg_value *v, device_context **out_context);

#endif
