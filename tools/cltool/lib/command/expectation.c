/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements expectation.h.
 */
#include "expectation.h"

#include "names.h"
#include "options.h"
#include "output.h"
#include "suggestion.h"
#include "values.h"

#include <clgraph/inspect.h>

#include <stdlib.h>
#include <string.h>

const clg_port *model_output_named(const clg_model *model, const char *name)
{
    for (size_t i = 0; i < clg_model_n_outputs(model); i++) {
        if (strcmp(clg_model_output(model, i)->name, name) == 0) return clg_model_output(model, i);
    }
    return NULL;
}

int expectation_read(const clg_model *model, const char *text, expectation *x)
{
    bool is_pair = option_pair(text, &x->name_copy, &x->path);
    x->name = x->name_copy;
    if (!is_pair && clg_model_n_outputs(model) == 1) x->name = clg_model_output(model, 0)->name;
    if (!x->name) return fail_usage("--expect takes NAME=FILE, not '%s'", text);
    const clg_port *output = model_output_named(model, x->name);
    if (!output) {
        suggestion s;
        (void)fail_usage(
            "--expect: the model has no output '%s'; its first is '%s'", printable(x->name),
            clg_model_n_outputs(model) > 0 ? printable(clg_model_output(model, 0)->name) : "");
        suggestion_begin(&s, x->name);
        suggestion_offer_outputs(&s, model);
        if (!suggestion_hint(&s)) fail_hint("'cltool inspect MODEL' lists the outputs");
        return CODE_USAGE;
    }
    if (output->kind == CLG_VALUE_TENSOR || !path_ends_in(x->path, ".pb"))
        return value_load(x->path, &x->want);
    clg_status status = clg_value_load_kind(x->path, output->kind, &x->want);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

void expectation_free(expectation *x)
{
    clg_value_free(x->want);
    free(x->name_copy);
}
