/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one implementation of a self-test problem on the device with generated inputs, and compares
 * every element of its outputs with the reference.
 */
#include "session/selftest/selftest.h"

#include "base/hash.h"
#include "base/strbuf.h"
#include "session/run/launch.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Elements after the output, and before it in tests with offsets, that no kernel may write. */
#define GUARD_ELEMS 64

/* ---- variants -------------------------------------------------------------------------------- */

int selftest_size_class(const gemm_problem *g)
{
    const double quarters = 4 * log2((double)g->m * (double)g->n * (double)g->k);
    return quarters < 4 * 21 ? 0 : quarters < 4 * 33 ? (int)quarters : 4 * 33;
}

void selftest_add_step(const step *s, strbuf *out)
{
    if (s->kind == STEP_KERNEL) {
        strbuf_printf(out, "%s %s %u %llu %llu %llu %s", s->kernel.source, s->kernel.entry,
                      (unsigned)s->n_dims, (unsigned long long)s->local[0],
                      (unsigned long long)s->local[1], (unsigned long long)s->local[2],
                      s->kernel.baseline ? "baseline " : "");
        /* texts of kilobytes, which printf copies byte by byte */
        const char *texts[] = {s->kernel.packed, s->kernel.prelude, s->kernel.body};
        for (int i = 0; i < 3; i++) {
            if (texts[i]) strbuf_append(out, texts[i]);
            strbuf_append(out, "\n");
        }
    } else if (s->kind == STEP_BLAS_GEMM) {
        const gemm_problem *g = &s->gemm;
        strbuf_printf(out, "CLBlast %d %d %d %d %d\n", g->trans_a, g->trans_b, g->batch > 1,
                      ocl_blas_batches(g), selftest_size_class(g));
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool selftest_repeats(const step *before, const step *s)
{
    if (!before || before->kind != STEP_KERNEL || s->kind != STEP_KERNEL) return false;
    const kernel_ref *a = &before->kernel, *b = &s->kernel;
    return same_text(a->source, b->source) && same_text(a->entry, b->entry) &&
           same_text(a->packed, b->packed) && same_text(a->prelude, b->prelude) &&
           same_text(a->body, b->body) && a->baseline == b->baseline &&
           before->n_dims == s->n_dims && memcmp(before->local, s->local, sizeof s->local) == 0;
}

static void add_steps(const step *steps, strbuf *out)
{
    const step *before = NULL;
    for (const step *s = steps; s; before = s, s = s->next)
        if (selftest_repeats(before, s))
            strbuf_append(out, "again\n");
        else
            selftest_add_step(s, out);
}

void selftest_variant(const candidate *impl, strbuf *out)
{
    strbuf_printf(out, "%s\n", impl->variant);
    for (uint32_t i = 0; i < impl->n_packings; i++) add_steps(impl->packings[i].steps, out);
    add_steps(impl->steps, out);
}

/* Appends what selftest_add_step does, with the addresses of texts. */
static void add_addresses(const step *s, strbuf *out)
{
    uint64_t words[10] = {(uint64_t)s->kind};
    if (s->kind == STEP_KERNEL) {
        const void *texts[] = {s->kernel.source, s->kernel.entry, s->kernel.packed,
                               s->kernel.prelude, s->kernel.body};
        for (int i = 0; i < 5; i++) words[1 + i] = (uint64_t)(uintptr_t)texts[i];
        words[6] = s->n_dims | (uint64_t)s->kernel.baseline << 32;
        for (int d = 0; d < 3; d++) words[7 + d] = s->local[d];
    } else if (s->kind == STEP_BLAS_GEMM) {
        const gemm_problem *g = &s->gemm;
        const int facts[] = {g->trans_a, g->trans_b, g->batch > 1, ocl_blas_batches(g),
                             selftest_size_class(g)};
        for (int i = 0; i < 5; i++) words[1 + i] = (uint64_t)facts[i];
    }
    strbuf_append_bytes(out, (const char *)words, sizeof words);
}

void selftest_variant_addresses(const candidate *impl, strbuf *out)
{
    strbuf_append(out, impl->variant);
    for (uint32_t i = 0; i < impl->n_packings; i++)
        for (const step *s = impl->packings[i].steps; s; s = s->next) add_addresses(s, out);
    for (const step *s = impl->steps; s; s = s->next) add_addresses(s, out);
}

const char *selftest_kernel(const candidate *impl)
{
    const step *max = impl->steps;
    for (const step *s = max; s; s = s->next)
        if (s->flops > max->flops) max = s;
    if (!max) return "nothing";
    return max->kind == STEP_BLAS_GEMM ? "CLBlast"
           : max->kind == STEP_KERNEL  ? max->kernel.entry
                                       : "copy";
}

/* ---- problems -------------------------------------------------------------------------------- */

/* Infers dtypes and shapes of the outputs. Returns NOT_FOUND where they are not determined. */
static clg_status infer_outputs(selftest_problem *p)
{
    value_fact facts[SELFTEST_MAX_INPUTS] = {0}, y[SELFTEST_MAX_OUTPUTS] = {0};
    uint32_t needs = 0;
    bool known = true;
    for (size_t i = 0; i < p->node.n_inputs; i++)
        facts[i] = (value_fact){
            .dtype = p->inputs[i].dtype, .dims = p->inputs[i].dims, .known = p->inputs[i].known};
    CLG_TRY(ops_infer_node(&p->node, facts, y, &needs));
    for (size_t k = 0; k < p->node.n_outputs; k++) {
        tensor_free((tensor *)y[k].known);
        p->outputs[k] = (lower_operand){.dims = {.rank = RANK_UNKNOWN}};
        if (p->node.outputs[k] == VALUE_NONE) continue;
        known = known && shape_is_known(&y[k].dims) && y[k].dtype != CLG_DTYPE_NONE;
        p->outputs[k] = (lower_operand){.dtype = y[k].dtype, .dims = y[k].dims, .dense = true};
        if (known) shape_strides(&y[k].dims, p->outputs[k].strides);
    }
    if (needs || !known)
        return error_set(CLG_ERROR_NOT_FOUND, "the self-test of %s has no shape", p->node.op_type);
    return CLG_OK;
}

clg_status selftest_lower(const device_context *context, const lower_context *as,
                          selftest_problem *p)
{
    CLG_TRY(infer_outputs(p));
    p->lc = (lower_context){.node = &p->node,
                            .row = p->node.op,
                            .inputs = p->inputs,
                            .outputs = p->outputs,
                            .n_inputs = p->node.n_inputs,
                            .n_outputs = p->node.n_outputs,
                            .caps = ocl_context_caps(context->ocl),
                            .kernel_class = as->kernel_class,
                            .caution = as->caution,
                            .baseline = as->baseline,
                            .memory = &p->memory};
    CLG_TRY(ops_lower_node(&p->lc));
    for (candidate *c = p->lc.build.candidates; c; c = c->next)
        candidate_set_baseline(c, as->baseline);
    return CLG_OK;
}

void selftest_set_op(selftest_problem *p, const selftest_op *op)
{
    const bool has_range = op->low != 0 || op->high != 0;
    p->op = op;
    p->low = has_range ? op->low : -1;
    p->high = has_range ? op->high : 1;
    p->tolerance = op->tolerance > 0 ? op->tolerance : 1;
}

void selftest_deinit(selftest_problem *p) { arena_deinit(&p->memory); }

/* ---- running --------------------------------------------------------------------------------- */

typedef struct test_run {
    device_context *context;
    const selftest_problem *problem;
    const candidate *impl;
    int64_t lead; /* elements before each input and output */
    arena memory;
    double *in[SELFTEST_MAX_INPUTS];
    ocl_buffer *inputs[SELFTEST_MAX_INPUTS], *outputs[SELFTEST_MAX_OUTPUTS], *fault;
    tensor *got[SELFTEST_MAX_OUTPUTS]; /* what the device computed, with lead and guard */
    ocl_buffer *scratch[CANDIDATE_MAX_SCRATCH], *packed[CANDIDATE_MAX_PACKINGS];
} test_run;

static int64_t lead_bytes(const test_run *r, const lower_operand *o)
{
    return r->lead * (int64_t)dtype_size(o->dtype);
}

static clg_status bind_operand(void *self, const operand *o, bound_buffer *to)
{
    test_run *r = self;
    switch (o->space) {
    case OPERAND_INPUT:
        to->buffer = r->inputs[o->index];
        to->offset_bytes += lead_bytes(r, &r->problem->inputs[o->index]);
        break;
    case OPERAND_OUTPUT:
        to->buffer = r->outputs[o->index];
        to->offset_bytes += lead_bytes(r, &r->problem->outputs[o->index]);
        break;
    case OPERAND_SCRATCH: to->buffer = r->scratch[o->index]; break;
    case OPERAND_PACKED: to->buffer = r->packed[o->index]; break;
    }
    if (to->buffer) return CLG_OK;
    return error_set(CLG_ERROR_INTERNAL,
                     "implementation '%s' of %s has an operand that does not exist",
                     r->impl->variant, r->problem->node.op_type);
}

/* Returns the byte that memory has before it is written: all bits are set for floats, which are
 * NaNs then, so that reads of unwritten memory show in the result; integers get one that is no
 * extreme of 8 bits, which results often are. */
static uint8_t unwritten_byte(clg_dtype dtype)
{
    return dtype == CLG_DTYPE_NONE || dtype_is_float(dtype) ? UINT8_MAX : 0xA5;
}

/* Creates a buffer that is filled with a byte. */
static clg_status make_buffer(test_run *r, size_t size_bytes, uint8_t byte, ocl_buffer **out_buffer)
{
    const uint32_t word = byte * 0x01010101u;
    size_bytes = (size_bytes + 3) / 4 * 4;
    CLG_TRY(ocl_buffer_create(r->context->ocl, size_bytes, OCL_BUFFER_DEVICE, out_buffer));
    mutex_lock(&r->context->utility_lock);
    clg_status status = size_bytes ? ocl_queue_fill(r->context->utility, *out_buffer, 0, size_bytes,
                                                    &word, sizeof word)
                                   : CLG_OK;
    mutex_unlock(&r->context->utility_lock);
    return status;
}

/* Returns element `at` of input `i`: what the operator's contents give, if anything; else a small
 * integer or a random bool; else one of 65 equidistant values from low to high, which float16
 * represents exactly for the ranges in use. */
static double element(const selftest_problem *p, size_t i, int64_t at)
{
    const uint64_t random = hash_bytes(&at, sizeof at, i + 1 + p->seed);
    const lower_operand *o = &p->inputs[i];
    double content;
    if (p->op->contents && p->op->contents(p, i, at, random, &content)) return content;
    switch (dtype_find(o->dtype)->kind) {
    case DTYPE_KIND_FLOAT: return p->low + (p->high - p->low) * (double)(random % 65) / 64.0;
    case DTYPE_KIND_BOOL: return (double)(random % 2);
    case DTYPE_KIND_SIGNED: return (double)(random % 33) - 16;
    default: return (double)(random % 33);
    }
}

/* Returns the offset, according to the operand's strides, of element `at` in row-major order. */
static int64_t place_of(const lower_operand *o, int64_t at)
{
    int64_t place = 0;
    for (int d = o->dims.rank - 1; d >= 0; d--) {
        place += at % o->dims.dims[d] * o->strides[d];
        at /= o->dims.dims[d];
    }
    return place;
}

/* Returns how many elements of memory an operand spans; 0 where a stride is negative. */
static int64_t span_of(const lower_operand *o)
{
    int64_t span = 1;
    for (int d = 0; d < o->dims.rank; d++) {
        if (o->dims.dims[d] == 0 || o->strides[d] < 0) return 0;
        span += (o->dims.dims[d] - 1) * o->strides[d];
    }
    return span;
}

/* Fills t with the elements of input i, from element `lead` on, placed by the strides. */
static void fill_input(const test_run *r, size_t i, int64_t n, tensor *t)
{
    const lower_operand *o = &r->problem->inputs[i];
    const size_t unit = dtype_size(o->dtype);
    char *data = t->data;
    for (int64_t at = 0; at < n; at++) {
        const int64_t place = r->lead + (o->dense ? at : place_of(o, at));
        if (o->known)
            memcpy(data + (size_t)place * unit, (const char *)o->known->data + (size_t)at * unit,
                   unit);
        else
            tensor_set_float(t, place, element(r->problem, i, at));
    }
    for (int64_t at = 0; at < n; at++)
        r->in[i][at] = tensor_get_float(t, r->lead + (o->dense ? at : place_of(o, at)));
}

/* Returns whether double, in which references compute, has each of n integers of 64 bits. What only
 * moves elements is right with rounded ones, too. */
static bool has_doubles(const test_run *r, const tensor *known, int64_t n)
{
    const uint64_t limit = (uint64_t)1 << DBL_MANT_DIG;
    if (!known || (known->dtype != CLG_INT64 && known->dtype != CLG_UINT64)) return true;
    if (selftest_moves(r->problem->op)) return true;
    for (int64_t i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, (const char *)known->data + (size_t)i * sizeof v, sizeof v);
        if (known->dtype == CLG_INT64 && v > INT64_MAX) v = -v; /* its magnitude */
        if (v > limit) return false;
    }
    return true;
}

/* Generates input i, in double for the reference and in its dtype on the device. */
static clg_status make_input(test_run *r, size_t i)
{
    const lower_operand *o = &r->problem->inputs[i];
    int64_t n;
    tensor *t;
    if (o->dtype == CLG_DTYPE_NONE) return CLG_OK;
    CLG_TRY(shape_n_elements(&o->dims, &n));
    r->in[i] = arena_alloc(&r->memory, (size_t)n + 1, sizeof(double));
    if (!r->in[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const int64_t span = o->dense ? n : span_of(o);
    if (span == 0 && n > 0)
        return error_set(CLG_ERROR_NOT_FOUND, "an input of %s is reversed",
                         r->problem->node.op_type);
    if (!has_doubles(r, o->known, n))
        return error_set(CLG_ERROR_NOT_FOUND, "a constant of %s has integers beyond 2^53",
                         r->problem->node.op_type);
    const shape stored = {.rank = 1, .dims = {r->lead + span}};
    CLG_TRY(tensor_create(o->dtype, &stored, &t));
    fill_input(r, i, n, t);
    clg_status status =
        ocl_buffer_create(r->context->ocl, t->size_bytes, OCL_BUFFER_DEVICE, &r->inputs[i]);
    if (status == CLG_OK && t->size_bytes)
        status = context_upload(r->context, r->inputs[i], 0, t->data, t->size_bytes);
    tensor_free(t);
    return status;
}

/* Creates the buffer of output k and the host's tensor for it. */
static clg_status make_output(test_run *r, size_t k)
{
    const lower_operand *o = &r->problem->outputs[k];
    int64_t n;
    if (o->dtype == CLG_DTYPE_NONE) return CLG_OK;
    CLG_TRY(shape_n_elements(&o->dims, &n));
    const shape stored = {.rank = 1, .dims = {r->lead + n + GUARD_ELEMS}};
    CLG_TRY(tensor_create(o->dtype, &stored, &r->got[k]));
    return make_buffer(r, r->got[k]->size_bytes, unwritten_byte(o->dtype), &r->outputs[k]);
}

static clg_status make_memory(test_run *r)
{
    const int32_t no_fault[FAULT_WORDS] = {0};
    for (size_t i = 0; i < r->problem->node.n_inputs; i++) CLG_TRY(make_input(r, i));
    for (size_t k = 0; k < r->problem->node.n_outputs; k++) CLG_TRY(make_output(r, k));
    for (uint32_t i = 0; i < r->impl->n_scratch; i++)
        CLG_TRY(make_buffer(r, r->impl->scratch_bytes[i], UINT8_MAX, &r->scratch[i]));
    for (uint32_t i = 0; i < r->impl->n_packings; i++)
        CLG_TRY(make_buffer(r, r->impl->packings[i].size_bytes, UINT8_MAX, &r->packed[i]));
    CLG_TRY(ocl_buffer_create(r->context->ocl, sizeof no_fault, OCL_BUFFER_DEVICE, &r->fault));
    return context_upload(r->context, r->fault, 0, no_fault, sizeof no_fault);
}

static clg_status launch_all(test_run *r)
{
    for (uint32_t i = 0; i < r->impl->n_packings; i++)
        for (const step *s = r->impl->packings[i].steps; s; s = s->next)
            CLG_TRY(launch_once(r->context, s, bind_operand, r, r->fault));
    for (const step *s = r->impl->steps; s; s = s->next)
        CLG_TRY(launch_once(r->context, s, bind_operand, r, r->fault));
    return CLG_OK;
}

static void release(test_run *r)
{
    /* commands in flight retain the buffers */
    for (size_t i = 0; i < SELFTEST_MAX_INPUTS; i++) ocl_buffer_free(r->inputs[i]);
    for (size_t i = 0; i < CANDIDATE_MAX_SCRATCH; i++) ocl_buffer_free(r->scratch[i]);
    for (size_t i = 0; i < CANDIDATE_MAX_PACKINGS; i++) ocl_buffer_free(r->packed[i]);
    for (size_t k = 0; k < SELFTEST_MAX_OUTPUTS; k++) {
        ocl_buffer_free(r->outputs[k]);
        tensor_free(r->got[k]);
    }
    ocl_buffer_free(r->fault);
    arena_deinit(&r->memory);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Returns whether it is a Winograd algorithm with tiles larger than 2x2. */
static bool has_larger_bound(const char *impl)
{
    return strncmp(impl, "winograd_", 9) == 0 && !strstr(impl, "_2x2");
}

/* Returns the error bound of an element, relative to the sum of its terms' magnitudes. */
static double bound_of(clg_dtype dtype, const char *impl)
{
    switch (dtype) {
    case CLG_FLOAT16: return 2e-3;
    case CLG_BFLOAT16: return 1.6e-2;
    case CLG_FLOAT64: return 1e-13;
    case CLG_FLOAT32: return has_larger_bound(impl) ? 4e-5 : 4e-6;
    default: return 0;
    }
}

/* Returns whether elements from..to-1 are still as make_buffer left them. */
static bool is_untouched(const tensor *t, int64_t from, int64_t to)
{
    const uint8_t *bytes = t->data;
    const int64_t unit = (int64_t)dtype_size(t->dtype);
    for (int64_t i = from * unit; i < to * unit; i++)
        if (bytes[i] != unwritten_byte(t->dtype)) return false;
    return true;
}

/* Returns the largest finite number of a dtype; infinity where all numbers are representable. */
static double largest(clg_dtype dtype)
{
    return dtype == CLG_FLOAT16 ? 65504 : dtype == CLG_FLOAT32 ? (double)FLT_MAX : INFINITY;
}

/* Returns the error of an element relative to its scale; infinity for a NaN that is not expected,
 * or an expected one that is missing. */
static double error_of(clg_dtype dtype, double got, double expected, double scale)
{
    if (isnan(scale)) return 0;
    if (fabs(expected) > largest(dtype)) expected = copysign(INFINITY, expected);
    if (got == expected || (isnan(got) && isnan(expected))) return 0;
    const double error = fabs(got - expected) / scale;
    return isnan(error) ? INFINITY : error;
}

/* Returns an element; of bools the byte, which must be 0 or 1. */
static double number_at(const tensor *t, int64_t i)
{
    return t->dtype == CLG_BOOL ? ((const uint8_t *)t->data)[i] : tensor_get_float(t, i);
}

/* Compares output k with the reference, and puts the result into *out if it is worse. */
static void compare_output(const test_run *r, size_t k, const selftest_expected *expected,
                           selftest_result *out)
{
    const tensor *got = r->got[k];
    const int64_t end = got->n_elements - GUARD_ELEMS;
    const double bound = bound_of(got->dtype, r->impl->variant) * r->problem->tolerance;
    double worst = 0;
    for (int64_t i = r->lead; i < end; i++) {
        const double error = error_of(got->dtype, number_at(got, i), expected->y[i - r->lead],
                                      expected->scale[i - r->lead]);
        worst = error > worst ? error : worst;
    }
    if (!is_untouched(got, 0, r->lead) || !is_untouched(got, end, end + GUARD_ELEMS))
        worst = INFINITY;
    const bool passed = worst <= bound;
    if (out->worst < 0 || (out->passed && (!passed || worst * out->bound > out->worst * bound)))
        *out = (selftest_result){passed, worst, bound};
}

static clg_status compare(test_run *r, selftest_result *out)
{
    selftest_expected expected[SELFTEST_MAX_OUTPUTS] = {{NULL, NULL}};
    *out = (selftest_result){.worst = -1}; /* no output was compared yet */
    for (size_t k = 0; k < r->problem->node.n_outputs; k++) {
        if (!r->got[k]) continue;
        const size_t n = (size_t)r->got[k]->n_elements + 1;
        expected[k].y = arena_alloc(&r->memory, n, sizeof(double));
        expected[k].scale = arena_alloc(&r->memory, n, sizeof(double));
        if (!expected[k].y || !expected[k].scale) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    CLG_TRY(r->problem->op->reference(&r->problem->lc, (const double *const *)r->in, expected));
    for (size_t k = 0; k < r->problem->node.n_outputs; k++)
        if (r->got[k]) compare_output(r, k, &expected[k], out);
    return CLG_OK;
}

static clg_status download_outputs(test_run *r)
{
    for (size_t k = 0; k < r->problem->node.n_outputs; k++)
        if (r->got[k])
            CLG_TRY(context_download(r->context, r->outputs[k], 0, r->got[k]->data,
                                     r->got[k]->size_bytes));
    return CLG_OK;
}

static clg_status run(test_run *r, selftest_result *out)
{
    CLG_TRY(make_memory(r));
    CLG_TRY(launch_all(r));
    CLG_TRY(download_outputs(r));
    return compare(r, out);
}

/* Runs the test with `lead` elements before each input and the output. */
static clg_status run_at(device_context *context, const selftest_problem *p, const candidate *impl,
                         int64_t lead, selftest_result *out_result)
{
    *out_result = (selftest_result){0};
    test_run *r = memory_zalloc(1, sizeof *r);
    if (!r) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    r->context = context;
    r->problem = p;
    r->impl = impl;
    r->lead = lead;
    const clg_status status = run(r, out_result);
    if (status != CLG_OK) {
        error_record failure;
        error_save(status, &failure);
        mutex_lock(&context->utility_lock);
        (void)ocl_queue_finish(context->utility);
        mutex_unlock(&context->utility_lock);
        (void)error_restore(&failure);
    }
    release(r);
    memory_free(r);
    return status;
}

/* Returns whether the implementation uses CLBlast's batched GEMM, which also has to work with
 * offsets. */
static bool has_batches(const candidate *impl)
{
    for (const step *s = impl->steps; s; s = s->next)
        if (s->kind == STEP_BLAS_GEMM && ocl_blas_batches(&s->gemm)) return true;
    return false;
}

/* Keeps the worse of two results in *out. */
static void keep_worse(const selftest_result *other, selftest_result *out)
{
    if (!other->passed || (out->passed && other->worst > out->worst)) *out = *other;
}

clg_status selftest_run(device_context *context, const selftest_problem *p, const candidate *impl,
                        selftest_result *out_result)
{
    selftest_result other;
    CLG_TRY(run_at(context, p, impl, 0, out_result));
    if (has_batches(impl)) {
        CLG_TRY(run_at(context, p, impl, GUARD_ELEMS, &other));
        keep_worse(&other, out_result);
    }
    if (p->op->positive_too && !p->has_own_range) {
        selftest_problem *positive = memory_alloc(sizeof *positive);
        if (!positive) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        *positive = *p;
        positive->low = 0.25;
        positive->seed = 1;
        const clg_status status = run_at(context, positive, impl, 0, &other);
        memory_free(positive);
        CLG_TRY(status);
        keep_worse(&other, out_result);
    }
    return CLG_OK;
}
