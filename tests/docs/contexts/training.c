/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/inspect.h>

int main(void)
{
    clg_context *context = NULL;
    clg_model *model = NULL, *trained = NULL;
    clg_trainer *trainer = NULL;
    clg_value *images = NULL, *labels = NULL;
    clg_context_create(NULL, NULL, &context);
    clg_model_load_file("model.onnx", NULL, &model);
    clg_value_load("images.npy", &images);
    clg_value_load("labels.npy", &labels);
    /* @BLOCK@ */
    const int failed = !trained || stats.step != 3;
    clg_value_free(images);
    clg_value_free(labels);
    clg_trainer_free(trainer);
    clg_model_free(trained);
    clg_model_free(model);
    clg_context_free(context);
    return failed;
}
