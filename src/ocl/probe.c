/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which optional features a device has (half, double, sub-groups, integer dot products,
 * matrix instructions), by building and running cl/device/probe.cl and checking the results. On
 * drivers known to list every extension that they support, probes of extensions that are not listed
 * are skipped, since each costs a compilation.
 */
#include "ocl/probe.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "caps/quirks.h"
#include "ocl/batch.h"
#include "ocl/helper/helper.h"
#include "ocl/probe_quirks.h"
#include "ocl/program_build.h"
#include "ocl/queue/queue.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define N_VALUES 32

typedef enum probe {
    PROBE_FP16 = 1,
    PROBE_FP64,
    PROBE_SUBGROUPS,
    PROBE_DOT,
    PROBE_DOT_PTX,
    PROBE_MATRIX_PTX,
    PROBE_MATRIX_EMULATED,
    PROBE_DOT_BYTES,
    PROBE_DOT_SHORTS,
    PROBE_DOT_AMD,
    PROBE_DOT_AMD_MIXED,
    PROBE_BUILTINS,
    PROBE_DOT_VECTORS, /* both kinds of vectors of dot products, by one program */
    PROBE_REGISTERS,
    PROBE_END
} probe;

typedef struct probe_row {
    const char *name;
    const char *extension;   /* that a driver lists for it; NULL: none */
    platform_family only_on; /* PLATFORM_OTHER: any platform */
    bool on_demand;          /* not one of all: run by a function of its own */
    /* run only where the extension is listed: elsewhere its kernel may call undefined functions */
    bool if_announced;
    bool kills_compilers; /* some compilers crash on it: run only in the helper */
} probe_row;

static const probe_row probes[PROBE_END] = {
    [PROBE_FP16] = {"half arithmetic", "cl_khr_fp16", PLATFORM_OTHER, false, false, false},
    [PROBE_FP64] = {"double arithmetic", "cl_khr_fp64", PLATFORM_OTHER, false, false, false},
    [PROBE_SUBGROUPS] = {"sub-groups", "cl_khr_subgroups", PLATFORM_OTHER, false, false, true},
    [PROBE_DOT] = {"integer dot product", "cl_khr_integer_dot_product", PLATFORM_OTHER, false, true,
                   false},
    [PROBE_DOT_PTX] = {"integer dot product (PTX)", NULL, PLATFORM_NVIDIA, false, false, false},
    [PROBE_MATRIX_PTX] = {"matrix unit (PTX)", NULL, PLATFORM_NVIDIA, false, false, false},
    [PROBE_MATRIX_EMULATED] = {"matrix unit (emulated)", NULL, PLATFORM_OTHER, true, false, false},
    [PROBE_DOT_BYTES] = {"vectors of dot products of four bytes", NULL, PLATFORM_POCL, true, false,
                         true},
    [PROBE_DOT_SHORTS] = {"vectors of dot products of two shorts", NULL, PLATFORM_POCL, true, false,
                          true},
    [PROBE_DOT_AMD] = {"integer dot product (AMD)", NULL, PLATFORM_AMD, false, false, true},
    [PROBE_DOT_AMD_MIXED] = {"integer dot product (AMD, gfx11)", NULL, PLATFORM_AMD, false, false,
                             true},
    [PROBE_BUILTINS] = {"built-in functions by our declarations", NULL, PLATFORM_OTHER, true, false,
                        true},
    [PROBE_DOT_VECTORS] = {"vectors of dot products", NULL, PLATFORM_POCL, false, false, true},
    [PROBE_REGISTERS] = {"registers of as many floats as it reports", NULL, PLATFORM_POCL, true,
                         false, false},
};

/* Returns whether drivers of this family list all extensions that they support. */
static bool announces_all(platform_family family)
{
    switch (family) {
    case PLATFORM_POCL:
    case PLATFORM_RUSTICL:
    case PLATFORM_CLOVER:
    case PLATFORM_OCLGRIND:
    case PLATFORM_INTEL_CPU:
    case PLATFORM_INTEL_GPU:
    case PLATFORM_INTEL_FPGA:
    case PLATFORM_APPLE: return true;
    default: return false;
    }
}

static bool is_worth_trying(const ocl_context *ocl, probe which)
{
    const probe_row *row = &probes[which];
    const platform_family family = context_caps(ocl)->family;
    if (row->on_demand) return false;
    if (row->only_on != PLATFORM_OTHER) return row->only_on == family;
    const char *at = strstr(context_record(ocl)->extensions, row->extension);
    const char end = at ? at[strlen(row->extension)] : 'x';
    return end == ' ' || end == '\0' || !(row->if_announced || announces_all(family));
}

/* ---- one probe ------------------------------------------------------------------------------- */

static float input_of(probe which, int i) { return which == PROBE_SUBGROUPS ? 3.0f : (float)i; }

/* Returns x plus the sum that work-item i computes from its four elements of a 16x16 by 16x8 matrix
 * product, with weights 1, 10, 100, 1000; see cl/device/probe.cl. */
static float expected_of_matrix(int i)
{
    static const int weights[4] = {1, 10, 100, 1000};
    int all = i; /* x */
    for (int e = 0; e < 4; e++) {
        const int row = i / 4 + e / 2 * 8, col = i % 4 * 2 + e % 2;
        for (int k = 0; k < 16; k++)
            all += weights[e] * ((3 * row + 5 * k) % 7 - 3) * ((2 * col + 3 * k) % 5 - 2);
    }
    return (float)all;
}

/* Returns y[i] of built-in functions, see cl/device/probe.cl. */
static float expected_of_builtins(int i)
{
    const int other = 31 - i, last = i / 4 * 4 + 3; /* of the vector */
    const int shared = 2 * other + 1 + (other < 3 ? other : 3);
    return (float)(shared + (i > 7 ? i : 7) + (last < 4 ? 4 : last > 16 ? 16 : last) + i);
}

static float expected_of(probe which, int i)
{
    switch (which) {
    case PROBE_FP16: { /* fp16 values from 2048 on are even; ties go to multiples of 4 */
        const int sum = 2048 + i * i, even = sum & ~1;
        return (float)(sum == even ? sum : (even & 2) ? even + 2 : even);
    }
    case PROBE_SUBGROUPS: return 3.0f;
    case PROBE_DOT:
    case PROBE_DOT_PTX:
    case PROBE_DOT_AMD:
    case PROBE_DOT_AMD_MIXED: return (float)(6 + i); /* i * 1 - 1 * i - 2 * 3 + 3 * 4, plus x */
    case PROBE_MATRIX_PTX:
    case PROBE_MATRIX_EMULATED: return expected_of_matrix(i);
    case PROBE_BUILTINS: return expected_of_builtins(i);
    case PROBE_DOT_BYTES: return (float)(5 + i * -128 + 255 * 127 + 254 * -1 + 3 * 2);
    case PROBE_DOT_SHORTS: return (float)(5 + i * -128 + 255 * 127);
    default: return (float)i;
    }
}

typedef struct stage {
    cl_program program;
    cl_kernel kernel;
    ocl_queue *queue;
    ocl_buffer *x, *y;
} stage;

static void clear(stage *s)
{
    ocl_queue_free(s->queue); /* waits */
    if (s->kernel) (void)cl.ReleaseKernel(s->kernel);
    if (s->program) (void)cl.ReleaseProgram(s->program);
    ocl_buffer_free(s->x);
    ocl_buffer_free(s->y);
}

static clg_status write_source(probe which, int lanes, strbuf *out_source)
{
    char prelude[64];
    snprintf(prelude, sizeof prelude, "#define P_PROBE %d\n#define P_VEC %d\n", (int)which, lanes);
    const kernel_ref ref = {.source = "probe", .entry = "probe", .prelude = prelude};
    return program_text(&ref, out_source);
}

static clg_status build(ocl_context *ocl, const strbuf *source, stage *s)
{
    const program_source text = {strbuf_data(source), source->size_bytes, false};
    cl_int code;
    CLG_TRY(program_compile(ocl, "probe", &text, true, &s->program));
    CLG_TRY(ocl_context_require(ocl));
    s->kernel = cl.CreateKernel(s->program, "probe", &code);
    return context_check(ocl, code, "clCreateKernel");
}

static clg_status run(ocl_context *ocl, stage *s, float *y)
{
    const size_t n_bytes = N_VALUES * sizeof *y, n_items = N_VALUES;
    CLG_TRY(ocl_buffer_create(ocl, n_bytes, OCL_BUFFER_DEVICE, &s->x));
    CLG_TRY(ocl_buffer_create(ocl, n_bytes, OCL_BUFFER_DEVICE, &s->y));
    CLG_TRY(ocl_queue_create_own(ocl, &s->queue));
    CLG_TRY(ocl_queue_write(s->queue, s->x, 0, y, n_bytes, true));
    cl_mem x_handle = ocl_buffer_handle(s->x), y_handle = ocl_buffer_handle(s->y);
    CL_TRY(ocl, SetKernelArg, (s->kernel, 0, sizeof x_handle, &x_handle));
    CL_TRY(ocl, SetKernelArg, (s->kernel, 1, sizeof y_handle, &y_handle));
    const size_t *local = context_record(ocl)->max_work_group_size >= n_items ? &n_items : NULL;
    CL_TRY(ocl, EnqueueNDRangeKernel,
           (ocl_queue_handle(s->queue), s->kernel, 1, NULL, &n_items, local, 0, NULL, NULL));
    return ocl_queue_read(s->queue, s->y, 0, y, n_bytes, true);
}

/* Runs a probe in this process; y holds the input, then the results. */
static clg_status compute_here(ocl_context *ocl, const strbuf *source, float *y)
{
    stage s = {0};
    clg_status status = build(ocl, source, &s);
    if (status == CLG_OK) status = run(ocl, &s, y);
    clear(&s);
    return status;
}

/* Sends a request, and once more if it crashed the helper: a crash counts only if it happens twice,
 * since one crash may have another cause. */
static clg_status request_twice(ocl_context *ocl, const helper_request *request,
                                helper_reply *out_reply)
{
    CLG_TRY(helper_call(ocl, request, NULL, NULL, out_reply));
    if (out_reply->outcome != HELPER_CRASHED && out_reply->outcome != HELPER_KILLED) return CLG_OK;
    helper_reply_deinit(out_reply);
    return helper_call(ocl, request, NULL, NULL, out_reply);
}

/* Runs a probe in the compile helper; y holds the input, then the results. UNSUPPORTED_DEVICE when
 * the compiler rejects the probe or crashes. */
static clg_status compute_in_helper(ocl_context *ocl, const strbuf *source, float *y,
                                    helper_outcome *out_outcome)
{
    const size_t n_bytes = N_VALUES * sizeof *y;
    const bool one_group = context_record(ocl)->max_work_group_size >= N_VALUES;
    helper_request request = {.name = "probe",
                              .entry = "probe",
                              .source = strbuf_data(source),
                              .source_bytes = source->size_bytes,
                              .has_launch = true,
                              .launch = {1, one_group, {N_VALUES, 1, 1}, {N_VALUES, 1, 1}},
                              .content_arg = 1};
    helper_reply reply = {0};
    clg_status status = kernel_args_set_buffer(&request.args, 0, &request, 0, n_bytes, y);
    if (status == CLG_OK) status = kernel_args_set_buffer(&request.args, 1, y, 0, n_bytes, NULL);
    if (status == CLG_OK) status = request_twice(ocl, &request, &reply);
    *out_outcome = reply.outcome;
    if (status == CLG_OK && reply.outcome == HELPER_DONE && reply.content_bytes == n_bytes)
        memcpy(y, reply.content, n_bytes);
    else if (status == CLG_OK)
        status = error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "the probe failed: %s",
                           reply.text ? reply.text : "no reason given");
    helper_reply_deinit(&reply);
    kernel_args_deinit(&request.args);
    return status;
}

/* Runs a probe with vectors of `lanes` floats; y holds its input, then its results. *out_sure:
 * whether the result may be cached, since any other process would get the same. */
static clg_status compute(ocl_context *ocl, probe which, int lanes, float *y, bool *out_sure)
{
    strbuf source;
    helper_outcome outcome = HELPER_UNABLE;
    CLG_TRY(write_source(which, lanes, &source));
    clg_status status = CLG_OK;
    if (helper_is_on(ocl)) status = compute_in_helper(ocl, &source, y, &outcome);
    const bool is_here = outcome == HELPER_UNABLE && !probes[which].kills_compilers;
    if (is_here) status = compute_here(ocl, &source, y);
    *out_sure =
        is_here || outcome == HELPER_DONE || outcome == HELPER_REFUSED || outcome == HELPER_CRASHED;
    if (!is_here && outcome == HELPER_UNABLE)
        status = error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "not tried without the compile helper");
    strbuf_deinit(&source);
    return status;
}

static void fill_input(probe which, float *y)
{
    for (int i = 0; i < N_VALUES; i++) y[i] = input_of(which, i);
}

/* Returns whether elements first, first + step... are what the probe computes. */
static bool is_right(probe which, const float *y, int first, int step)
{
    for (int i = first; i < N_VALUES; i += step)
        if (y[i] != expected_of(which, i)) return false;
    return true;
}

/* Returns whether an error says that the device lacks what is probed. */
static bool is_lack(clg_status status)
{
    return status == CLG_ERROR_KERNEL_BUILD || status == CLG_ERROR_UNSUPPORTED_DEVICE;
}

static void report(const ocl_context *ocl, probe which, bool proved, clg_status status)
{
    log_write(CLG_LOG_DEBUG, "'%s' %s %s%s%s", context_record(ocl)->name, proved ? "has" : "lacks",
              probes[which].name, status == CLG_OK ? "" : ": ",
              status == CLG_OK ? "" : error_text());
}

typedef struct finding {
    bool proved, sure; /* sure: see compute */
} finding;

typedef struct findings {
    finding of[PROBE_END];
    int lanes; /* of vectors: see prove_vectors */
} findings;

/* Finds out whether the probe's results are right. lanes: of its vectors, 1 if it has none. Returns
 * an error only for failures that are unrelated to the capability. */
static clg_status prove(ocl_context *ocl, probe which, int lanes, finding *out)
{
    float y[N_VALUES];
    *out = (finding){false, false};
    fill_input(which, y);
    const clg_status status = compute(ocl, which, lanes, y, &out->sure);
    out->proved = status == CLG_OK && is_right(which, y, 0, 1);
    report(ocl, which, out->proved, status);
    return is_lack(status) ? CLG_OK : status;
}

/* As prove, for dot products of bytes and of shorts: both by one program, since each costs a
 * compilation, or each by its own if that one cannot be compiled. */
static clg_status prove_dot_vectors(ocl_context *ocl, int lanes, finding findings[PROBE_END])
{
    static const probe kinds[] = {PROBE_DOT_BYTES, PROBE_DOT_SHORTS};
    float y[N_VALUES];
    bool sure;
    fill_input(PROBE_DOT_VECTORS, y);
    const clg_status status = compute(ocl, PROBE_DOT_VECTORS, lanes, y, &sure);
    if (status != CLG_OK && !is_lack(status)) return status;
    if (status != CLG_OK) report(ocl, PROBE_DOT_VECTORS, false, status);
    for (int k = 0; k < 2; k++) {
        finding *f = &findings[kinds[k]];
        if (status != CLG_OK) {
            CLG_TRY(prove(ocl, kinds[k], lanes, f));
            continue;
        }
        *f = (finding){is_right(kinds[k], y, k, 2), sure};
        report(ocl, kinds[k], f->proved, CLG_OK);
    }
    return CLG_OK;
}

/* Finds the lanes of the device's vectors: those that it reports, or 4 where its compiler has no
 * such registers. PoCL reports those of the processor, and LLVM takes one that it does not know for
 * an older one: PoCL 3.0 then calls functions that are compiled for other registers, and computes
 * vectors of 16 floats or 8 doubles wrongly. What has dot products of so many lanes has the
 * registers. */
static clg_status prove_vectors(ocl_context *ocl, findings *all)
{
    finding *const registers = &all->of[PROBE_REGISTERS];
    all->lanes = caps_simd_lanes(context_caps(ocl));
    CLG_TRY(prove_dot_vectors(ocl, all->lanes, all->of));
    if (all->lanes == 4 || all->of[PROBE_DOT_BYTES].proved || all->of[PROBE_DOT_SHORTS].proved)
        return CLG_OK;
    CLG_TRY(prove(ocl, PROBE_REGISTERS, all->lanes, registers));
    if (registers->proved) return CLG_OK;
    all->lanes = 4;
    return prove_dot_vectors(ocl, all->lanes, all->of);
}

/* ---- all probes ------------------------------------------------------------------------------ */

/* Returns bits that distinguish processors, for the key of the cached results: a cache may be
 * copied to another machine, and processors of the same name may differ. On x86 they are computed
 * from leaf 7 of CPUID, which reports AVX-512 and dot-product instructions; elsewhere 0. */
static uint32_t processor_bits(void)
{
    uint32_t bits = 0;
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) bits = b ^ (c << 7 | c >> 25);
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) bits ^= a << 13 | a >> 19;
#endif
    return bits;
}

/* Name of the cache record of all results. Results found without a compile helper have another
 * name, since some probes were skipped. */
#define PROBE_KEY "probes 9%s, vectors of %d, processor %08x"

/* Returns the kind of dot product to use: the first one whose probe passed, the Khronos extension
 * before the instructions of vendors. */
static int8_dot choose_dot(const uint8_t proved[PROBE_END])
{
    static const struct {
        probe which;
        int8_dot kind;
    } rows[] = {{PROBE_DOT, INT8_DOT_KHR},
                {PROBE_DOT_PTX, INT8_DOT_PTX},
                {PROBE_DOT_AMD, INT8_DOT_AMD},
                {PROBE_DOT_AMD_MIXED, INT8_DOT_AMD_MIXED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (proved[rows[i].which]) return rows[i].kind;
    return INT8_DOT_NONE;
}

/* Probes capability `which`; a batch_function. jobs: the findings. */
static clg_status find_out(ocl_context *ocl, void *jobs, size_t which)
{
    findings *all = jobs;
    if (which < PROBE_FP16 || !is_worth_trying(ocl, (probe)which)) return CLG_OK;
    if (which == PROBE_DOT_VECTORS) return prove_vectors(ocl, all);
    return prove(ocl, (probe)which, 1, &all->of[which]);
}

/* What is cached. */
typedef struct probe_record {
    uint8_t proved[PROBE_END];
    quirk_answers quirks;
    uint32_t zero_copy_align_bytes, vector_width;
} probe_record;

static clg_status builtins_pass(ocl_context *ocl, bool *out_passes)
{
    finding f;
    CLG_TRY(prove(ocl, PROBE_BUILTINS, 1, &f));
    *out_passes = f.proved;
    if (f.sure) return CLG_OK;
    return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "the compile helper cannot test declarations");
}

/* Measures quirks that no row decides, where the driver's compiler has passed a probe. */
static clg_status measure_quirks(ocl_context *ocl, device_caps *caps, probe_record *r)
{
    bool any = false;
    for (int which = PROBE_FP16; which < PROBE_END; which++) any = any || r->proved[which];
    const uint32_t wanted = any ? quirks_undecided(context_record(ocl), caps) : 0;
    return quirks_measure(ocl, caps, wanted, builtins_pass, &r->quirks);
}

static clg_status run_all(ocl_context *ocl, device_caps *caps, probe_record *r, bool *out_sure)
{
    findings all = {.lanes = (int)caps->vector_width};
    for (int which = 0; which < PROBE_END; which++) all.of[which] = (finding){false, true};
    *out_sure = true;
    CLG_TRY(batch_each(ocl, find_out, &all, PROBE_END));
    for (int which = PROBE_FP16; which < PROBE_END; which++) {
        r->proved[which] = all.of[which].proved;
        *out_sure = *out_sure && all.of[which].sure;
    }
    r->vector_width = (uint32_t)all.lanes;
    CLG_TRY(zero_copy_measure(ocl, &r->zero_copy_align_bytes));
    return measure_quirks(ocl, caps, r);
}

static void take_features(device_caps *caps, const uint8_t proved[PROBE_END])
{
    caps->fp16 = proved[PROBE_FP16];
    caps->fp64 = proved[PROBE_FP64];
    caps->subgroups = proved[PROBE_SUBGROUPS];
    caps->int8_dot_kind = choose_dot(proved);
    caps->int8_dot = caps->int8_dot_kind != INT8_DOT_NONE || proved[PROBE_DOT_BYTES];
    caps->dot_bytes = proved[PROBE_DOT_BYTES];
    caps->dot_shorts = proved[PROBE_DOT_SHORTS];
    caps->matrix = proved[PROBE_MATRIX_PTX] ? MATRIX_UNIT_NVIDIA : MATRIX_UNIT_NONE;
    caps->probed = true;
}

clg_status probe_device(ocl_context *ocl, device_caps *caps)
{
    probe_record r;
    memset(&r, 0, sizeof r); /* with its padding, which is cached */
    bool all_sure = true;
    char *known, key[96];
    size_t n_bytes;
    const bool helped = helper_is_on(ocl);
    const char *kind = helped ? "" : " without helper";
    snprintf(key, sizeof key, PROBE_KEY, kind, caps_simd_lanes(caps), (unsigned)processor_bits());
    if (ocl_context_recall(ocl, key, &known, &n_bytes)) {
        if (n_bytes == sizeof r) memcpy(&r, known, sizeof r);
        memory_free(known);
    } else {
        n_bytes = 0;
    }
    if (n_bytes != sizeof r) {
        CLG_TRY(run_all(ocl, caps, &r, &all_sure));
        if (helper_is_on(ocl) == helped && (all_sure || !helped))
            ocl_context_remember(ocl, key, "what the device can do", &r, sizeof r);
    }
    take_features(caps, r.proved);
    caps->zero_copy_align_bytes = r.zero_copy_align_bytes;
    caps->vector_width = r.vector_width;
    return quirks_apply(caps, &r.quirks);
}

clg_status probe_emulated_matrix(ocl_context *ocl, device_caps *caps)
{
    finding f;
    if (caps->matrix != MATRIX_UNIT_NONE) return CLG_OK;
    CLG_TRY(prove(ocl, PROBE_MATRIX_EMULATED, 1, &f));
    if (f.proved) caps->matrix = MATRIX_UNIT_EMULATED;
    return CLG_OK;
}
