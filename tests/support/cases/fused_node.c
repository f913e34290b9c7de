/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs fused nodes on every test target. See fused_node.h.
 */
#include "support/cases/fused_node.h"
#include "support/fixtures/sized_data.h"

#include "support/fakes/driver_faults.h"

#include "session/exec/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static clg_dtype output_dtype(const fused *f, size_t i)
{
    return pointwise_dtype(&f->group, f->group.outputs[i]);
}

static void make_model(const fused *f, clg_model **out_model)
{
    graph *g;
    value_id inputs[POINTWISE_MAX_INPUTS], outputs[POINTWISE_MAX_OUTPUTS];
    node_id n;
    char name[32];
    assert_ok(graph_create("", &g));
    assert_ok(graph_set_opset(g, "clgraph", 1));
    for (size_t i = 0; i < f->group.n_inputs; i++) {
        (void)snprintf(name, sizeof name, "in%zu", i);
        assert_ok(graph_add_value(g, name, &inputs[i]));
        g->values[inputs[i]].dtype = f->group.inputs[i];
        g->values[inputs[i]].dims = f->inputs[i]->dims;
        assert_ok(graph_add_input(g, inputs[i]));
    }
    for (size_t i = 0; i < f->group.n_outputs; i++) {
        (void)snprintf(name, sizeof name, "out%zu", i);
        assert_ok(graph_add_value(g, name, &outputs[i]));
        g->values[outputs[i]].dtype = output_dtype(f, i);
    }
    assert_ok(graph_add_node(g, "clgraph", "Pointwise", "tested", f->group.n_inputs, inputs,
                             f->group.n_outputs, outputs, &n));
    assert_ok(pointwise_write(&f->group, g, n));
    for (size_t i = 0; i < f->group.n_outputs; i++) assert_ok(graph_add_output(g, outputs[i]));
    assert_ok(model_create(g, false, out_model));
}

/* Compares integers and bool exactly, and floats within the tolerance. In float16, infinity is
 * accepted in place of values beyond 65400. */
static void compare(const fused *f, size_t index, const tensor *got, const char *place)
{
    const tensor *want = f->outputs[index];
    const bool is_float = dtype_is_float(want->dtype);
    for (int64_t i = 0; i < want->n_elements; i++) {
        const double x = tensor_get_float(got, i), y = tensor_get_float(want, i);
        const double min = want->dtype == CLG_FLOAT16   ? 1e-7
                           : want->dtype == CLG_FLOAT64 ? 1e-300
                                                        : 1e-37;
        bool same = is_float ? x == y || (isnan(x) && isnan(y)) ||
                                   (isfinite(y) && fabs(x - y) <= f->tolerance * fabs(y) + min)
                             : tensor_get_int(got, i) == tensor_get_int(want, i);
        /* The largest finite float16 is 65504: values near it may be rounded to infinity. */
        if (is_float && !same && isinf(x) && want->dtype == CLG_FLOAT16)
            same = fabs(y) > 65400 && (x > 0) == (y > 0);
        if (same) continue;
        strbuf label;
        strbuf_init(&label, 512);
        pointwise_label(&f->group, &label);
        const double a = tensor_get_float(f->inputs[0], i % f->inputs[0]->n_elements);
        fail_msg("%s of %s on %s: output %zu, element %" PRId64
                 " is %.17g where %.17g is right (a is %.17g)",
                 strbuf_data(&label), dtype_name(f->group.inputs[0]), place, index, i, x, y, a);
    }
}

/* Returns whether the group needs fp64; moving elements does not. */
static bool computes_in_float64(const pointwise_group *g)
{
    bool computes = false, has_float64 = false;
    for (size_t i = 0; i < g->n_instructions; i++) {
        computes = computes || !(g->instructions[i].def->flags & POINTWISE_MOVES_BITS);
        has_float64 = has_float64 || g->instructions[i].dtype == CLG_FLOAT64;
    }
    for (size_t i = 0; i < g->n_inputs; i++)
        has_float64 = has_float64 || g->inputs[i] == CLG_FLOAT64;
    return computes && has_float64;
}

static void run_fused(clg_context *context, const clg_session_options *options, const char *place,
                      void *user)
{
    const fused *f = user;
    clg_model *model;
    clg_session *session;
    make_model(f, &model);
    const clg_status created = clg_session_create(context, model, options, &session);
    clg_status status = created;
    for (size_t i = 0; i < f->group.n_inputs && status == CLG_OK; i++) {
        char name[32];
        const tensor *t = f->inputs[i];
        (void)snprintf(name, sizeof name, "in%zu", i);
        status = sized_input(session, name, t->dtype, (size_t)t->dims.rank, t->dims.dims, t->data);
    }
    if (status == CLG_OK) status = clg_session_run(session);
    const bool fp64 = clg_context_device(context)->fp64,
               needs_fp64 = computes_in_float64(&f->group);
    if (needs_fp64 && !fp64) {
        assert_int_equal(status, CLG_ERROR_UNSUPPORTED_DTYPE);
        assert_non_null(strstr(clg_last_error(), "float64"));
    } else if (driver_refused(context, status)) {
        print_message("on %s: refused: %s\n", place, clg_last_error());
    } else if (status != CLG_OK) {
        fail_msg("on %s: %s", place, clg_last_error());
    }
    for (size_t i = 0; i < f->group.n_outputs && status == CLG_OK; i++) {
        char name[32];
        tensor *got;
        assert_ok(tensor_create(output_dtype(f, i), &f->outputs[i]->dims, &got));
        (void)snprintf(name, sizeof name, "out%zu", i);
        assert_ok(clg_session_get_output_data(session, name, got->data, got->size_bytes));
        compare(f, i, got, place);
        tensor_free(got);
    }
    clg_session_free(session);
    clg_model_free(model);
}

void fused_check(fused *f)
{
    if (f->group.n_outputs > 0) run_node_each(run_fused, f);
    for (size_t i = 0; i < f->group.n_inputs; i++) tensor_free(f->inputs[i]);
    for (size_t i = 0; i < f->group.n_outputs; i++) tensor_free(f->outputs[i]);
}

tensor *fused_tensor(clg_dtype dtype, int64_t n)
{
    tensor *t;
    assert_ok(tensor_create(dtype, &(shape){.rank = 1, .dims = {n}}, &t));
    return t;
}

tensor *fused_input(fused *f, clg_dtype dtype, int64_t n, pointwise_register *out)
{
    assert_ok(pointwise_add_input(&f->group, dtype, out));
    return f->inputs[*out] = fused_tensor(dtype, n);
}

tensor *fused_output(fused *f, pointwise_register r)
{
    const size_t i = f->group.n_outputs;
    assert_ok(pointwise_add_output(&f->group, r));
    return f->outputs[i] = fused_tensor(pointwise_dtype(&f->group, r), f->inputs[0]->n_elements);
}
