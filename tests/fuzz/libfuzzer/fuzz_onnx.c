/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads an ONNX model from memory, or from a file beside a file of external data where it names
 * one, lists its nodes and estimates its size. What is saved of it loads, and is saved as the same
 * bytes.
 */
#include "fuzz.h"

#include <clgraph/inspect.h>

#include <stdbool.h>
#include <string.h>

static const char external[] = "weights.bin";

static bool contains(const void *data, size_t size_bytes, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= size_bytes; i++)
        if (memcmp((const char *)data + i, word, n) == 0) return true;
    return false;
}

static void inspect(const clg_model *model)
{
    clg_memory_estimate memory = CLG_MEMORY_ESTIMATE_INIT;
    clg_node_info *nodes;
    size_t n_nodes;
    double flops;
    char *dot;
    for (size_t i = 0; i < clg_model_n_inputs(model); i++)
        fuzz_require(clg_model_input(model, i)->rank <= CLG_MAX_RANK);
    if (clg_model_nodes(model, &nodes, &n_nodes) == CLG_OK) clg_node_list_free(nodes, n_nodes);
    if (clg_model_flops(model, NULL, 0, &flops) == CLG_OK) fuzz_require(flops >= 0);
    if (clg_model_memory(model, NULL, 0, &memory) != CLG_OK) fuzz_require(*clg_last_error());
    if (clg_model_dot(model, &dot) == CLG_OK) clg_text_free(dot);
    if (clg_model_batch(model, NULL, NULL, NULL) != CLG_OK) fuzz_require(*clg_last_error());
}

/* Returns a model as ONNX, NULL if it cannot be saved. */
static void *save(const clg_model *model, size_t *out_size_bytes)
{
    void *data = NULL;
    const clg_status status = clg_model_save_memory(model, NULL, &data, out_size_bytes);
    fuzz_require((status == CLG_OK) == (data != NULL));
    if (status != CLG_OK) fuzz_require(*clg_last_error());
    return data;
}

/* Names of nodes that become functions are made fit again by loading them, and a function more may
 * be too much for a model at its limits: only other models must stay the same. */
static void save_and_load(const clg_model *model)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *again = NULL;
    size_t size_bytes, other_bytes;
    void *data = save(model, &size_bytes), *other = NULL;
    if (!data) return;
    const bool is_strict = !contains(data, size_bytes, "clgraph.inlined");
    options.allow_unsupported = true;
    const clg_status status = clg_model_load_memory(data, size_bytes, &options, &again);
    fuzz_require(status == CLG_OK || !is_strict);
    if (again) other = save(again, &other_bytes);
    if (is_strict)
        fuzz_require(other && other_bytes == size_bytes && memcmp(data, other, size_bytes) == 0);
    clg_bytes_free(other);
    clg_bytes_free(data);
    clg_model_free(again);
}

static void load(const uint8_t *data, size_t size_bytes, const char *path, bool lenient)
{
    clg_model_options options = CLG_MODEL_OPTIONS_INIT;
    clg_model *model = NULL;
    options.allow_external_data_missing = lenient;
    options.allow_unsupported = lenient;
    const clg_status status = path ? clg_model_load_file(path, &options, &model)
                                   : clg_model_load_memory(data, size_bytes, &options, &model);
    fuzz_require((status == CLG_OK) == (model != NULL));
    if (status != CLG_OK) fuzz_require(*clg_last_error());
    if (model) inspect(model);
    if (model) save_and_load(model);
    clg_model_free(model);
}

void fuzz_onnx(const uint8_t *data, size_t size_bytes)
{
    static const uint8_t weights[256] = {1, 2, 3};
    const char *path = NULL;
    if (contains(data, size_bytes, external)) {
        (void)fuzz_file(external, weights, sizeof weights);
        path = fuzz_file("model.onnx", data, size_bytes);
    }
    load(data, size_bytes, path, false);
    load(data, size_bytes, path, true);
}
