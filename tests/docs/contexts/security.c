/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/clgraph.h>

int main(void)
{
    clg_model_options model_options = CLG_MODEL_OPTIONS_INIT;
    clg_session_options session_options = CLG_SESSION_OPTIONS_INIT;
    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_session *session = NULL;
    /* @BLOCK@ */
    clg_context_create(NULL, NULL, &context);
    clg_model_load_file("models/linear.onnx", &model_options, &model);
    const clg_status status = clg_session_create(context, model, &session_options, &session);
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    return status == CLG_OK ? 0 : 1;
}
