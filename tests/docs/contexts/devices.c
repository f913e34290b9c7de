/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/multi.h>

int main(void)
{
    clg_model *model;
    clg_session *session = NULL;
    clg_context **one;
    size_t n_one;
    if (clg_model_load_file("model.onnx", NULL, &model) != CLG_OK) return 1;
    clg_context_create_list("auto", NULL, &one, &n_one);
    /* @BLOCK@ */
    const int failed = !session;
    clg_session_free(session);
    clg_context_list_free(contexts, n);
    clg_context_list_free(one, n_one);
    clg_model_free(model);
    return failed;
}
