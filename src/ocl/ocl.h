/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the interface of src/ocl, the only code that calls OpenCL: devices, contexts, buffers,
 * queues, kernels, CLBlast, the disk cache. Includes no OpenCL header; OpenCL objects are passed as
 * void pointers. A function that fails returns a status and sets the thread's error text, which
 * names the OpenCL error.
 *
 * Threads: a context, its programs and buffers may be used by several threads concurrently; a queue
 * and a kernel only by one thread at a time.
 */
#ifndef CLG_OCL_OCL_H
#define CLG_OCL_OCL_H

#include "caps/caps.h"
#include "step/step.h"

/* ---- the machine ----------------------------------------------------------------------------- */

/* Lists every device, with derived (not probed) capabilities. Both arrays have *out_n entries;
 * release them with device_records_free and device_caps_free. NO_OPENCL when there is no loader or
 * no platform. Each call asks the drivers again, which takes microseconds. */
clg_status ocl_enumerate(device_record **out_records, device_caps **out_caps, size_t *out_n);

/* ---- contexts -------------------------------------------------------------------------------- */

typedef struct ocl_context ocl_context;

typedef struct ocl_context_options {
    const char *cache_dir; /* folder of the disk cache; NULL: the default; "": no disk cache */
    uint32_t cpu_threads;  /* compute units to use of a CPU device; 0: all, or 1 of a part */
    bool is_part;          /* use part `part` of a CPU device that is cut into such pieces */
    uint32_t part;
    bool profiling; /* queues record time stamps */
    /* Path of the compile helper; NULL: searched for; "off": none (helper.h). */
    const char *compile_helper;
    uint32_t compile_limit_s;   /* time limit of one build in the helper; 0: the default */
    uint32_t compile_limit_mib; /* limit of the helper's resident memory; 0: the default */
    clg_compilation compilation;
    bool bare; /* the helper's own context: no probes, no helper */
} ocl_context_options;

/* Creates a context on device device_index of ocl_enumerate and probes its capabilities (results
 * are cached). */
clg_status ocl_context_create(size_t device_index, const ocl_context_options *options,
                              ocl_context **out_context);
/* Creates a context over the caller's cl_context, cl_device_id and cl_command_queue; retains the
 * first and the last. The queue may be NULL; else the first ocl_queue created uses it. */
clg_status ocl_context_wrap(void *cl_context, void *cl_device_id, void *cl_command_queue,
                            const ocl_context_options *options, ocl_context **out_context);
/* For tests only, to be called right after creating the context: enables kernels for matrix units
 * on a device without one. The matrix instruction is emulated, slowly. Has no effect if the device
 * has a matrix unit or the emulation does not pass its probe. */
clg_status ocl_context_emulate_matrix(ocl_context *ocl);
ocl_context *ocl_context_retain(ocl_context *ocl);
void ocl_context_free(ocl_context *ocl);
const device_caps *ocl_context_caps(const ocl_context *ocl);
const device_record *ocl_context_record(const ocl_context *ocl);
/* Returns the device's index among those of the machine that have its id. */
size_t ocl_context_ordinal(const ocl_context *ocl);
void *ocl_context_handle(const ocl_context *ocl);        /* cl_context */
void *ocl_context_device_handle(const ocl_context *ocl); /* cl_device_id */

/* Returns whether the device was lost: a call failed as calls do after a reset of the driver. It
 * stays so for this context; buffers, queues and kernels of it can only be freed. */
bool ocl_context_is_lost(const ocl_context *ocl);
/* Returns DEVICE_LOST if the device was lost, with a message that says how to go on, else OK. */
clg_status ocl_context_require(const ocl_context *ocl);
/* Records that another context replaces this one, which is lost: for the messages. */
void ocl_context_set_replaced(ocl_context *ocl);

/* Small records in the disk cache, such as results of self-tests and of tuning, which are valid
 * only for this platform, device, driver and library version. `name` identifies a record and the
 * version of its format. ocl_context_recall reads one; returns false when there is none. Release
 * *out_data with memory_free. */
bool ocl_context_recall(ocl_context *ocl, const char *name, char **out_data,
                        size_t *out_size_bytes);
/* As ocl_context_recall, for a device of ocl_enumerate, which it does not open. cache_dir: as in
 * ocl_context_options. */
bool ocl_device_recall(const device_record *device, const char *cache_dir, const char *name,
                       char **out_data, size_t *out_size_bytes);
/* Writes a record. what: its description in listings of the cache. Errors are only logged. */
void ocl_context_remember(ocl_context *ocl, const char *name, const char *what, const void *data,
                          size_t size_bytes);

/* Counters of a context since its creation; for tests, `cltool` and bench. */
typedef struct ocl_counters {
    uint64_t programs_compiled; /* by the driver, from source */
    uint64_t programs_loaded;   /* as binaries from the disk cache */
    uint64_t kernels_launched, blas_calls;
    uint64_t buffer_bytes, buffer_bytes_peak; /* allocated by this context: now, at most so far */
    /* launches that only kept a thread of the driver awake, after a run and within one (decisions
     * 90, 93) */
    uint64_t spins, step_spins;
    uint64_t bytes_to_device, bytes_from_device; /* transfers and mappings */
} ocl_counters;
void ocl_context_counters(const ocl_context *ocl, ocl_counters *out_counters);

/* ---- buffers --------------------------------------------------------------------------------- */

typedef struct ocl_buffer ocl_buffer; /* reference-counted */

typedef enum ocl_buffer_flags {
    OCL_BUFFER_DEVICE = 0,
    OCL_BUFFER_HOST_VISIBLE = 1 /* in host memory (pinned), fast to map: for inputs and outputs */
} ocl_buffer_flags;

/* Creates a buffer; size_bytes 0 allocates a few bytes. The OUT_OF_DEVICE_MEMORY message has the
 * size requested and the size in use. */
clg_status ocl_buffer_create(ocl_context *ocl, size_t size_bytes, ocl_buffer_flags flags,
                             ocl_buffer **out_buffer);
/* Creates a zero-copy buffer over host memory, for a device that reads memory of its alignment in
 * place (zero_copy_align_bytes); others copy it. The memory must stay unchanged for the buffer's
 * lifetime. It does not count as device memory. */
clg_status ocl_buffer_zero_copy(ocl_context *ocl, const void *data, size_t size_bytes,
                                ocl_buffer **out_buffer);
/* Creates a buffer that has only a size, for arguments of draft kernels that are not launched. */
clg_status ocl_buffer_create_draft(ocl_context *ocl, size_t size_bytes, ocl_buffer **out_buffer);
/* Wraps a cl_mem of the caller's, retained. */
clg_status ocl_buffer_wrap(ocl_context *ocl, void *cl_mem, ocl_buffer **out_buffer);
/* Returns whether the memory is the caller's, and may be shared with other buffers. */
bool ocl_buffer_is_callers(const ocl_buffer *b);
/* Returns whether there are several references to the buffer. */
bool ocl_buffer_is_shared(const ocl_buffer *b);
ocl_buffer *ocl_buffer_retain(ocl_buffer *b);
void ocl_buffer_free(ocl_buffer *b);
size_t ocl_buffer_size(const ocl_buffer *b);
void *ocl_buffer_handle(const ocl_buffer *b); /* cl_mem */
/* Returns the buffer's number, from 1 on: no other one of the context has had it, while addresses
 * and handles are used again. */
uint64_t ocl_buffer_serial(const ocl_buffer *b);

/* ---- queues ---------------------------------------------------------------------------------- */

typedef struct ocl_queue ocl_queue; /* in order */

clg_status ocl_queue_create(ocl_context *ocl, ocl_queue **out_queue);
/* Creates a queue that is never the caller's and never records time stamps, for work concurrent
 * with runs. */
clg_status ocl_queue_create_own(ocl_context *ocl, ocl_queue **out_queue);
/* Creates the context's upload queue, as ocl_queue_create_own. A command of another queue runs
 * after all blocking writes of the upload queue that returned before the command was enqueued. Any
 * other transfer of data between queues must be ordered by ocl_queue_finish or an event. */
clg_status ocl_queue_create_upload(ocl_context *ocl, ocl_queue **out_queue);
/* For tests only: makes other queues not wait for the upload queue's writes. */
void ocl_context_ignore_uploads(ocl_context *ocl);
void ocl_queue_free(ocl_queue *q);          /* waits for commands in flight */
void *ocl_queue_handle(const ocl_queue *q); /* cl_command_queue */
ocl_context *ocl_queue_context(const ocl_queue *q);
/* Copy from host memory to a buffer, and back. If not blocking, the host memory must stay valid,
 * and in a write unchanged, until ocl_queue_finish. */
clg_status ocl_queue_write(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, const void *data,
                           size_t size_bytes, bool blocking);
clg_status ocl_queue_read(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, void *data,
                          size_t size_bytes, bool blocking);
/* Copies between buffers. Offsets are in bytes. */
clg_status ocl_queue_copy(ocl_queue *q, ocl_buffer *from, size_t from_offset, ocl_buffer *to,
                          size_t to_offset, size_t size_bytes);
/* Fills a range with copies of a pattern, whose size divides offset_bytes and size_bytes. */
clg_status ocl_queue_fill(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, size_t size_bytes,
                          const void *pattern, size_t pattern_bytes);
/* Maps a range of a buffer to host memory. write_only: for writing, the previous data are
 * discarded; else for reading and writing. If not blocking, *out_data may be accessed only after
 * ocl_queue_finish. */
clg_status ocl_queue_map(ocl_queue *q, ocl_buffer *b, size_t offset_bytes, size_t size_bytes,
                         bool write_only, bool blocking, void **out_data);
/* Enqueues the unmapping of data that ocl_queue_map returned. */
clg_status ocl_queue_unmap(ocl_queue *q, ocl_buffer *b, void *data);
clg_status ocl_queue_flush(ocl_queue *q);
clg_status ocl_queue_finish(ocl_queue *q);
/* Makes ocl_queue_wait_read possible: call it before the reads are enqueued. */
void ocl_queue_keep_read(ocl_queue *q);
/* Waits until the last read has ended that was enqueued since ocl_queue_keep_read, and leaves what
 * was enqueued after it in flight, where the driver can run that beside other queues; else, or if
 * the read fails, as ocl_queue_finish. The thread may then do anything, also run other queues. */
clg_status ocl_queue_wait_read(ocl_queue *q);
/* Returns whether the threads of a CPU device's driver sleep as soon as they have no work: keeping
 * them awake is worth while on such devices alone. */
bool ocl_context_threads_sleep(const ocl_context *ocl);
/* Returns whether ocl_queue_keep_awake is worth while in the run that begins: not before some runs,
 * after which ocl_queue_run_ended prepares it, and not while other queues of the process work. */
bool ocl_queue_keeps_awake(ocl_queue *q);
/* Between ocl_queue_fork and ocl_queue_join, after ocl_queue_order and before the launch: keeps
 * threads that this launch leaves without work awake until another one begins: the launch writes
 * `number` to begun[1], and the next one another number (decision 93). begun[0] must be 0. Never
 * fails: runs only take longer. */
void ocl_queue_keep_awake(ocl_queue *q, ocl_buffer *begun, int32_t number);
/* To be called after a run on the queue, once the host has its results, with no lock held. Where
 * the driver's threads sleep between launches, prepares what keeps them awake, between runs that
 * follow each other quickly (decision 90) and within runs (decision 93). Never fails: runs only
 * take longer. The thread's last error is unchanged. */
void ocl_queue_run_ended(ocl_queue *q);
/* As ocl_queue_run_ended, after the run of a preparation: prepares that immediately, so that later
 * runs do not wait for the compiler. */
void ocl_queue_prepared(ocl_queue *q);
/* For tests only: whether a thread is kept awake where runs follow each other quickly (as by
 * default), never, or always where the driver is one that gains. Of the whole process. */
typedef enum ocl_spin_mode { OCL_SPIN_WHERE_QUICK, OCL_SPIN_NEVER, OCL_SPIN_ALWAYS } ocl_spin_mode;
void ocl_spin_use(ocl_spin_mode mode);
/* Returns whether a command may be in flight: one was enqueued since the last wait for all. */
bool ocl_queue_is_busy(const ocl_queue *q);
/* Returns whether the device still executes commands: enqueues a marker and waits for it. A failure
 * is recorded as a loss of the device, whatever its code is. */
bool ocl_queue_probe(ocl_queue *q);
/* Makes all commands enqueued later wait for these cl_events. */
clg_status ocl_queue_wait_for(ocl_queue *q, size_t n_events, void *const *cl_events);
/* Returns a cl_event, owned by the caller, that completes when all commands enqueued so far have
 * completed. Flushes the queue, so that other queues can wait for the event. */
clg_status ocl_queue_marker(ocl_queue *q, void **out_cl_event);
/* Creates a user event (clCreateUserEvent), to be completed once by ocl_event_complete. */
clg_status ocl_event_create(ocl_context *ocl, void **out_cl_event);
clg_status ocl_event_retain(ocl_context *ocl, void *cl_event);
/* Completes a user event and releases the caller's reference. failed: commands that wait for the
 * event fail too. */
void ocl_event_complete(void *cl_event, bool failed);
/* Waits for an event and releases the caller's reference, even on failure. May be called from any
 * thread. */
clg_status ocl_event_wait(ocl_context *ocl, void *cl_event);

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct ocl_kernel ocl_kernel;

/* Finds the program of the ref in the context's memory, else in the disk cache, else compiles it;
 * then creates a kernel of it. The text of a KERNEL_BUILD error has the first KiB of the build log;
 * all of it is logged. Binaries are written to the cache by ocl_programs_save. */
clg_status ocl_kernel_create(ocl_context *ocl, const kernel_ref *ref, ocl_kernel **out_kernel);
void ocl_kernel_free(ocl_kernel *k);
/* As ocl_kernel_create, but if the program is neither in memory nor in the cache, returns a draft:
 * a kernel that is not compiled. Its arguments may be set; ocl_launches_prepare must build it
 * before it is launched. */
clg_status ocl_kernel_create_draft(ocl_context *ocl, const kernel_ref *ref,
                                   ocl_kernel **out_kernel);
/* Creates one more kernel, or draft, of the text of k, without looking for its program. */
clg_status ocl_kernel_create_alike(const ocl_kernel *k, ocl_kernel **out_kernel);
/* A batch of matrix products, row-major: c = alpha op(a) op(b) + beta c, where op transposes if
 * trans_a or trans_b is set. Sizes, leading dimensions and strides count elements. */
typedef struct ocl_gemm {
    ocl_buffer *a, *b, *c;
    int64_t offset_a, offset_b, offset_c; /* elements */
    int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
    bool trans_a, trans_b;
    float alpha, beta;
} ocl_gemm;

/* A later launch of a kernel with its current arguments, or a later call of CLBlast. */
typedef struct ocl_launch {
    ocl_kernel *kernel; /* NULL: a call of CLBlast */
    uint32_t n_dims;
    const uint64_t *global, *local, *offset; /* as in ocl_queue_launch_at */
    ocl_gemm gemm;                           /* of the call; needs no buffers */
} ocl_launch;
/* Has the compile helpers compile, in parallel, all that these launches need and that is not
 * compiled yet; then builds drafts. KERNEL_BUILD: the driver's compiler rejects a kernel or crashes
 * on it; ocl_launch_is_refused and ocl_gemm_is_refused report which. progress may be NULL; it is
 * called on this thread. */
clg_status ocl_launches_prepare(ocl_context *ocl, const ocl_launch *launches, size_t n_launches,
                                clg_progress_callback progress, void *user);
/* Has the compile helpers compile these launches, and records those on which the compiler crashes.
 * Builds each program in this process, too, while helpers compile the next ones; drafts stay. */
clg_status ocl_launches_try(ocl_context *ocl, const ocl_launch *launches, size_t n_launches);
/* Sets *out_refused to whether the driver's compiler has failed on this kernel in this launch
 * configuration (program.h): crashed, in this process or an earlier one, or exceeded a limit in
 * this process. The thread's error text then describes the failure. Fast if no failure is known. */
clg_status ocl_launch_is_refused(ocl_context *ocl, const kernel_ref *ref, uint32_t n_dims,
                                 const uint64_t *global, const uint64_t *local, bool *out_refused);
/* Returns whether the driver's compiler has failed on CLBlast's kernels for this problem, whatever
 * the operands' offsets are; if so, the thread's error text describes the failure. */
bool ocl_gemm_is_refused(ocl_context *ocl, const gemm_problem *p);
/* Returns whether a kernel or GEMM may be refused: if not, the two functions above report none. */
bool ocl_knows_refusals(ocl_context *ocl);
/* Returns the number of kernels and CLBlast routines that this context has recorded as refused; it
 * never decreases. */
size_t ocl_n_refusals(ocl_context *ocl);
/* Sets *out_at_hand to whether the program of a ref is built, after loading it from the cache if it
 * has an entry. */
clg_status ocl_program_is_at_hand(ocl_context *ocl, const kernel_ref *ref, bool *out_at_hand);
/* Returns how programs are built; never CLG_COMPILATION_DEFAULT. */
clg_compilation ocl_compilation(const ocl_context *ocl);
/* Returns whether new programs should be built without optimisation first (tiers.h): that was
 * chosen, pays on this device, and a compile helper compiles the optimised ones. */
bool ocl_builds_in_tiers(ocl_context *ocl);
/* Goes on with optimising programs; to be called after a run. Starts compiling on another thread,
 * or builds a compiled program here, for 20 ms. Errors are only logged. */
void ocl_tiers_go_on(ocl_context *ocl);
/* Returns a number that changes when optimised programs have become available: plans with baseline
 * kernels should then be made again. */
uint64_t ocl_tiers_epoch(ocl_context *ocl);
/* Returns whether a compile helper compiles new programs: then ocl_launches_prepare compiles all of
 * them, and ocl_programs_build is not needed. */
bool ocl_has_helper(ocl_context *ocl);
/* Returns the seconds that the longest build may take, CLBlast's (compile_limit_s of the options),
 * also where no helper is used. */
uint64_t ocl_max_build_s(const ocl_context *ocl);
/* Builds the programs of several refs, in parallel where the driver allows. progress may be
 * NULL. */
clg_status ocl_programs_build(ocl_context *ocl, const kernel_ref *const *refs, size_t n_refs,
                              clg_progress_callback progress, void *user);
/* Returns whether all these programs are in the context's memory, so that creating their kernels
 * compiles and loads nothing. */
clg_status ocl_programs_ready(ocl_context *ocl, const kernel_ref *const *refs, size_t n_refs,
                              bool *out_ready);
/* Writes to the cache the binaries of programs launched in configurations (program.h) that their
 * cache entries lack. Call it after ocl_queue_finish, since drivers may compile until then. Freeing
 * a context calls it too. Errors are only logged; the thread's last error is unchanged. */
void ocl_programs_save(ocl_context *ocl);
/* Calls ocl_programs_save if no launch configuration is new since the last call of this function.
 * Runs call this one: PoCL compiles each kernel again when a binary is read, which takes a third of
 * a cold start. So binaries are saved after the second run and do not delay the first result. */
void ocl_programs_save_when_settled(ocl_context *ocl);
/* Appends the hash, as text, of the complete source that is compiled for a ref. */
struct strbuf;
clg_status ocl_kernel_hash(const kernel_ref *ref, struct strbuf *out);
clg_status ocl_kernel_set_buffer(ocl_kernel *k, uint32_t index, ocl_buffer *b);
clg_status ocl_kernel_set_bytes(ocl_kernel *k, uint32_t index, size_t size_bytes,
                                const void *data); /* data NULL: local memory */
/* Lets the following launches, copies and fills, up to ocl_queue_join, run concurrently where that
 * is faster. They run after all commands enqueued before. CLBlast calls, and launches that are new
 * to a driver that may crash on them (launch_guard.h), join automatically: commands after them run
 * in order. is_first_window: the next command is in the first window of ocl_queue_order; in later
 * windows all commands depend on that of slot 0, too. */
clg_status ocl_queue_fork(ocl_queue *q, bool is_first_window);
/* Declares the dependencies of the next command between fork and join. slot: its number, counting
 * up from 0 in windows of 32 commands. after: bits of the slots in its window that it depends on;
 * slot 0 depends on the whole previous window; slots of commands from before the fork are ignored.
 * Without this call, a command depends on the one before. */
void ocl_queue_order(ocl_queue *q, uint32_t slot, uint32_t after);
/* Ends concurrent execution: later commands run after all commands enqueued before. */
clg_status ocl_queue_join(ocl_queue *q);
clg_status ocl_queue_launch(ocl_queue *q, ocl_kernel *k, uint32_t n_dims, const uint64_t *global,
                            const uint64_t *local /* NULL or zeros: the driver chooses */);
/* As ocl_queue_launch, with global offsets in work-items; offset may be NULL. */
clg_status ocl_queue_launch_at(ocl_queue *q, ocl_kernel *k, uint32_t n_dims, const uint64_t *offset,
                               const uint64_t *global, const uint64_t *local);

/* The dimension whose global offset is the size of the whole, in launches of parts of an NDRange
 * along `dim` (cl/lowering/launch_part.clh). */
#define LAUNCH_PART_OTHER(dim) ((dim) == 0 ? 1u : 0u)
/* Sets *out_works to whether the driver can launch parts of an NDRange. The first call on a device
 * tests that, and the cache keeps the result. Launches kernels in another queue: not to be called
 * between launches of a queue (launch_guard.h). */
clg_status ocl_parts_work(ocl_context *ocl, bool *out_works);

/* ---- CLBlast --------------------------------------------------------------------------------- */

/* Converts a problem to an ocl_gemm without buffers; offsets are relative to the operands' own
 * origins. */
ocl_gemm ocl_gemm_of(const gemm_problem *p);

/* Returns whether CLBlast can be used: false when it is not installed, is known to fail on this
 * device or needs larger work-groups than the device has. */
bool ocl_blas_available(ocl_context *ocl);
/* Returns whether ocl_queue_gemm accepts this problem: sizes from 1 to INT32_MAX, rows that do not
 * overlap, and in a batch strides of a and b >= 0 and matrices c that do not overlap. */
bool ocl_blas_accepts(const gemm_problem *p);
/* Returns whether a batch is computed by one call of CLBlast if its operands have offset 0 in their
 * buffers. That is so if its matrices are dense; CLBlast 1.5.3 returns wrong results for others,
 * which are computed by one call per matrix. */
bool ocl_blas_batches(const gemm_problem *p);
/* Enqueues a GEMM by CLBlast. KERNEL_BUILD: the driver's compiler rejects CLBlast's kernels, or
 * crashes on them in the compile helper, which runs them first. */
clg_status ocl_queue_gemm(ocl_queue *q, const ocl_gemm *g);
/* Returns "PATH SIZE TIME" of the CLBlast library's file; "" when it is not installed or the
 * system does not report them. */
const char *ocl_blas_identity(void);

/* ---- time stamps ----------------------------------------------------------------------------- */

/* The time stamps of a command. With profiling, each enqueued command is recorded under the tag set
 * last by ocl_queue_set_tag. Call ocl_queue_take_samples after ocl_queue_finish. */
typedef struct ocl_sample {
    uint32_t tag;
    uint64_t queued_ns, start_ns, end_ns; /* the device's clock */
} ocl_sample;
bool ocl_queue_is_profiling(const ocl_queue *q); /* an application's queue may not be */
void ocl_queue_set_tag(ocl_queue *q, uint32_t tag);
clg_status ocl_queue_take_samples(ocl_queue *q, ocl_sample **out_samples,
                                  size_t *out_n); /* release with memory_free */

/* ---- disk cache ------------------------------------------------------------------------------ */

typedef struct ocl_cache_entry {
    char *name; /* file name */
    char *what; /* description: the device and the program or record */
    uint64_t size_bytes;
    int64_t used_ns; /* time of the last use, since 1970 */
} ocl_cache_entry;
/* Returns the path of the cache folder; release it with memory_free. */
clg_status ocl_cache_path(const char *cache_dir /* NULL: default */, char **out_path);
clg_status ocl_cache_list(const char *cache_dir, ocl_cache_entry **out_entries, size_t *out_n);
void ocl_cache_list_free(ocl_cache_entry *entries, size_t n);
clg_status ocl_cache_clear(const char *cache_dir, size_t *out_n_removed);
/* Removes the entries whose description matches the pattern (text_matches). */
clg_status ocl_cache_remove(const char *cache_dir, const char *pattern, size_t *out_n_removed);
/* Removes the least recently used entries until at most max_bytes remain. */
clg_status ocl_cache_prune(const char *cache_dir, uint64_t max_bytes, size_t *out_n_removed);
/* Writes all entries into one file, for installers. */
clg_status ocl_cache_pack(const char *cache_dir, const char *file);
/* Adds the entries of such a file to the cache, after verifying all of them. */
clg_status ocl_cache_unpack(const char *cache_dir, const char *file, size_t *out_n_entries);

/* ---- measuring and diagnosing a device ------------------------------------------------------- */

/* Measured peak rates of a device. */
typedef struct ocl_measurement {
    double fp32_gflops, fp16_gflops; /* 0: not measured */
    double memory_gbytes_per_s, upload_gbytes_per_s, download_gbytes_per_s;
    double launch_us; /* time to enqueue an empty kernel and wait for it */
} ocl_measurement;
clg_status ocl_measure(ocl_context *ocl, ocl_measurement *out_measurement);
/* Writes a report, as plain text for `cltool devices --diagnose`, of why devices are missing: ICD
 * files and their load errors, GPUs without an OpenCL device, permissions of device nodes, what to
 * install. Release *out_report with memory_free. */
clg_status ocl_diagnose(char **out_report);

#endif
