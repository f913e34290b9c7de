/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads gradients of the first steps. See watch.h.
 */
#include "train/watch.h"

#include "base/log.h"
#include "base/strbuf.h"
#include "tensor/value.h"

/* Names in a warning; others are counted. */
#define MAX_NAMES 8

clg_status watch_init(gradient_watch *w, const parameter_list *parameters)
{
    *w = (gradient_watch){.has_gradient = memory_zalloc(parameters->n, sizeof *w->has_gradient)};
    return w->has_gradient ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

void watch_deinit(gradient_watch *w) { memory_free(w->has_gradient); }

static clg_status has_other_than_zero(const clg_value *v, bool *out)
{
    tensor *t;
    *out = false;
    CLG_TRY(value_read_tensor(v, &t));
    for (int64_t i = 0; i < t->n_elements && !*out; i++) *out = tensor_get_float(t, i) != 0;
    tensor_free(t);
    return CLG_OK;
}

static clg_status warn(const gradient_watch *w, const parameter_list *parameters)
{
    char shown[NAME_TEXT_BYTES];
    size_t n = 0;
    strbuf names;
    strbuf_init(&names, 0);
    for (size_t i = 0; i < parameters->n; i++) {
        if (w->has_gradient[i]) continue;
        if (n++ < MAX_NAMES)
            strbuf_printf(&names, "%s'%s'", n > 1 ? ", " : "",
                          name_text(parameters->names[i], shown));
    }
    if (n > MAX_NAMES) strbuf_printf(&names, " and %zu more", n - MAX_NAMES);
    const clg_status status = names.status;
    if (status == CLG_OK && n > 0)
        log_write(
            CLG_LOG_WARNING,
            "%zu of %zu parameters had an all-zero gradient in each of the first %d steps: %s", n,
            parameters->n, WATCH_STEPS, strbuf_data(&names));
    strbuf_deinit(&names);
    return status;
}

clg_status watch_step(gradient_watch *w, const parameter_list *parameters,
                      clg_value *const *gradients)
{
    bool all = true;
    if (w->is_done) return CLG_OK;
    for (size_t i = 0; i < parameters->n; i++) {
        if (!w->has_gradient[i]) CLG_TRY(has_other_than_zero(gradients[i], &w->has_gradient[i]));
        all = all && w->has_gradient[i];
    }
    w->n_steps++;
    w->is_done = all || w->n_steps == WATCH_STEPS;
    return w->is_done && !all ? warn(w, parameters) : CLG_OK;
}
