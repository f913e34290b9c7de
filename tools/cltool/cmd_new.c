/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool new: writes a network with random weights, for cltool train to start from.
 */
#include "cltool.h"
#include "interrupt.h"
#include "names.h"
#include "network.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Reads "784,128,10" or "1x28x28,128,10": the shape of a row, and the dense layers. */
static int read_mlp(const char *text, network_plan *plan)
{
    const char *comma = strchr(text, ',');
    if (!comma) {
        (void)fail_usage("mlp takes the sizes of input and layers, not '%s'", printable(text));
        fail_hint("cltool new mlp 784,128,10 -o FILE.onnx");
        return CODE_USAGE;
    }
    char *first = must_copy(text);
    first[comma - text] = '\0';
    int code = option_dims("mlp", first, &plan->rank, plan->dims);
    if (code == CODE_DONE && plan->rank != 1 && plan->rank != 3)
        code = fail_usage("mlp: '%s' is neither N nor CHANNELSxHEIGHTxWIDTH", printable(first));
    free(first);
    return code == CODE_DONE ? option_sizes("mlp", comma + 1, &plan->denses, &plan->n_denses)
                             : code;
}

static int read_cnn(const options *o, network_plan *plan)
{
    const char *text = o->arguments[1];
    if (!o->denses) {
        (void)fail_usage("--dense is missing: the layers after the convolutions");
        fail_hint("--dense 128,10");
        return CODE_USAGE;
    }
    int code = option_dims("cnn", text, &plan->rank, plan->dims);
    if (code == CODE_DONE && plan->rank != 3)
        code = fail_usage("cnn: '%s' is not CHANNELSxHEIGHTxWIDTH", printable(text));
    if (code == CODE_DONE && o->convs)
        code = option_sizes("--conv", o->convs, &plan->convs, &plan->n_convs);
    return code == CODE_DONE ? option_sizes("--dense", o->denses, &plan->denses, &plan->n_denses)
                             : code;
}

static int check_plan(const network_plan *plan)
{
    for (size_t i = 0; i < plan->rank; i++)
        if (plan->dims[i] < 1 || plan->dims[i] > INT32_MAX)
            return fail_usage("the shape of the input has a size of %" PRId64, plan->dims[i]);
    if (plan->dropout >= 1) return fail_usage("--dropout is 0 to 1, less than 1");
    if (plan->kernel % 2 == 0) return fail_usage("--kernel is odd, not %zu", plan->kernel);
    if (plan->kernel > INT16_MAX || plan->pool > INT16_MAX)
        return fail_usage("--kernel and --pool are at most %d", INT16_MAX);
    return CODE_DONE;
}

static int read_plan(const options *o, network_plan *plan)
{
    static const char *const kinds[] = {"mlp", "cnn", NULL};
    size_t kind;
    int code = option_word("'cltool new'", o->arguments[0], kinds, sizeof *kinds, &kind);
    if (code != CODE_DONE) return code;
    const bool is_mlp = kind == 0;
    *plan = (network_plan){.kernel = o->kernel ? o->kernel : 3,
                           .pool = o->pool ? o->pool : 2,
                           .dropout = o->drop_rate,
                           .batchnorm = o->has_norm,
                           .seed = o->seed};
    if (is_mlp && (o->convs || o->denses || o->kernel || o->pool))
        return fail_usage("mlp takes no --conv, --kernel, --pool and --dense");
    code = weights_scheme_of(o->init, &plan->scheme);
    if (code == CODE_DONE) code = is_mlp ? read_mlp(o->arguments[1], plan) : read_cnn(o, plan);
    if (code == CODE_DONE && o->activation)
        code = network_activation_of(o->activation, &plan->activation);
    return code == CODE_DONE ? check_plan(plan) : code;
}

static int print_result(const options *o, const clg_model *model, uint64_t n_elements)
{
    const clg_port *x = clg_model_input(model, 0), *y = clg_model_output(model, 0);
    if (o->json)
        return output_json(json_pack("{s:o, s:o, s:o, s:I}", "file", output_json_text(o->output),
                                     "input", output_json_dims((size_t)x->rank, x->dims), "output",
                                     output_json_dims((size_t)y->rank, y->dims), "parameters",
                                     (json_int_t)n_elements));
    (void)printf("%s  %s %s -> %s %s, %" PRIu64 " parameters\n", o->output, x->name,
                 dims_text((size_t)x->rank, x->dims), y->name, dims_text((size_t)y->rank, y->dims),
                 n_elements);
    return CODE_DONE;
}

int cmd_new(const options *o)
{
    network_plan plan = {0};
    clg_model *model = NULL;
    uint64_t n_elements = 0;
    int code = o->output ? file_may_be_written(o->output, o->force)
                         : fail_usage("-o is missing: the file of the model");
    if (code == CODE_DONE) code = read_plan(o, &plan);
    if (code == CODE_DONE) code = network_build(&plan, &model, &n_elements);
    if (code == CODE_DONE) {
        interrupt_begin(NULL);
        const clg_status status = clg_model_save(model, o->output, NULL);
        interrupt_end(NULL);
        code = status == CLG_OK ? print_result(o, model, n_elements)
                                : fail_status(status, STAGE_WORK, NULL);
    }
    clg_model_free(model);
    free(plan.convs);
    free(plan.denses);
    return code;
}
