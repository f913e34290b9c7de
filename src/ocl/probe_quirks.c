/* SPDX-License-Identifier: Apache-2.0
 *
 * Times builds and launches that a quirk would make slow. Times are the least of several, in turn
 * with what they are compared with, and the margins are wide: the measured effects are 3 to 4 times
 * as large. Also finds out whether a device reads host memory in place, which does not depend on
 * time: it shows in what the device reads after the host has written.
 */
#include "ocl/probe_quirks.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "caps/quirks.h"
#include "ocl/program_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The margins; quirk_rows states them too. */
#define BUILD_FACTOR 2.0 /* measured with PoCL 3.0 and 3.1: 3 to 4 */
#define BUILD_EXTRA_NS 20e6
#define LAUNCH_FACTOR 1.5
#define ARGUMENT_NS 20.0 /* measured with PoCL 3.0 and 3.1: 50 to 71 */

#define N_LAUNCHES 100
#define N_ROUNDS 7
#define N_FEW 2
#define N_MANY 33

static clg_status build(ocl_context *ocl, const char *entry, cl_program *out_program)
{
    char prelude[64];
    strbuf source;
    snprintf(prelude, sizeof prelude, "#define P_NONCE %d\n", (int)(time_now_ns() & 0x3fffffff));
    const kernel_ref ref = {.source = "quirk_probe", .entry = entry, .prelude = prelude};
    *out_program = NULL;
    CLG_TRY(program_text(&ref, &source));
    const program_source text = {strbuf_data(&source), source.size_bytes, false};
    clg_status status = program_compile(ocl, "quirk_probe", &text, true, out_program);
    strbuf_deinit(&source);
    return status;
}

/* ---- declarations ---------------------------------------------------------------------------- */

/* Times a build with the driver's declarations or with ours. */
static clg_status time_build(ocl_context *ocl, device_caps *caps, bool is_ours, double *out_ns)
{
    const uint32_t quirks = caps->quirks, bit = QUIRK_SLOW_DECLARATIONS;
    cl_program program;
    caps->quirks = is_ours ? quirks | bit : quirks & ~bit;
    const uint64_t start = time_now_ns();
    clg_status status = build(ocl, "few", &program);
    *out_ns = (double)(time_now_ns() - start);
    caps->quirks = quirks;
    if (program) (void)cl.ReleaseProgram(program);
    return status;
}

static clg_status check_ours(ocl_context *ocl, device_caps *caps, quirk_check check, bool *out_pass)
{
    const uint32_t quirks = caps->quirks;
    caps->quirks |= QUIRK_SLOW_DECLARATIONS;
    clg_status status = check(ocl, out_pass);
    caps->quirks = quirks;
    return status;
}

/* Our declarations must give right results in the compile helper before they are built here: they
 * may crash a compiler that was not seen. The first build is not counted: it may load the
 * compiler. */
static clg_status are_declarations_slow(ocl_context *ocl, device_caps *caps, quirk_check check,
                                        bool *out_present)
{
    double ours_ns, again_ns, theirs_ns;
    bool passes;
    *out_present = false;
    CLG_TRY(check_ours(ocl, caps, check, &passes));
    if (!passes) return CLG_OK;
    CLG_TRY(time_build(ocl, caps, true, &ours_ns));
    CLG_TRY(time_build(ocl, caps, true, &ours_ns));
    CLG_TRY(time_build(ocl, caps, false, &theirs_ns));
    CLG_TRY(time_build(ocl, caps, true, &again_ns));
    if (again_ns < ours_ns) ours_ns = again_ns;
    log_write(CLG_LOG_DEBUG, "'%s' builds in %.1f ms with our declarations, %.1f with its own",
              context_record(ocl)->name, ours_ns / 1e6, theirs_ns / 1e6);
    *out_present = theirs_ns >= BUILD_FACTOR * ours_ns && theirs_ns >= ours_ns + BUILD_EXTRA_NS;
    return CLG_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

typedef struct bench {
    cl_program programs[2];
    cl_kernel few, many;
    ocl_buffer *y;
    ocl_queue *queue;
} bench;

static void clear(bench *b)
{
    ocl_queue_free(b->queue); /* waits */
    if (b->few) (void)cl.ReleaseKernel(b->few);
    if (b->many) (void)cl.ReleaseKernel(b->many);
    for (int i = 0; i < 2; i++)
        if (b->programs[i]) (void)cl.ReleaseProgram(b->programs[i]);
    ocl_buffer_free(b->y);
}

static clg_status make_kernel(ocl_context *ocl, const bench *b, const char *entry, cl_uint n_args,
                              cl_program *out_program, cl_kernel *out_kernel)
{
    cl_int code;
    const cl_int number = 1;
    cl_mem y = ocl_buffer_handle(b->y);
    CLG_TRY(build(ocl, entry, out_program));
    *out_kernel = cl.CreateKernel(*out_program, entry, &code);
    CLG_TRY(cl_check(code, "clCreateKernel", context_record(ocl)->name));
    CL_TRY(ocl, SetKernelArg, (*out_kernel, 0, sizeof y, &y));
    for (cl_uint i = 1; i < n_args; i++)
        CL_TRY(ocl, SetKernelArg, (*out_kernel, i, sizeof number, &number));
    return CLG_OK;
}

/* Lowers *least_ns to the time of a launch, if it is less: the mean of N_LAUNCHES. */
static clg_status time_launches(ocl_context *ocl, const bench *b, cl_kernel kernel,
                                double *least_ns)
{
    const size_t one = 1;
    const uint64_t start = time_now_ns();
    for (int i = 0; i < N_LAUNCHES; i++)
        CL_TRY(ocl, EnqueueNDRangeKernel,
               (ocl_queue_handle(b->queue), kernel, 1, NULL, &one, &one, 0, NULL, NULL));
    CLG_TRY(ocl_queue_finish(b->queue));
    const double ns = (double)(time_now_ns() - start) / N_LAUNCHES;
    if (ns < *least_ns) *least_ns = ns;
    return CLG_OK;
}

static clg_status compare_launches(ocl_context *ocl, bench *b, bool *out_present)
{
    double few_ns = 1e300, many_ns = 1e300;
    CLG_TRY(ocl_buffer_create(ocl, sizeof(cl_int), OCL_BUFFER_DEVICE, &b->y));
    CLG_TRY(ocl_queue_create_own(ocl, &b->queue));
    CLG_TRY(make_kernel(ocl, b, "few", N_FEW, &b->programs[0], &b->few));
    CLG_TRY(make_kernel(ocl, b, "many", N_MANY, &b->programs[1], &b->many));
    for (int i = 0; i < N_ROUNDS; i++) {
        CLG_TRY(time_launches(ocl, b, b->few, &few_ns));
        CLG_TRY(time_launches(ocl, b, b->many, &many_ns));
    }
    log_write(CLG_LOG_DEBUG, "'%s' launches in %.2f us with %d arguments, %.2f with %d",
              context_record(ocl)->name, few_ns / 1e3, N_FEW, many_ns / 1e3, N_MANY);
    *out_present =
        many_ns > LAUNCH_FACTOR * few_ns && many_ns - few_ns > (N_MANY - N_FEW) * ARGUMENT_NS;
    return CLG_OK;
}

static clg_status are_arguments_costly(ocl_context *ocl, bool *out_present)
{
    bench b = {0};
    *out_present = false;
    clg_status status = compare_launches(ocl, &b, out_present);
    clear(&b);
    return status;
}

/* ---- host memory in place -------------------------------------------------------------------- */

#define SHARED_BYTES ((size_t)64 << 10) /* drivers may treat small buffers in another way */
#define MAX_SHARED_ALIGN MEMORY_ALIGNMENT
#define N_WRITES 3

/* Copies the buffer on the device, reads the copy into `got`, and compares it with `host`. */
static clg_status reads_host(ocl_queue *q, ocl_buffer *b, ocl_buffer *copy, const uint8_t *host,
                             uint8_t *got, bool *out_same)
{
    CLG_TRY(ocl_queue_copy(q, b, 0, copy, 0, SHARED_BYTES));
    CLG_TRY(ocl_queue_read(q, copy, 0, got, SHARED_BYTES, true));
    *out_same = memcmp(got, host, SHARED_BYTES) == 0;
    return CLG_OK;
}

/* Sets *out_in_place to whether a buffer over this memory always has what the host wrote last. A
 * driver that copies the memory, at once or when it is first used, misses a later write. */
static clg_status is_in_place(ocl_context *ocl, ocl_queue *q, ocl_buffer *copy, uint8_t *host,
                              uint8_t *got, bool *out_in_place)
{
    ocl_buffer *b;
    *out_in_place = true;
    memset(host, 0, SHARED_BYTES);
    clg_status status = ocl_buffer_zero_copy(ocl, host, SHARED_BYTES, &b);
    for (int i = 1; i <= N_WRITES && status == CLG_OK && *out_in_place; i++) {
        for (size_t k = 0; k < SHARED_BYTES; k++) host[k] = (uint8_t)(k * 7 + (size_t)i);
        status = reads_host(q, b, copy, host, got, out_in_place);
    }
    ocl_buffer_free(b);
    return status;
}

/* Tries addresses that are multiples of 4, 8 and so on up to 128, and of nothing larger. */
static clg_status try_alignments(ocl_context *ocl, ocl_queue *q, ocl_buffer *copy, uint8_t *memory,
                                 uint32_t *out_align_bytes)
{
    const uint32_t aligned = context_caps(ocl)->buffer_align_bytes;
    const uint32_t most = aligned < MAX_SHARED_ALIGN ? aligned : MAX_SHARED_ALIGN;
    bool in_place = false;
    for (uint32_t align = 4; align <= most && !in_place; align *= 2) {
        CLG_TRY(is_in_place(ocl, q, copy, memory + SHARED_BYTES + align, memory, &in_place));
        if (in_place) *out_align_bytes = align;
    }
    return CLG_OK;
}

clg_status zero_copy_measure(ocl_context *ocl, uint32_t *out_align_bytes)
{
    const device_caps *caps = context_caps(ocl);
    ocl_queue *q = NULL;
    ocl_buffer *copy = NULL;
    *out_align_bytes = 0;
    if (caps->kind != CLG_DEVICE_CPU || caps->is_software) return CLG_OK;
    uint8_t *memory = memory_alloc_aligned(2 * SHARED_BYTES + MAX_SHARED_ALIGN);
    if (!memory) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = ocl_queue_create_own(ocl, &q);
    if (status == CLG_OK) status = ocl_buffer_create(ocl, SHARED_BYTES, OCL_BUFFER_DEVICE, &copy);
    if (status == CLG_OK) status = try_alignments(ocl, q, copy, memory, out_align_bytes);
    ocl_queue_free(q); /* waits */
    ocl_buffer_free(copy);
    memory_free_aligned(memory);
    log_write(CLG_LOG_DEBUG, "'%s' reads host memory in place at multiples of %u bytes (0: never)",
              context_record(ocl)->name, (unsigned)*out_align_bytes);
    return status == CLG_ERROR_UNSUPPORTED_DEVICE ? CLG_OK : status;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Records an answer; a build that the driver refuses leaves the bit undecided. */
static clg_status answer(clg_status status, uint32_t bit, bool is_present, quirk_answers *answers)
{
    if (status == CLG_ERROR_KERNEL_BUILD || status == CLG_ERROR_UNSUPPORTED_DEVICE) return CLG_OK;
    if (status != CLG_OK) return status;
    answers->measured |= bit;
    if (is_present) answers->present |= bit;
    return CLG_OK;
}

clg_status quirks_measure(ocl_context *ocl, device_caps *caps, uint32_t wanted,
                          quirk_check declarations_pass, quirk_answers *out_answers)
{
    bool is_present;
    *out_answers = (quirk_answers){0};
    const uint64_t start = time_now_ns();
    if (wanted & QUIRK_SLOW_DECLARATIONS) {
        clg_status status = are_declarations_slow(ocl, caps, declarations_pass, &is_present);
        CLG_TRY(answer(status, QUIRK_SLOW_DECLARATIONS, is_present, out_answers));
        CLG_TRY(quirks_apply(caps, out_answers)); /* the builds below are the faster */
    }
    if (wanted & QUIRK_COSTLY_ARGUMENTS) {
        clg_status status = are_arguments_costly(ocl, &is_present);
        CLG_TRY(answer(status, QUIRK_COSTLY_ARGUMENTS, is_present, out_answers));
    }
    if (wanted)
        log_write(CLG_LOG_DEBUG, "quirks were measured in %.0f ms",
                  (double)(time_now_ns() - start) / 1e6);
    return CLG_OK;
}

clg_status quirks_apply(device_caps *caps, const quirk_answers *answers)
{
    const uint32_t bits = quirks_decide(caps->quirks, answers->measured, answers->present);
    if (bits == caps->quirks) return CLG_OK;
    char *names = quirks_names(bits);
    if (!names) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memory_free(caps->quirk_names);
    caps->quirk_names = names;
    caps->quirks = bits;
    return CLG_OK;
}
