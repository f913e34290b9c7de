/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/clgraph.h>

int main(void)
{
    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_session *session = NULL;
    int64_t dims[] = {1, 3};
    const float x[3] = {0};
    clg_context_create(NULL, NULL, &context);
    clg_model_load_file("models/linear.onnx", NULL, &model);
    clg_session_create(context, model, NULL, &session);
    clg_session_set_input_data(session, "x", CLG_FLOAT32, 2, dims, x, sizeof x);
    /* @BLOCK@ */
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    return status == CLG_OK ? 0 : 1;
}
