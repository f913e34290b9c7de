/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates implementations before use: the chosen one of a node is tested before its first use on
 * a device and driver. The test uses the programs and work-group sizes of that use, so that nothing
 * is compiled only for it. Results are kept in the cache. An implementation
 * that failed is not used again, by this or later processes, until driver, library or kernel
 * change. See decision 25.
 *
 * A variant is an implementation together with everything that its compiled code depends on
 * (selftest_variant); results are stored per variant.
 */
#include "base/cancel.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "plan/plan.h"
#include "session/selftest/references/selftest_math.h"
#include "session/selftest/selftest.h"

#include <string.h>

#define FACT "selftest 1" /* name and format version of the cache entry */

/* ---- the cache ------------------------------------------------------------------------------- */

static void read_stored(device_context *context)
{
    char *data, *lines;
    size_t size_bytes;
    if (!ocl_context_recall(context->ocl, FACT, &data, &size_bytes)) return;
    lines = memory_strndup(data, size_bytes);
    memory_free(data);
    if (!lines || !selftest_records_parse(&context->records, lines))
        log_write(CLG_LOG_WARNING,
                  "results of self-tests cannot be read; kernels are tested again");
    memory_free(lines);
}

/* Writes the records to the cache, merged with those that other processes have stored meanwhile. */
static void write_stored(device_context *context)
{
    strbuf t;
    read_stored(context);
    strbuf_init(&t, 0);
    selftest_records_format(&context->records, &t);
    if (t.status == CLG_OK)
        ocl_context_remember(context->ocl, FACT, "results of self-tests", strbuf_data(&t),
                             t.size_bytes);
    strbuf_deinit(&t);
}

clg_status device_count_selftests(const device_record *device, const char *cache_dir,
                                  size_t *out_n_passed, size_t *out_n_failed)
{
    char *data;
    size_t size_bytes;
    selftest_records records = {0};
    *out_n_passed = *out_n_failed = 0;
    if (!ocl_device_recall(device, cache_dir, FACT, &data, &size_bytes)) return CLG_OK;
    char *lines = memory_strndup(data, size_bytes);
    memory_free(data);
    if (!lines) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    (void)selftest_records_parse(&records, lines); /* what cannot be read is tested again */
    memory_free(lines);
    for (size_t i = 0; i < records.count; i++)
        *(records.items[i].passed ? out_n_passed : out_n_failed) += 1;
    selftest_records_deinit(&records);
    return CLG_OK;
}

/* ---- one variant ----------------------------------------------------------------------------- */

/* Returns what a node computes, for messages. */
static const char *op_type_of(const lower_context *lc)
{
    return lc->node ? lc->node->op_type : "copying a tensor";
}

/* Logs the result of a self-test. */
static void report_rejected(const device_context *context, const char *op_type,
                            const selftest_record *v)
{
    if (v->passed) {
        log_write(CLG_LOG_INFO, "'%s' (%s) passed its self-test: off by %.2g of %.2g allowed",
                  v->impl, v->kernel, v->worst, v->bound);
        return;
    }
    log_write(
        CLG_LOG_WARNING,
        "'%s', an implementation of %s, gives wrong results on '%s' with driver '%s': its kernel "
        "%s is off by %.3g of the size of the terms where %.2g is allowed. It is not used "
        "any more there, another implementation takes its place. 'cltool selftest' writes a report",
        v->impl, op_type, context->info.name, context->info.driver, v->kernel, v->worst, v->bound);
}

/* Logs that the driver could not compile a kernel. This result is not stored, which costs a compile
 * in each process: the compiler may only have run out of memory. */
static void report_refused(const device_context *context, const char *op_type,
                           const selftest_record *v)
{
    log_write(CLG_LOG_WARNING,
              "'%s', an implementation of %s, is not used on '%s' with driver '%s', another "
              "implementation takes "
              "its place: %s",
              v->impl, op_type, context->info.name, context->info.driver, error_text());
}

/* Computes a variant's key in the cache, a hash of everything that determines its behaviour: name
 * and parameters, and the source texts that are compiled. */
static clg_status key_of(const candidate *impl, const strbuf *variant, hash128 *out_key)
{
    strbuf all;
    strbuf_init(&all, 0);
    strbuf_append(&all, strbuf_data(variant));
    clg_status status = all.status;
    for (uint32_t i = 0; i < impl->n_packings; i++)
        for (const step *s = impl->packings[i].steps; s && status == CLG_OK; s = s->next)
            status = ocl_kernel_hash(&s->kernel, &all);
    const step *before = NULL;
    for (const step *s = impl->steps; s && status == CLG_OK; before = s, s = s->next) {
        if (selftest_repeats(before, s)) continue; /* `variant` has it */
        if (s->kind == STEP_KERNEL) status = ocl_kernel_hash(&s->kernel, &all);
        if (s->kind == STEP_BLAS_GEMM) strbuf_append(&all, ocl_blas_identity());
    }
    if (status == CLG_OK) status = all.status;
    *out_key = hash128_bytes(strbuf_data(&all), all.size_bytes);
    strbuf_deinit(&all);
    return status;
}

static const candidate *impl_named(const selftest_problem *p, const char *name)
{
    const candidate *impl = p->lc.build.candidates;
    while (impl && strcmp(impl->variant, name) != 0) impl = impl->next;
    return impl;
}

/* Sets *out_same: whether an implementation is this variant. */
static clg_status compare_variant(const candidate *impl, const strbuf *variant, bool *out_same)
{
    strbuf own;
    strbuf_init(&own, 0);
    selftest_variant(impl, &own);
    const clg_status status = own.status;
    *out_same = status == CLG_OK && strcmp(strbuf_data(&own), strbuf_data(variant)) == 0;
    strbuf_deinit(&own);
    return status;
}

/* Returns whether a problem has more elements than a test should take time for. Products of any
 * size are tested, in part; where elements are only moved, more are. */
static bool is_too_large(const selftest_problem *p)
{
    const int64_t max = selftest_moves(p->op) ? 1 << 21 : 1 << 19;
    int64_t total = 0;
    for (size_t i = 0; i < p->node.n_inputs; i++)
        if (p->inputs[i].dtype != CLG_DTYPE_NONE) total += selftest_count(&p->inputs[i].dims);
    for (size_t k = 0; k < p->node.n_outputs; k++)
        if (p->outputs[k].dtype != CLG_DTYPE_NONE) total += selftest_count(&p->outputs[k].dims);
    return total > max && !selftest_gemm_reference(&p->node);
}

/* Logs why a problem does not serve. */
static clg_status skip(const lower_context *lc, const char *why)
{
    log_write(CLG_LOG_DEBUG, "a problem for the self-test of %s does not serve: %s", op_type_of(lc),
              why);
    return CLG_OK;
}

/* Tests a problem if it is lowered to the variant; else leaves *out_tested unchanged. Sizes that
 * the operator rejects, and nodes that the reference does not cover, are skipped. */
static clg_status try_problem(device_context *context, const lower_context *lc,
                              const candidate *impl, const strbuf *variant, selftest_problem *p,
                              selftest_result *out_result, bool *out_tested)
{
    bool same;
    clg_status status = selftest_lower(context, lc, p);
    if (status == CLG_ERROR_OUT_OF_HOST_MEMORY) return status;
    if (status != CLG_OK) return skip(lc, error_text());
    const candidate *small = p->lc.is_view ? NULL : impl_named(p, impl->variant);
    if (!small) return skip(lc, "lowered to other implementations");
    if (is_too_large(p)) return skip(lc, "too large");
    CLG_TRY(compare_variant(small, variant, &same));
    if (!same) return skip(lc, "lowered to another variant");
    status = selftest_run(context, p, small, out_result);
    if (status == CLG_ERROR_NOT_FOUND) return skip(lc, error_text());
    *out_tested = status == CLG_OK;
    return status;
}

/* Returns whether the candidate is validated by testing its attention kernels alone. Not for
 * candidates that rely on device probes (requires_selftest). */
static bool has_attention(const lower_context *lc, const candidate *impl)
{
    return lc->attention && !impl->requires_selftest;
}

/* Tests the variant on a small problem of the node's kind; *out_tested is false without one. */
static clg_status test_variant(device_context *context, const lower_context *lc,
                               const candidate *impl, const strbuf *variant,
                               selftest_result *out_result, bool *out_tested)
{
    if (has_attention(lc, impl))
        return selftest_attention_steps(context, lc, impl, out_result, out_tested);
    selftest_problem *p = memory_alloc(sizeof *p);
    clg_status status = p ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    bool made = true;
    *out_tested = false;
    for (size_t i = 0; status == CLG_OK && made && !*out_tested; i++) {
        status = selftest_small(lc, impl, i, p, &made);
        if (status == CLG_OK && made)
            status = try_problem(context, lc, impl, variant, p, out_result, out_tested);
        selftest_deinit(p);
    }
    memory_free(p);
    return status;
}

/* Compiles the kernels of a step. */
static clg_status build_step(device_context *context, const step *s)
{
    ocl_kernel *k;
    if (s->kind == STEP_BLAS_GEMM) {
        const ocl_launch launch = {.gemm = ocl_gemm_of(&s->gemm)};
        return ocl_launches_prepare(context->ocl, &launch, 1, NULL, NULL);
    }
    if (s->kind != STEP_KERNEL) return CLG_OK;
    CLG_TRY(ocl_kernel_create(context->ocl, &s->kernel, &k));
    ocl_kernel_free(k);
    return CLG_OK;
}

/* Checks only that the driver compiles the kernels of a variant, for which there is no test. */
static clg_status build_variant(device_context *context, const candidate *impl)
{
    for (uint32_t i = 0; i < impl->n_packings; i++)
        for (const step *s = impl->packings[i].steps; s; s = s->next)
            CLG_TRY(build_step(context, s));
    const step *before = NULL;
    for (const step *s = impl->steps; s; before = s, s = s->next)
        if (!selftest_repeats(before, s)) CLG_TRY(build_step(context, s));
    return CLG_OK;
}

/* Returns whether the driver's compiler failed, or the device lacks resources for the kernel's
 * work-groups. */
static bool is_refusal(clg_status status)
{
    return status == CLG_ERROR_KERNEL_BUILD || status == CLG_ERROR_UNSUPPORTED_DEVICE;
}

static clg_status step_compiles(device_context *context, const step *s, bool *out_compiles)
{
    bool refused = false;
    if (s->kind == STEP_KERNEL)
        CLG_TRY(ocl_launch_is_refused(context->ocl, &s->kernel, s->n_dims, s->global, s->local,
                                      &refused));
    if (s->kind == STEP_BLAS_GEMM) refused = ocl_gemm_is_refused(context->ocl, &s->gemm);
    *out_compiles = *out_compiles && !refused;
    return CLG_OK;
}

clg_status context_compiles(void *self, const candidate *impl, bool *out_compiles)
{
    device_context *context = self;
    *out_compiles = true;
    if (!ocl_knows_refusals(context->ocl)) return CLG_OK;
    for (uint32_t i = 0; i < impl->n_packings; i++)
        for (const step *s = impl->packings[i].steps; s; s = s->next)
            CLG_TRY(step_compiles(context, s, out_compiles));
    const step *before = NULL;
    for (const step *s = impl->steps; s; before = s, s = s->next) {
        CLG_TRY(cancel_check("planning"));
        const bool is_again = before && selftest_repeats(before, s) &&
                              memcmp(before->global, s->global, sizeof s->global) == 0;
        if (!is_again) CLG_TRY(step_compiles(context, s, out_compiles));
    }
    return CLG_OK;
}

/* ---- status of variants ---------------------------------------------------------------------- */

/* Status of a variant, as stored in `validated`. Its keys are hashes of selftest_variant,
 * which has names and parameters, but not the long source texts. REFUSED: by the driver. From
 * UNTESTED on: not tested, by as many nodes. */
enum { FAILED, PASSED, REFUSED, UNTESTED, MAX_NODES = 3 };

/* Returns the status of a variant in this process, HASH_MAP_NONE if unknown. Loads the cache
 * first. */
static size_t recall(device_context *context, hash128 name)
{
    mutex_lock(&context->selftest_records_lock);
    if (!context->selftest_records_loaded) read_stored(context);
    context->selftest_records_loaded = true;
    const size_t known = hash_map_get(&context->validated, &name, sizeof name);
    mutex_unlock(&context->selftest_records_lock);
    return known;
}

static clg_status remember(device_context *context, hash128 name, size_t known)
{
    mutex_lock(&context->selftest_records_lock);
    const clg_status status = hash_map_set(&context->validated, &name, sizeof name, known);
    mutex_unlock(&context->selftest_records_lock);
    return status;
}

/* Returns whether the status is final. Not tested is final if the operator has no test at all, or
 * several nodes had no suitable problem: a later one may have. */
static bool is_settled(size_t known, const lower_context *lc)
{
    return known == FAILED || known == PASSED || known == REFUSED ||
           (known != HASH_MAP_NONE && known >= UNTESTED &&
            (known >= UNTESTED + MAX_NODES || (!selftest_find(lc->node) && !lc->attention)));
}

static bool find_selftest_record(device_context *context, hash128 key, size_t *out_known)
{
    mutex_lock(&context->selftest_records_lock);
    const selftest_record *v = selftest_records_find(&context->records, key);
    if (v) *out_known = v->passed ? PASSED : FAILED;
    mutex_unlock(&context->selftest_records_lock);
    return v != NULL;
}

static clg_status store_selftest_record(device_context *context, const selftest_record *v)
{
    mutex_lock(&context->selftest_records_lock);
    const clg_status status = selftest_records_set(&context->records, v);
    if (status == CLG_OK) write_stored(context);
    mutex_unlock(&context->selftest_records_lock);
    return status;
}

/* ---- validation ------------------------------------------------------------------------------ */

static clg_status make_selftest_record(const candidate *impl, const strbuf *variant,
                                       selftest_record *out)
{
    *out = (selftest_record){.impl = impl->variant, .kernel = selftest_kernel(impl)};
    return key_of(impl, variant, &out->key);
}

static void set_result(selftest_record *v, const selftest_result *result)
{
    v->passed = result->passed;
    v->worst = result->worst;
    v->bound = result->bound;
}

/* Determines a variant's status: from the cache, else by a test, else by compiling it. Stores
 * results. */
static clg_status find_out(device_context *context, const lower_context *lc, const candidate *impl,
                           const strbuf *variant, size_t *out_known, clg_status *out_refusal)
{
    selftest_result result;
    selftest_record v;
    bool tested;
    *out_known = UNTESTED;
    CLG_TRY(cancel_check("testing kernels"));
    CLG_TRY(make_selftest_record(impl, variant, &v));
    if (find_selftest_record(context, v.key, out_known)) return CLG_OK;
    clg_status status = test_variant(context, lc, impl, variant, &result, &tested);
    if (status == CLG_OK && !tested) status = build_variant(context, impl);
    if (is_refusal(status)) {
        *out_refusal = status;
        report_refused(context, op_type_of(lc), &v);
        *out_known = REFUSED;
        return CLG_OK;
    }
    if (status != CLG_OK || !tested) return status;
    set_result(&v, &result);
    *out_known = v.passed ? PASSED : FAILED;
    report_rejected(context, op_type_of(lc), &v);
    return store_selftest_record(context, &v);
}

/* Validates a variant. Called with test_lock held, so that several threads do not run the same
 * test. */
static clg_status validate(device_context *context, const lower_context *lc, const candidate *impl,
                           const strbuf *variant, hash128 name, size_t *out_known,
                           clg_status *out_refusal)
{
    const size_t before = recall(context, name);
    *out_known = before;
    if (is_settled(before, lc)) return CLG_OK;
    CLG_TRY(find_out(context, lc, impl, variant, out_known, out_refusal));
    if (*out_known == UNTESTED && before != HASH_MAP_NONE) *out_known = before + 1;
    if (*out_known == UNTESTED)
        log_write(CLG_LOG_INFO, "'%s' (%s), an implementation of %s, %s without a self-test",
                  impl->variant, selftest_kernel(impl), op_type_of(lc),
                  impl->requires_selftest ? "is not used" : "is used");
    return remember(context, name, *out_known);
}

clg_status context_knows(device_context *context, const lower_context *lc, const candidate *impl,
                         bool *out_known)
{
    strbuf variant;
    selftest_record v;
    size_t known;
    strbuf_init(&variant, 0);
    selftest_variant(impl, &variant);
    clg_status status = variant.status;
    const hash128 name = hash128_bytes(strbuf_data(&variant), variant.size_bytes);
    *out_known = status == CLG_OK && is_settled(recall(context, name), lc);
    if (status == CLG_OK && !*out_known) {
        status = make_selftest_record(impl, &variant, &v);
        *out_known = status == CLG_OK && find_selftest_record(context, v.key, &known);
        if (*out_known) status = remember(context, name, known);
    }
    strbuf_deinit(&variant);
    return status;
}

clg_status context_validate_impl(device_context *context, const lower_context *lc,
                                 const candidate *impl, impl_check *out)
{
    strbuf variant;
    *out = (impl_check){0};
    strbuf_init(&variant, 0);
    selftest_variant(impl, &variant);
    clg_status status = variant.status;
    const hash128 name = hash128_bytes(strbuf_data(&variant), variant.size_bytes);
    size_t known = status == CLG_OK ? recall(context, name) : UNTESTED;
    if (status == CLG_OK && !is_settled(known, lc)) {
        mutex_lock(&context->test_lock);
        /* what a test takes is not the model's */
        memory_budget *budget = memory_budget_set(NULL);
        status = validate(context, lc, impl, &variant, name, &known, &out->refusal);
        (void)memory_budget_set(budget);
        mutex_unlock(&context->test_lock);
    }
    strbuf_deinit(&variant);
    if (status == CLG_OK && known == REFUSED && out->refusal == CLG_OK)
        out->refusal = error_set(CLG_ERROR_UNSUPPORTED_DEVICE,
                                 "the driver refused its kernel %s before, as the log says",
                                 selftest_kernel(impl));
    out->passes = known == PASSED || (known >= UNTESTED && !impl->requires_selftest);
    out->is_final = is_settled(known, lc);
    return status;
}

/* ---- results of a report --------------------------------------------------------------------- */

clg_status context_add_selftest_record(selftest_records *gathered, const candidate *impl,
                                       const selftest_result *result)
{
    strbuf variant;
    selftest_record v;
    strbuf_init(&variant, 0);
    selftest_variant(impl, &variant);
    clg_status status = variant.status;
    if (status == CLG_OK) status = make_selftest_record(impl, &variant, &v);
    strbuf_deinit(&variant);
    CLG_TRY(status);
    set_result(&v, result);
    const selftest_record *before = selftest_records_find(gathered, v.key);
    if (before && (!before->passed || (v.passed && v.worst <= before->worst))) return CLG_OK;
    return selftest_records_set(gathered, &v);
}

clg_status context_replace_selftest_records(device_context *context,
                                            const selftest_records *gathered)
{
    clg_status status = CLG_OK;
    mutex_lock(&context->test_lock);
    mutex_lock(&context->selftest_records_lock);
    hash_map_deinit(&context->validated); /* look up all variants again */
    for (size_t i = 0; i < gathered->count && status == CLG_OK; i++)
        status = selftest_records_set(&context->records, &gathered->items[i]);
    if (status == CLG_OK) write_stored(context);
    mutex_unlock(&context->selftest_records_lock);
    mutex_unlock(&context->test_lock);
    return status;
}
