/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses as nodes of ONNX operators. See loss.h.
 */
#include "loss.h"

#include "output.h"

#include <string.h>

/* The version of ONNX's operators that losses are made of. */
#define LOSS_OPSET 18

/* OUTPUT = OP_TYPE(a, b); b NULL: of one input. */
struct loss_node {
    const char *op_type, *a, *b, *output;
};

#define SCORES "" /* in place of the name of what the loss takes */
#define DIFFERENCE "clgraph/loss/difference"
#define SOFTPLUS "clgraph/loss/softplus"
#define PRODUCT "clgraph/loss/product"
#define TERMS "clgraph/loss/terms"

static const loss_node softmax_cross_entropy[] = {
    {"SoftmaxCrossEntropyLoss", SCORES, LOSS_TARGET, LOSS_VALUE}, {0}};
static const loss_node nll[] = {{"NegativeLogLikelihoodLoss", SCORES, LOSS_TARGET, LOSS_VALUE},
                                {0}};
/* log(1 + exp(y)) - y t */
static const loss_node sigmoid_cross_entropy[] = {{"Softplus", SCORES, NULL, SOFTPLUS},
                                                  {"Mul", SCORES, LOSS_TARGET, PRODUCT},
                                                  {"Sub", SOFTPLUS, PRODUCT, TERMS},
                                                  {"ReduceMean", TERMS, NULL, LOSS_VALUE},
                                                  {0}};
static const loss_node mse[] = {{"Sub", SCORES, LOSS_TARGET, DIFFERENCE},
                                {"Mul", DIFFERENCE, DIFFERENCE, TERMS},
                                {"ReduceMean", TERMS, NULL, LOSS_VALUE},
                                {0}};
static const loss_node l1[] = {{"Sub", SCORES, LOSS_TARGET, DIFFERENCE},
                               {"Abs", DIFFERENCE, NULL, TERMS},
                               {"ReduceMean", TERMS, NULL, LOSS_VALUE},
                               {0}};

static const loss_kind kinds[] = {
    {"cross-entropy", softmax_cross_entropy, .takes_classes = true, .activation = "Softmax"},
    {"nll", nll, .takes_classes = true, .refuses_softmax = true},
    {"bce-with-logits", sigmoid_cross_entropy, .activation = "Sigmoid"},
    {.name = "mse", .nodes = mse},
    {.name = "l1", .nodes = l1},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

int loss_find(const char *word, const loss_kind **out_kind)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        if (strcmp(kinds[i].name, word) != 0) continue;
        *out_kind = &kinds[i];
        return CODE_DONE;
    }
    return fail_usage("there is no loss '%s': --loss takes "
                      "cross-entropy, nll, bce-with-logits, mse or l1",
                      word);
}

static const clg_node_info *producer_of(const char *name, const clg_node_info *nodes,
                                        size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes; i++)
        for (size_t k = 0; k < nodes[i].n_outputs; k++)
            if (strcmp(nodes[i].outputs[k], name) == 0) return &nodes[i];
    return NULL;
}

int loss_scores(const loss_kind *kind, const char *output, const clg_node_info *nodes,
                size_t n_nodes, const char **out_scores)
{
    const clg_node_info *node = producer_of(output, nodes, n_nodes);
    const char *op_type = node && node->domain[0] == '\0' ? node->op_type : "";
    *out_scores = output;
    if (kind->refuses_softmax && strcmp(op_type, "Softmax") == 0) {
        (void)fail_usage("--loss %s takes logarithms of probabilities, and '%s' has the "
                         "probabilities of a Softmax",
                         kind->name, printable(output));
        fail_hint("--loss cross-entropy takes what the Softmax reads");
        return CODE_USAGE;
    }
    if (!node || !kind->activation || strcmp(op_type, kind->activation) != 0) return CODE_DONE;
    *out_scores = node->inputs[0];
    output_note("the loss takes '%s', of which '%s' is the %s", printable(*out_scores),
                printable(output), kind->activation);
    return CODE_DONE;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static clg_status add_node(clg_builder *b, const loss_node *n, const char *scores)
{
    const char *inputs[] = {n->a[0] ? n->a : scores, n->b};
    clg_status status = clg_builder_node(b, "", n->op_type, n->output, n->b ? 2 : 1, inputs, 1,
                                         (const char *[]){n->output});
    if (status == CLG_OK && strcmp(n->op_type, "ReduceMean") == 0)
        status = clg_builder_attribute_int(b, "keepdims", 0);
    return status;
}

int loss_add(const loss_kind *kind, const clg_model *model, const char *scores,
             const clg_value *target, clg_model **out_model)
{
    clg_builder *b = NULL;
    *out_model = NULL;
    clg_status status = clg_builder_create_from_model(model, LOSS_OPSET, &b);
    if (status == CLG_OK)
        status = clg_builder_input(b, LOSS_TARGET, clg_value_dtype(target), clg_value_rank(target),
                                   clg_value_dims(target), NULL);
    for (const loss_node *n = kind->nodes; n->op_type && status == CLG_OK; n++)
        status = add_node(b, n, scores);
    if (status == CLG_OK) status = clg_builder_output(b, LOSS_VALUE);
    if (status == CLG_OK) status = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_INPUT, "--loss %s", kind->name);
}
