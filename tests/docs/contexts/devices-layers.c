/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/multi.h>

int main(void)
{
    clg_model *model;
    clg_session *session = NULL;
    clg_context **contexts;
    size_t n;
    if (clg_model_load_file("model.onnx", NULL, &model) != CLG_OK) return 1;
    clg_context_create_list("all", NULL, &contexts, &n);
    /* @BLOCK@ */
    const int failed = !session;
    clg_session_free(session);
    clg_context_list_free(contexts, n);
    clg_model_free(model);
    return failed;
}
