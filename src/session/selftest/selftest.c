/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one implementation of a self-test problem on the device with generated inputs, and compares
 * every element of its output with the reference.
 */
#include "session/selftest/selftest.h"

#include "base/hash.h"
#include "base/strbuf.h"
#include "session/run/launch.h"

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
        strbuf_printf(out, "%s %s %u %llu %llu %llu %s\n%s%s\n", s->kernel.source, s->kernel.entry,
                      (unsigned)s->n_dims, (unsigned long long)s->local[0],
                      (unsigned long long)s->local[1], (unsigned long long)s->local[2],
                      s->kernel.packed ? s->kernel.packed : "", s->kernel.prelude,
                      s->kernel.body ? s->kernel.body : "");
    } else if (s->kind == STEP_BLAS_GEMM) {
        const gemm_problem *g = &s->gemm;
        strbuf_printf(out, "CLBlast %d %d %d %d %d\n", g->trans_a, g->trans_b, g->batch > 1,
                      ocl_blas_batches(g), selftest_size_class(g));
    }
}

void selftest_variant(const candidate *impl, strbuf *out)
{
    strbuf_printf(out, "%s\n", impl->variant);
    for (uint32_t i = 0; i < impl->n_packings; i++)
        for (const step *s = impl->packings[i].steps; s; s = s->next) selftest_add_step(s, out);
    for (const step *s = impl->steps; s; s = s->next) selftest_add_step(s, out);
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

clg_status selftest_lower(const clg_context *context, clg_kernel_class kernel_class,
                          selftest_problem *p)
{
    value_fact facts[SELFTEST_MAX_INPUTS + 1] = {0};
    uint32_t needs = 0;
    for (size_t i = 0; i < p->node.n_inputs; i++)
        facts[i] = (value_fact){.dtype = p->inputs[i].dtype, .dims = p->inputs[i].dims};
    value_fact *y = &facts[SELFTEST_MAX_INPUTS];
    CLG_TRY(ops_infer_node(&p->node, facts, y, &needs));
    tensor_free((tensor *)y->known);
    if (needs || !shape_is_known(&y->dims))
        return error_set(CLG_ERROR_INTERNAL, "the self-test of %s has no shape", p->node.op_type);
    p->output = (lower_operand){.dtype = y->dtype, .dims = y->dims, .dense = true};
    shape_strides(&p->output.dims, p->output.strides);
    p->lc = (lower_context){.node = &p->node,
                            .row = p->node.op,
                            .inputs = p->inputs,
                            .outputs = &p->output,
                            .n_inputs = p->node.n_inputs,
                            .n_outputs = 1,
                            .caps = ocl_context_caps(context->ocl),
                            .kernel_class = kernel_class,
                            .memory = &p->memory};
    return ops_lower_node(&p->lc);
}

void selftest_deinit(selftest_problem *p) { arena_deinit(&p->memory); }

/* ---- running --------------------------------------------------------------------------------- */

typedef struct test_run {
    clg_context *context;
    const selftest_problem *problem;
    const candidate *impl;
    int64_t lead; /* elements before each input and the output */
    arena memory;
    double *in[SELFTEST_MAX_INPUTS];
    ocl_buffer *inputs[SELFTEST_MAX_INPUTS], *output, *fault;
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
        to->buffer = r->output;
        to->offset_bytes += lead_bytes(r, &r->problem->output);
        break;
    case OPERAND_SCRATCH: to->buffer = r->scratch[o->index]; break;
    case OPERAND_PACKED: to->buffer = r->packed[o->index]; break;
    }
    if (to->buffer) return CLG_OK;
    return error_set(CLG_ERROR_INTERNAL,
                     "implementation '%s' of %s has an operand that does not exist",
                     r->impl->variant, r->problem->node.op_type);
}

/* Creates a buffer whose bits are all ones, which are NaNs in floating-point dtypes, so that reads
 * of unwritten memory show in the result. */
static clg_status make_buffer(test_run *r, size_t size_bytes, ocl_buffer **out_buffer)
{
    const uint32_t ones = UINT32_MAX;
    size_bytes = (size_bytes + 3) / 4 * 4;
    CLG_TRY(ocl_buffer_create(r->context->ocl, size_bytes, OCL_BUFFER_DEVICE, out_buffer));
    mutex_lock(&r->context->utility_lock);
    clg_status status = size_bytes ? ocl_queue_fill(r->context->utility, *out_buffer, 0, size_bytes,
                                                    &ones, sizeof ones)
                                   : CLG_OK;
    mutex_unlock(&r->context->utility_lock);
    return status;
}

/* Returns a random element of an 8-bit input. Inputs of rank below 2, which are zero points, get
 * values within 16 of the middle of the range, so that sums seldom saturate. */
static double byte_element(const lower_operand *o, uint64_t random)
{
    const double middle = o->dtype == CLG_UINT8 ? 128 : 0;
    return middle + (o->dims.rank < 2 ? (double)(random % 33) - 16 : (double)(random % 256) - 128);
}

/* Returns element `at` of input `i`: what p->contents gives, if anything; an integer for int8,
 * uint8 and int32; an index into input 0 for other integers; else one of 65 equidistant values from
 * low to high, which float16 represents exactly for the ranges in use. */
static double element(const selftest_problem *p, size_t i, int64_t at)
{
    const uint64_t random = hash_bytes(&at, sizeof at, i + 1);
    const clg_dtype dtype = p->inputs[i].dtype;
    double content;
    if (p->contents && p->contents(p, i, at, random, &content)) return content;
    if (dtype == CLG_UINT8 || dtype == CLG_INT8) return byte_element(&p->inputs[i], random);
    if (dtype == CLG_INT32) return (double)(random % 65536) - 32768;
    if (!dtype_is_float(dtype)) {
        const shape *x = &p->inputs[0].dims;
        const int64_t dim = x->dims[selftest_axis(&p->node, x, 0)];
        return (double)((int64_t)(random % (uint64_t)(2 * dim)) - dim);
    }
    return p->low + (p->high - p->low) * (double)(random % 65) / 64.0;
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

/* Generates input i, in double for the reference and in its dtype on the device. */
static clg_status make_input(test_run *r, size_t i)
{
    const lower_operand *o = &r->problem->inputs[i];
    int64_t n;
    tensor *t;
    if (o->dtype == CLG_DTYPE_NONE) return CLG_OK;
    CLG_TRY(shape_n_elements(&o->dims, &n));
    r->in[i] = arena_alloc(&r->memory, (size_t)n, sizeof(double));
    if (!r->in[i]) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const shape stored = {.rank = 1, .dims = {r->lead + n}};
    CLG_TRY(tensor_create(o->dtype, &stored, &t));
    for (int64_t at = 0; at < r->lead; at++) tensor_set_float(t, at, 0);
    for (int64_t at = 0; at < n; at++) {
        const int64_t place = o->dense ? at : place_of(o, at);
        r->in[i][at] = element(r->problem, i, place);
        tensor_set_float(t, r->lead + place, r->in[i][at]);
    }
    clg_status status =
        ocl_buffer_create(r->context->ocl, t->size_bytes, OCL_BUFFER_DEVICE, &r->inputs[i]);
    if (status == CLG_OK)
        status = context_upload(r->context, r->inputs[i], 0, t->data, t->size_bytes);
    tensor_free(t);
    return status;
}

static clg_status make_memory(test_run *r, size_t output_bytes)
{
    const int32_t no_fault[FAULT_WORDS] = {0};
    for (size_t i = 0; i < r->problem->node.n_inputs; i++) CLG_TRY(make_input(r, i));
    for (uint32_t i = 0; i < r->impl->n_scratch; i++)
        CLG_TRY(make_buffer(r, r->impl->scratch_bytes[i], &r->scratch[i]));
    for (uint32_t i = 0; i < r->impl->n_packings; i++)
        CLG_TRY(make_buffer(r, r->impl->packings[i].size_bytes, &r->packed[i]));
    CLG_TRY(make_buffer(r, output_bytes, &r->output));
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
    ocl_buffer_free(r->output);
    ocl_buffer_free(r->fault);
    arena_deinit(&r->memory);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Returns the error bound of an element, relative to the sum of its terms' magnitudes. */
static double bound_of(clg_dtype dtype, const char *impl)
{
    switch (dtype) {
    case CLG_FLOAT16: return 2e-3;
    case CLG_BFLOAT16: return 1.6e-2;
    case CLG_FLOAT64: return 1e-13;
    case CLG_FLOAT32: return strcmp(impl, "winograd_4x4") == 0 ? 4e-5 : 4e-6;
    default: return 0;
    }
}

/* Returns whether elements from..to-1 still have all bits set, as make_buffer left them. */
static bool is_untouched(const tensor *t, int64_t from, int64_t to)
{
    const uint8_t *bytes = t->data;
    const int64_t unit = (int64_t)dtype_size(t->dtype);
    for (int64_t i = from * unit; i < to * unit; i++)
        if (bytes[i] != UINT8_MAX) return false;
    return true;
}

static clg_status compare(test_run *r, int64_t n, const tensor *got, selftest_result *out)
{
    double *y = arena_alloc(&r->memory, (size_t)n + 1, sizeof *y);
    double *scale = arena_alloc(&r->memory, (size_t)n + 1, sizeof *scale);
    if (!y || !scale) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(r->problem->reference(&r->problem->lc, (const double *const *)r->in, y, scale));
    out->worst = 0;
    out->bound = bound_of(got->dtype, r->impl->variant) * r->problem->tolerance;
    for (int64_t i = 0; i < n; i++) {
        const double value = tensor_get_float(got, r->lead + i);
        const double error = value == y[i] ? 0 : fabs(value - y[i]) / scale[i];
        if (!(error <= out->worst)) out->worst = isnan(error) ? INFINITY : error;
    }
    const int64_t end = r->lead + n;
    if (!is_untouched(got, 0, r->lead) || !is_untouched(got, end, end + GUARD_ELEMS))
        out->worst = INFINITY;
    out->passed = out->worst <= out->bound;
    return CLG_OK;
}

static clg_status run(test_run *r, selftest_result *out)
{
    int64_t n;
    tensor *got;
    CLG_TRY(shape_n_elements(&r->problem->output.dims, &n));
    const shape stored = {.rank = 1, .dims = {r->lead + n + GUARD_ELEMS}};
    CLG_TRY(tensor_create(r->problem->output.dtype, &stored, &got));
    clg_status status = make_memory(r, got->size_bytes);
    if (status == CLG_OK) status = launch_all(r);
    if (status == CLG_OK)
        status = context_download(r->context, r->output, 0, got->data, got->size_bytes);
    if (status == CLG_OK) status = compare(r, n, got, out);
    tensor_free(got);
    return status;
}

/* Runs the test with `lead` elements before each input and the output. */
static clg_status run_at(clg_context *context, const selftest_problem *p, const candidate *impl,
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

clg_status selftest_run(clg_context *context, const selftest_problem *p, const candidate *impl,
                        selftest_result *out_result)
{
    selftest_result further_on;
    CLG_TRY(run_at(context, p, impl, 0, out_result));
    if (!has_batches(impl)) return CLG_OK;
    CLG_TRY(run_at(context, p, impl, GUARD_ELEMS, &further_on));
    if (!further_on.passed || (out_result->passed && further_on.worst > out_result->worst))
        *out_result = further_on;
    return CLG_OK;
}
