/* SPDX-License-Identifier: Apache-2.0
 *
 * clg_context inside: one device made ready, a utility queue for copies outside of runs, and the
 * registry through which sessions of one model and equal options share an exec.
 */
#ifndef CLG_SESSION_CONTEXT_H
#define CLG_SESSION_CONTEXT_H

#include "base/hash_map.h"
#include "base/threads.h"
#include "ocl/ocl.h"
#include "session/selftest/selftest_records.h"
#include "tensor/value.h"

struct clg_context {
    refcount refs;
    ocl_context *ocl;
    clg_device_info info; /* strings belong to ocl's caps and record */
    bool profiling;
    mutex utility_lock;
    ocl_queue *utility; /* used under utility_lock */
    mutex registry_lock;
    struct session_exec *execs;   /* not references: an exec leaves the list when it is freed */
    struct tuning_table *choices; /* measured ones; under registry_lock, like the next */
    bool choices_loaded;
    /* Of self-tests (context_validate.c); under selftest_records_lock, which may be taken under
     * any lock of an exec, and under test_lock, which is held while a kernel is tested. */
    mutex test_lock, selftest_records_lock;
    bool trusting; /* without self-tests */
    bool selftest_records_loaded;
    selftest_records records;
    hash_map validated; /* variants asked about so far -> what is known of them */
    atomic_uint_fast64_t plans_made, weights_packed;
};

typedef struct context_settings {
    bool profiling;
    bool trusting; /* kernels are used without being tested */
} context_settings;

/* Takes the reference to ocl over, also on failure. */
clg_status context_create(ocl_context *ocl, const context_settings *settings,
                          clg_context **out_context);
clg_context *context_retain(clg_context *context);
void context_free(clg_context *context);
/* Fills a public description from a record and its caps; strings are borrowed from them. */
void context_describe(const device_record *record, const device_caps *caps,
                      clg_device_info *out_info);

/* Measured choices of kernels (context_choices.c). load: what the cache has, at the first call,
 * under registry_lock. */
void context_load_choices(clg_context *context);
clg_status context_add_choices(clg_context *context, const char *lines);
clg_status context_choices_text(clg_context *context, char **out_text);

struct lower_context;
struct candidate;
/* plan_compiler.compiles of a clg_context. */
clg_status context_compiles(void *self, const struct candidate *impl, bool *out_compiles);
/* Whether context_validate_impl would answer without a test. */
clg_status context_knows(clg_context *context, const struct lower_context *lc,
                         const struct candidate *impl, bool *out_known);
/* impl_validator.passes of a clg_context. */
clg_status context_validate_impl(void *self, const struct lower_context *lc,
                                 const struct candidate *impl, bool *out_passes);

/* Blocking copies on the utility queue. */
clg_status context_upload(clg_context *context, ocl_buffer *b, size_t offset_bytes,
                          const void *data, size_t size_bytes);
clg_status context_download(clg_context *context, ocl_buffer *b, size_t offset_bytes, void *data,
                            size_t size_bytes);

/* Device values: a buffer of a context. The reference to the buffer is taken over, also on
 * failure. */
clg_status context_wrap_buffer(clg_context *context, ocl_buffer *b, size_t offset_bytes,
                               clg_dtype dtype, const shape *dims, clg_value **out_value);
/* The host memory of a tensor; NULL on a device. */
static inline void *value_host_data(const clg_value *v) { return v->host ? v->host->data : NULL; }
/* Whether only the caller holds the value and its content. */
static inline bool value_is_unshared(const clg_value *v)
{
    return atomic_load(&v->refs.count) == 1 && v->host && atomic_load(&v->host->refs.count) == 1;
}
/* The buffer of a device value of this context; NULL when it is not one. Borrowed. */
ocl_buffer *context_value_buffer(const clg_context *context, const clg_value *v);
/* The same for any context; *out_context is borrowed. */
ocl_buffer *value_buffer(const clg_value *v, clg_context **out_context);

#endif
