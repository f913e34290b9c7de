/* SPDX-License-Identifier: Apache-2.0
 *
 * What the configuration files of a folder say about a decoder: the model's file, names of inputs
 * and outputs, sizes, special tokens and default settings. Two kinds of folders are read:
 * onnxruntime-genai's (genai_config.json) and Optimum's (config.json, generation_config.json).
 * Files are untrusted; what they say about the model is compared with it later (decoder_model.c).
 */
#ifndef CLG_GENERATE_DECODER_CONFIG_H
#define CLG_GENERATE_DECODER_CONFIG_H

#include "base/memory.h"

#include <clgraph/generate.h>

enum {
    CONFIG_MAX_EOS = 256,
    CONFIG_MAX_LAYERS = 4096,
    CONFIG_MAX_CONTEXT = 1 << 28 /* tokens */
};

/* What an input, other than caches, is given. total: tokens after the run; past: before it; new:
 * computed by it. */
typedef enum input_role {
    INPUT_TOKENS,          /* [1, new] */
    INPUT_MASK,            /* ones [1, total] */
    INPUT_POSITIONS,       /* past .. total - 1, [1, new] */
    INPUT_CACHE_POSITIONS, /* the same, [new] */
    INPUT_TOTAL,           /* the number; this and what follows has at most one element */
    INPUT_LAST,            /* total - 1 */
    INPUT_PAST,
    INPUT_NEW,
    INPUT_ONE,      /* 1 */
    INPUT_HAS_PAST, /* whether past > 0 */
    N_INPUT_ROLES
} input_role;

/* The names of caches are patterns, with the layer's number in place of "%d". */
typedef enum cache_pattern {
    PATTERN_PAST_KEY,
    PATTERN_PAST_VALUE,
    PATTERN_PRESENT_KEY,
    PATTERN_PRESENT_VALUE,
    N_CACHE_PATTERNS
} cache_pattern;

/* Strings and lists are in `memory`. */
typedef struct decoder_config {
    arena memory;
    const char *file;                  /* path of genai_config.json or config.json, for messages */
    const char *model_path;            /* of the ONNX file */
    const char *model_type;            /* "" if it is not known */
    const char *inputs[N_INPUT_ROLES]; /* the names that inputs of a role have */
    const char *patterns[N_CACHE_PATTERNS];
    const char *logits;
    int64_t n_layers, kv_heads, head_size; /* 0: not said */
    int64_t vocabulary, max_context;       /* 0: not said */
    int64_t bos, pad;                      /* -1: none */
    const int64_t *eos;
    size_t n_eos;
    clg_sampling sampling;
} decoder_config;

/* Reads the configuration of a folder. Errors: IO, INVALID_MODEL, UNSUPPORTED_ATTRIBUTE. */
clg_status decoder_config_read(const char *folder, decoder_config *out_config);
void decoder_config_deinit(decoder_config *c); /* accepts one of zeros */

/* Writes the name of a cache into `out`, of CACHE_NAME_BYTES: the pattern with a layer's number. */
#define CACHE_NAME_BYTES 256
void cache_name(const char *pattern, size_t layer, char out[CACHE_NAME_BYTES]);

#endif
