/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the bytes as each of the configuration files of a language model's folder, and checks that
 * what is accepted is in its ranges.
 */
#include "fuzz.h"

#include "base/files.h"
#include "generate/decoder_config.h"

#include <string.h>

static void check(const decoder_config *c)
{
    char name[CACHE_NAME_BYTES];
    fuzz_require(c->model_path && c->model_type && c->logits);
    fuzz_require(c->n_eos <= CONFIG_MAX_EOS && c->max_context <= CONFIG_MAX_CONTEXT);
    fuzz_require(c->vocabulary >= 0 && c->n_layers >= 0 && c->bos >= -1 && c->pad >= -1);
    for (size_t i = 0; i < c->n_eos; i++) fuzz_require(c->eos[i] >= 0);
    for (size_t i = 0; i < N_CACHE_PATTERNS; i++) {
        cache_name(c->patterns[i], SIZE_MAX, name);
        fuzz_require(strlen(name) < sizeof name - 1 && !strchr(name, '%'));
    }
    fuzz_require(c->sampling.top_p >= 0 && c->sampling.top_p <= 1 && c->sampling.temperature >= 0);
}

static void read_as(const char *name, const uint8_t *data, size_t size_bytes)
{
    decoder_config c;
    char *folder;
    const char *path = fuzz_file(name, data, size_bytes);
    fuzz_require(file_folder(path, &folder) == CLG_OK);
    if (decoder_config_read(folder, &c) == CLG_OK) {
        check(&c);
        decoder_config_deinit(&c);
    }
    fuzz_require(file_remove(path) == CLG_OK);
    memory_free(folder);
}

void fuzz_decoder(const uint8_t *data, size_t size_bytes)
{
    static const uint8_t plain[] = "{\"vocab_size\": 8}";
    (void)fuzz_file("model.onnx", data, 0);
    read_as("genai_config.json", data, size_bytes);
    read_as("config.json", data, size_bytes);
    (void)fuzz_file("config.json", plain, sizeof plain - 1);
    read_as("generation_config.json", data, size_bytes);
}
