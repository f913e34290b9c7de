/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoder's model in the form that generators run: which input is what, and nodes behind the
 * logits that leave the last position and its most likely token. The product with the vocabulary,
 * the largest of a decoder, is computed for the last position only.
 */
#ifndef CLG_GENERATE_DECODER_MODEL_H
#define CLG_GENERATE_DECODER_MODEL_H

#include "generate/decoder_config.h"
#include "session/exec/model.h"

#define PORT_NONE SIZE_MAX

/* Outputs of the model in the generator's form; those of caches follow in their order. */
enum {
    DECODER_TOKEN,  /* int64 [1]: the most likely one */
    DECODER_TOP,    /* float32 [1]: its logit */
    DECODER_LOGITS, /* float32 [vocabulary] of the last position */
    DECODER_N_OUTPUTS
};
extern const char *const decoder_output_names[DECODER_N_OUTPUTS];

/* A tensor of keys or values of a layer, [1, heads, tokens, size]. */
typedef struct decoder_cache {
    size_t input, output; /* indices in the model */
    int64_t heads, size;
} decoder_cache;

typedef struct decoder_model {
    clg_model *model;             /* owned */
    size_t inputs[N_INPUT_ROLES]; /* PORT_NONE: the model has no such input */
    decoder_cache *caches;        /* owned */
    size_t n_caches;
    clg_dtype cache_dtype;
    int64_t fixed_capacity; /* tokens, where the model declares that; else 0 */
    bool can_reserve;       /* caches may have room for more tokens than there are */
    /* The mask only says how many tokens there are: zeros may follow the ones. */
    bool can_pad_mask;
    int64_t vocabulary;
} decoder_model;

/* Makes it of a model as loaded, which is unchanged. Errors: INVALID_MODEL,
 * UNSUPPORTED_ATTRIBUTE, naming the file and the input or output. */
clg_status decoder_model_create(const clg_model *loaded, const decoder_config *config,
                                decoder_model *out_model);
void decoder_model_deinit(decoder_model *m); /* accepts one of zeros */

/* Changes a graph with these logits to end in the generator's outputs (decoder_tail.c). */
clg_status decoder_tail_add(graph *g, value_id logits, int64_t vocabulary);

#endif
