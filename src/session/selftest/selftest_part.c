/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-tests of some steps of an operator apart from the others: they run as a node of an internal
 * operator, which is tried in several sizes until it is lowered to the same kernels.
 */
#include "session/selftest/selftest.h"

#include <string.h>

/* ---- problems -------------------------------------------------------------------------------- */

void selftest_part_begin(selftest_problem *p, const lower_context *lc, const char *op_type,
                         size_t n_inputs)
{
    for (size_t i = 0; i < n_inputs; i++) p->values[i] = VALUE_NONE;
    p->values[SELFTEST_MAX_INPUTS] = SELFTEST_MAX_INPUTS;
    p->node = (node){.name = "",
                     .label = lc->node->label,
                     .domain = DOMAIN_INTERNAL,
                     .op_type = op_type,
                     .opset = 1,
                     .inputs = p->values,
                     .n_inputs = n_inputs,
                     .outputs = &p->values[SELFTEST_MAX_INPUTS],
                     .n_outputs = 1,
                     .op = ops_find(DOMAIN_INTERNAL, op_type, 1)};
    selftest_set_op(p, selftest_find(&p->node));
}

void selftest_part_input(selftest_problem *p, size_t i, clg_dtype dtype, int rank,
                         const int64_t *dims)
{
    lower_operand *o = &p->inputs[i];
    *o = (lower_operand){.dtype = dtype, .dims = {.rank = rank}, .dense = true};
    memcpy(o->dims.dims, dims, (size_t)rank * sizeof *dims);
    shape_strides(&o->dims, o->strides);
    p->values[i] = (value_id)i;
}

clg_status selftest_part_attributes(selftest_problem *p, const selftest_int *ints, size_t n_ints,
                                    const selftest_float *floats, size_t n_floats)
{
    graph_attribute *all = arena_alloc(&p->memory, n_ints + n_floats, sizeof *all);
    if (!all) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_ints; i++)
        all[i] = (graph_attribute){
            .name = ints[i].name, .type = ATTRIBUTE_INT, .as = {.i = ints[i].value}};
    for (size_t i = 0; i < n_floats; i++)
        all[n_ints + i] = (graph_attribute){
            .name = floats[i].name, .type = ATTRIBUTE_FLOAT, .as = {.f = (float)floats[i].value}};
    p->node.attributes = all;
    p->node.n_attributes = n_ints + n_floats;
    return CLG_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Initialises *out with the text that identifies a candidate's kernels of this part, and returns
 * it. Equal texts mean equal kernels. only: as in selftest_part. */
static const char *part_text(const selftest_part *part, const candidate *impl, const step *only,
                             strbuf *out)
{
    strbuf_init(out, 0);
    for (const step *s = impl->steps; s; s = s->next)
        if (only ? s == only : part->has_step(part, s)) selftest_add_step(s, out);
    return strbuf_data(out);
}

/* Runs the problem with the candidate of it that has these kernels; without one, leaves *out_tested
 * unchanged. */
static clg_status try_problem(device_context *context, const lower_context *lc,
                              const selftest_part *part, selftest_problem *p, const strbuf *kernels,
                              selftest_result *out_result, bool *out_tested)
{
    const clg_status lowered = selftest_lower(context, lc, p);
    if (lowered != CLG_OK) return lowered == CLG_ERROR_OUT_OF_HOST_MEMORY ? lowered : CLG_OK;
    for (const candidate *impl = p->lc.build.candidates; impl; impl = impl->next) {
        strbuf own;
        const bool same = strcmp(part_text(part, impl, NULL, &own), strbuf_data(kernels)) == 0;
        const clg_status status = own.status;
        strbuf_deinit(&own);
        CLG_TRY(status);
        if (!same) continue;
        *out_tested = true;
        return selftest_run(context, p, impl, out_result);
    }
    return CLG_OK;
}

static clg_status try_problems(device_context *context, const lower_context *lc,
                               const selftest_part *part, const strbuf *kernels,
                               selftest_result *out_result, bool *out_tested)
{
    selftest_problem *p = memory_alloc(sizeof *p);
    clg_status status = p ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    bool made = true;
    for (size_t i = 0; status == CLG_OK && made && !*out_tested; i++) {
        status = part->make(part, lc, i, p, &made);
        if (status == CLG_OK && made)
            status = try_problem(context, lc, part, p, kernels, out_result, out_tested);
        selftest_deinit(p);
    }
    memory_free(p);
    return status;
}

clg_status selftest_part_run(device_context *context, const lower_context *lc,
                             const candidate *impl, const selftest_part *part,
                             selftest_result *out_result, bool *out_tested)
{
    strbuf kernels;
    *out_tested = false;
    (void)part_text(part, impl, part->only, &kernels);
    clg_status status = kernels.status;
    if (status == CLG_OK && kernels.size_bytes > 0)
        status = try_problems(context, lc, part, &kernels, out_result, out_tested);
    strbuf_deinit(&kernels);
    return status;
}
