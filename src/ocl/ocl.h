/* SPDX-License-Identifier: Apache-2.0
 *
 * The face of src/ocl, the only code that calls OpenCL. Upper layers see devices, contexts, buffers,
 * queues, kernels and CLBlast through these types; no OpenCL header is needed to read this one. Every call
 * can fail with a status and a sentence that has the OpenCL error by name.
 *
 * Threads: a context, its program store and buffers may be used from any thread; a queue and the kernels
 * made for it belong to one thread at a time.
 */
#ifndef CLG_OCL_OCL_H
#define CLG_OCL_OCL_H

#include "caps/caps.h"
#include "step/step.h"

/* ---- the machine --------------------------------------------------------------------------------- */

/* Every device there is, with capabilities derived (not probed). Both arrays have *out_n entries; released by
 * device_records_free and device_caps_free. NO_OPENCL when there is no loader or no platform. Enumerated
 * anew each time: drivers answer from memory, in microseconds. */
clg_status ocl_enumerate(device_record **out_records, device_caps **out_caps, size_t *out_n);

/* ---- contexts -------------------------------------------------------------------------------------- */

typedef struct ocl_context ocl_context;

typedef struct ocl_context_options {
    const char *cache_dir; /* NULL: default folder; "": memory only */
    uint32_t cpu_threads;  /* 0: all */
    bool profiling;        /* queues keep time stamps */
    const char
        *compile_helper;      /* path of the compile helper; NULL: found; "off": none (helper.h) */
    uint32_t compile_limit_s; /* for one build in it; 0: the default */
    uint32_t compile_limit_mib; /* resident memory of it; 0: the default */
    bool bare;                  /* the helper's own context: no probes, no helper */
} ocl_context_options;

/* A context on records[index] of ocl_enumerate; proves capabilities (remembered in the store). */
clg_status ocl_context_create(size_t device_index, const ocl_context_options *options,
                              ocl_context **out_context);
/* Over the caller's cl_context and cl_device_id (and cl_command_queue, may be NULL: then used by the first
 * queue created), which are retained. */
clg_status ocl_context_wrap(void *cl_context, void *cl_device_id, void *cl_command_queue,
                            const ocl_context_options *options, ocl_context **out_context);
/* For tests, right after making the context: kernels for matrix units are offered here too, with the instruction emulated,
 * where the device has no such unit, once the emulation has passed the probe. They are slow. Nothing in the library calls this. */
clg_status ocl_context_emulate_matrix(ocl_context *c);
ocl_context *ocl_context_retain(ocl_context *c);
void ocl_context_free(ocl_context *c);
const device_caps *ocl_context_caps(const ocl_context *c);
const device_record *ocl_context_record(const ocl_context *c);
void *ocl_context_handle(const ocl_context *c);        /* cl_context */
void *ocl_context_device_handle(const ocl_context *c); /* cl_device_id */

/* Small facts that hold for this platform, device, driver and library version, kept in the store: verdicts of
 * self-tests, results of tuning. name says which fact and in which version; what is a line for listings.
 * recall: false when nothing is known; *out_data by memory_free. remember: what goes wrong is logged. */
bool ocl_context_recall(ocl_context *c, const char *name, char **out_data, size_t *out_size_bytes);
void ocl_context_remember(ocl_context *c, const char *name, const char *what, const void *data,
                          size_t size_bytes);

/* What a context has done so far; for tests, `cltool` and bench. */
typedef struct ocl_counters {
    uint64_t programs_compiled; /* by the driver, from source */
    uint64_t programs_loaded;   /* from the store on disk */
    uint64_t kernels_launched, blas_calls;
    uint64_t buffer_bytes, buffer_bytes_peak; /* on the device, by this context */
} ocl_counters;
void ocl_context_counters(const ocl_context *c, ocl_counters *out_counters);

/* ---- buffers ----------------------------------------------------------------------------------------- */

typedef struct ocl_buffer ocl_buffer; /* counts references */

typedef enum ocl_buffer_flags {
    OCL_BUFFER_DEVICE = 0,
    OCL_BUFFER_HOST_VISIBLE = 1 /* pinned, cheap to map: inputs and outputs */
} ocl_buffer_flags;

/* size 0 makes a buffer of a few bytes. OUT_OF_DEVICE_MEMORY says how much of what. */
clg_status ocl_buffer_create(ocl_context *c, size_t size_bytes, ocl_buffer_flags flags,
                             ocl_buffer **out_buffer);
/* Over host memory that a device on the host reads where it lies, aligned to its buffer_align_bytes; the memory must stay
 * as it is while the buffer is there. Not counted as the device's. */
clg_status ocl_buffer_lend(ocl_context *c, const void *data, size_t size_bytes,
                           ocl_buffer **out_buffer);
/* That only has a size, for arguments of drafts that will not be launched here. */
clg_status ocl_buffer_create_draft(ocl_context *c, size_t size_bytes, ocl_buffer **out_buffer);
/* Around a cl_mem of the caller's, retained. */
clg_status ocl_buffer_wrap(ocl_context *c, void *cl_mem, ocl_buffer **out_buffer);
/* Whether its memory is the caller's, and may be that of other buffers too. */
bool ocl_buffer_is_callers(const ocl_buffer *b);
ocl_buffer *ocl_buffer_retain(ocl_buffer *b);
void ocl_buffer_free(ocl_buffer *b);
size_t ocl_buffer_size(const ocl_buffer *b);
void *ocl_buffer_handle(const ocl_buffer *b); /* cl_mem */

/* ---- queues ------------------------------------------------------------------------------------------- */

typedef struct ocl_queue ocl_queue; /* in order */

clg_status ocl_queue_create(ocl_context *c, ocl_queue **out_queue);
/* Never the caller's queue and never with time stamps: for work beside runs. */
clg_status ocl_queue_create_own(ocl_context *c, ocl_queue **out_queue);
/* Like create_own, one per context: every other queue orders what it is given after the blocking
 * writes of this one that returned before. All else that one queue wrote and another reads is
 * ordered by a finish or an event in between. */
clg_status ocl_queue_create_upload(ocl_context *c, ocl_queue **out_queue);
/* For tests: queues do not wait for uploads any more. Nothing in the library calls this. */
void ocl_context_ignore_uploads(ocl_context *c);
void ocl_queue_free(ocl_queue *q);          /* waits for what is under way */
void *ocl_queue_handle(const ocl_queue *q); /* cl_command_queue */
ocl_context *ocl_queue_context(const ocl_queue *q);
/* blocking false: the host memory must stay until ocl_queue_finish. */
clg_status ocl_queue_write(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, const void *data,
                           size_t size_bytes, bool blocking);
clg_status ocl_queue_read(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, void *data,
                          size_t size_bytes, bool blocking);
clg_status ocl_queue_copy(ocl_queue *q, ocl_buffer *from, size_t from_offset, ocl_buffer *to,
                          size_t to_offset, size_t size_bytes);
clg_status ocl_queue_fill(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, size_t size_bytes,
                          const void *pattern, size_t pattern_bytes);
/* write_only discards the old content. blocking false: the memory must not be touched before ocl_queue_finish. Unmap is
 * enqueued. */
clg_status ocl_queue_map(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, size_t size_bytes,
                         bool write_only, bool blocking, void **out_data);
clg_status ocl_queue_unmap(ocl_queue *q, ocl_buffer *b, void *data);
clg_status ocl_queue_flush(ocl_queue *q);
clg_status ocl_queue_finish(ocl_queue *q);
/* Makes what is enqueued later wait for the caller's cl_events; and gives an event (cl_event,
 * owned by the caller) that completes when all enqueued so far is done, and flushes, so that
 * other queues may wait for it. */
clg_status ocl_queue_wait_for(ocl_queue *q, size_t n_events, void *const *cl_events);
clg_status ocl_queue_marker(ocl_queue *q, void **out_cl_event);
/* An event that completes when the host says so, once: complete gives the reference up. failed: what waits for the
 * event is given up too. */
clg_status ocl_event_create(ocl_context *c, void **out_cl_event);
clg_status ocl_event_retain(ocl_context *c, void *cl_event);
void ocl_event_complete(void *cl_event, bool failed);
/* Waits for an event and gives the reference up, also when it fails. Any thread. */
clg_status ocl_event_wait(ocl_context *c, void *cl_event);

/* ---- kernels -------------------------------------------------------------------------------------------- */

typedef struct ocl_kernel ocl_kernel;

/* Finds the program of the ref in the context's memory, else in the store on disk, else compiles it, and
 * makes a kernel object. KERNEL_BUILD has the first KiB of the build log (all of it goes to the log).
 * After programs were compiled, ocl_programs_store writes their binaries out (drivers compile late). */
clg_status ocl_kernel_create(ocl_context *c, const kernel_ref *ref, ocl_kernel **out_kernel);
void ocl_kernel_free(ocl_kernel *k);
/* The same without compiling what is not in memory or in the store: arguments may be set; before it is launched
 * ocl_launches_prepare builds it. */
clg_status ocl_kernel_create_draft(ocl_context *c, const kernel_ref *ref, ocl_kernel **out_kernel);
/* A launch that is going to happen, with the arguments that its kernel has now. */
typedef struct ocl_launch {
    ocl_kernel *kernel;
    uint32_t n_dims;
    const uint64_t *global, *local; /* as of ocl_queue_launch */
} ocl_launch;
/* Has the compile helpers compile what these launches need and nobody has compiled yet, several at once, then builds drafts.
 * KERNEL_BUILD: the driver's compiler refuses a kernel or dies of it, and ocl_launch_is_refused tells which. progress may be
 * NULL; is called on this thread. */
clg_status ocl_launches_prepare(ocl_context *c, const ocl_launch *launches, size_t n_launches,
                                clg_progress_callback progress, void *user);
/* Has the helpers compile them and builds nothing here; what they refuse is known from then on. */
clg_status ocl_launches_try(ocl_context *c, const ocl_launch *launches, size_t n_launches);
/* Whether the driver's compiler has died of this kernel, launched so, here or in an earlier process; the thread's error text
 * then says how. Costs nothing where it has never died. */
clg_status ocl_launch_is_refused(ocl_context *c, const kernel_ref *ref, uint32_t n_dims,
                                 const uint64_t *global, const uint64_t *local, bool *out_refused);
/* Whether there may be such a kernel. */
bool ocl_knows_refusals(ocl_context *c);
/* How many kernels have been refused so in this context; goes up alone. */
size_t ocl_n_refusals(ocl_context *c);
/* Whether a compile helper compiles what is new: then ocl_launches_prepare does it all, and programs need not be built before. */
bool ocl_has_helper(ocl_context *c);
/* Builds the programs of several refs, in parallel where the driver allows. progress may be NULL. */
clg_status ocl_programs_build(ocl_context *c, const kernel_ref *const *refs, size_t n_refs,
                              clg_progress_callback progress, void *user);
/* Whether all these programs are in the context's memory, so that making their kernels compiles and loads nothing. */
clg_status ocl_programs_ready(ocl_context *c, const kernel_ref *const *refs, size_t n_refs,
                              bool *out_ready);
/* Writes binaries of programs that ran in a way that the store does not know yet; after a finish, because drivers
 * compile as late as that. Errors are logged, not returned, and leave the thread's last error alone: a store is
 * only a convenience. The end of a context stores as well.
 * On PoCL reading a binary compiles each of its kernels once more, a third of a cold start. So preparing stores at
 * once, and runs call the second function: it stores when nothing new was met since its last call, that is after
 * the second run, and the first answer does not wait. */
void ocl_programs_store(ocl_context *c);
void ocl_programs_store_when_settled(ocl_context *c);
/* Appends the hash of the whole text that is compiled for a ref. */
struct text;
clg_status ocl_kernel_hash(const kernel_ref *ref, struct text *out);
clg_status ocl_kernel_set_buffer(ocl_kernel *k, uint32_t index, ocl_buffer *b);
clg_status ocl_kernel_set_bytes(ocl_kernel *k, uint32_t index, size_t size_bytes,
                                const void *data); /* data NULL: local memory */
/* Launches, copies and fills from here to `gather` may be under way together, where the driver gains by it: each waits for those
 * only that it comes after. Before each of them, `order` gives its slot, counting up from 0 in windows of 32, and bits of the
 * slots of its window that it comes after; slot 0 comes after all of the window before. Commands without an order of their own
 * come after the one before. What was in the queue comes first, what follows `gather` last. Products of CLBlast, and launches that
 * are new to a driver that minds, gather by themselves: what follows them is in order. */
clg_status ocl_queue_spread(ocl_queue *q);
void ocl_queue_order(ocl_queue *q, uint32_t slot, uint32_t after);
clg_status ocl_queue_gather(ocl_queue *q);
clg_status ocl_queue_launch(ocl_queue *q, ocl_kernel *k, uint32_t n_dims, const uint64_t *global,
                            const uint64_t *local /* NULL or zeros: the driver chooses */);

/* ---- CLBlast ------------------------------------------------------------------------------------------- */

typedef struct ocl_gemm {
    ocl_buffer *a, *b, *c;
    int64_t offset_a, offset_b, offset_c; /* elements */
    int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
    bool trans_a, trans_b;
    float alpha, beta;
} ocl_gemm;

/* A problem as a call, but for its buffers: offsets count from the operands' own places. */
ocl_gemm ocl_gemm_of(const gemm_problem *p);

/* False when libclblast is not on this machine or is known to be wrong on this device. */
bool ocl_blas_available(ocl_context *c);
/* Whether CLBlast can be trusted with this problem: dense strides, offsets 0 for batched forms (FACTS: 1.5.3 gives wrong
 * results otherwise), sizes > 0. Batched problems that do not fit may still be run as a loop of plain Gemm calls: this
 * function is about what ocl_queue_gemm accepts at all. */
bool ocl_blas_accepts(const gemm_problem *p);
/* Whether a batch is one call of CLBlast where its operands begin their buffers; elsewhere it is a call for each product. */
bool ocl_blas_batches(const gemm_problem *p);
clg_status ocl_queue_gemm(ocl_queue *q, const ocl_gemm *g);
/* Tells one CLBlast from another, as far as the system can: its file's name and time. "" when it is not there. */
const char *ocl_blas_identity(void);

/* ---- time stamps ------------------------------------------------------------------------------------------ */

/* With profiling on, every enqueued command is recorded under the tag set last; take after a finish. */
typedef struct ocl_sample {
    uint32_t tag;
    uint64_t queued_ns, start_ns, end_ns; /* the device's clock */
} ocl_sample;
void ocl_queue_set_tag(ocl_queue *q, uint32_t tag);
clg_status ocl_queue_take_samples(ocl_queue *q, ocl_sample **out_samples,
                                  size_t *out_n); /* memory_free */

/* ---- the store on disk ---------------------------------------------------------------------------------------- */

typedef struct ocl_store_entry {
    char *name; /* file name */
    char *what; /* device and kernel it holds */
    uint64_t size_bytes;
    int64_t used_ns;
} ocl_store_entry;
clg_status ocl_store_path(const char *cache_dir /* NULL: default */, char **out_path);
clg_status ocl_store_list(const char *cache_dir, ocl_store_entry **out_entries, size_t *out_n);
void ocl_store_list_free(ocl_store_entry *entries, size_t n);
clg_status ocl_store_clear(const char *cache_dir, size_t *out_n_removed);
/* Entries whose `what` matches the pattern (text_matches). */
clg_status ocl_store_remove(const char *cache_dir, const char *pattern, size_t *out_n_removed);
clg_status ocl_store_prune(const char *cache_dir, uint64_t max_bytes, size_t *out_n_removed);
/* One file that holds all entries, for installers; unpack checks each entry. */
clg_status ocl_store_pack(const char *cache_dir, const char *file);
clg_status ocl_store_unpack(const char *cache_dir, const char *file, size_t *out_n_entries);

/* ---- measuring and diagnosing a device -------------------------------------------------------------------------- */

typedef struct ocl_measurement {
    double fp32_gflops, fp16_gflops; /* 0: not measured */
    double memory_gbytes_per_s, upload_gbytes_per_s, download_gbytes_per_s;
    double launch_us; /* enqueue and wait for an empty kernel */
} ocl_measurement;
clg_status ocl_measure(ocl_context *c, ocl_measurement *out_measurement);
/* What is in the way of OpenCL on this machine: ICD files and their load errors, GPUs that the system shows without a
 * device, permissions of device nodes, what to install. Plain text, for `cltool devices --diagnose`. memory_free. */
clg_status ocl_diagnose(char **out_report);

#endif
