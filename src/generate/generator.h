/* SPDX-License-Identifier: Apache-2.0
 *
 * The implementation of clg_generator: a session of a decoder in the generator's form
 * (decoder_model.h), the sequence, and how much of it the caches on the device hold. What is new in
 * the sequence is computed when it is needed. After a failed run the caches count as empty, and the
 * whole sequence is computed again.
 */
#ifndef CLG_GENERATE_GENERATOR_H
#define CLG_GENERATE_GENERATOR_H

#include "generate/decoder_model.h"
#include "generate/generator_text.h"
#include "session/session.h"

/* What clg_generator_open takes, with everything decided but what the folder says. */
typedef struct generator_settings {
    exec_options exec;
    clg_cancel *cancel;
    clg_progress_callback progress;
    void *progress_user;
    uint64_t max_context; /* 0: the folder's */
    uint32_t chunk;
    clg_generator_cache cache;
    unsigned onnx_flags;
} generator_settings;

/* The session that chooses among logits with a penalty or by a draw, for these settings
 * (choosing.c). */
typedef struct choosing {
    clg_session *session; /* owned; NULL: to be made */
    bool has_penalty, draws;
    uint32_t k;               /* candidates that it returns; 0: all logits */
    int64_t *ids;             /* by slot: distinct tokens of the sequence, in order of appearance */
    size_t n_ids, n_ids_room; /* slots in use; slots, a power of two */
    size_t n_seen;            /* tokens of the sequence that ids has */
    uint8_t *is_seen;         /* by token */
} choosing;

struct clg_generator {
    atomic_bool busy;
    clg_cancel cancel;  /* of the call in progress: clg_generator_cancel */
    clg_cancel *token;  /* the application's; a reference; NULL: none */
    clg_context *owner; /* a reference */
    exec_options exec;  /* strings in `memory` */
    arena memory;
    decoder_config config;
    decoder_model model;
    clg_session *session;
    clg_generator_cache cache; /* not AUTO */
    uint64_t max_context;
    uint32_t chunk;
    clg_sampling sampling;
    choosing choosing;
    generator_text text;
    /* The sequence. Caches have the first n_cached tokens; the session's outputs are those of token
     * n_cached - 1 if has_outputs. */
    int64_t *tokens;
    size_t n_tokens, tokens_capacity, n_cached;
    size_t n_appended;        /* tokens below are the caller's: n_tokens at the last append */
    size_t capacity;          /* tokens for which reserved caches have room; 0: they are not set */
    bool has_outputs, is_set; /* is_set: the caches are set or linked as n_cached says */
    int64_t top_token;        /* of these outputs: DECODER_TOKEN and DECODER_TOP */
    float top_logit;
    clg_generator_end end;
    int64_t *input_data; /* scratch for the inputs of a run */
    size_t input_capacity;
    clg_generator_stats stats;
};

/* Opens a folder; strings of the settings are copied. */
clg_status generator_open(clg_context *owner, const char *folder,
                          const generator_settings *settings, clg_generator **out_generator);
void generator_free(clg_generator *g);

/* Enters the generator for one request; BUSY if another request has entered it. The functions below
 * need that. */
clg_status generator_enter(clg_generator *g);
void generator_leave(clg_generator *g);
/* Ends the call in progress, if any. Any thread. */
void generator_cancel(clg_generator *g);

clg_status generator_append(clg_generator *g, const int64_t *tokens, size_t n);
clg_status generator_next(clg_generator *g, int64_t *out_token, clg_generator_end *out_end);
/* Append a text, and choose a token and return its text (text_calls.c). A token whose text cannot
 * be made stays in the sequence, and the next call makes it. *out_text is valid until then. */
clg_status generator_append_text(clg_generator *g, const char *text, size_t n_bytes);
clg_status generator_next_text(clg_generator *g, const char **out_text, size_t *out_bytes,
                               clg_generator_end *out_end);
clg_status generator_logits(clg_generator *g, float *out, size_t n);
clg_status generator_rewind(clg_generator *g, size_t n_tokens);
void generator_get_stats(const clg_generator *g, clg_generator_stats *out);

/* Computes the tokens that the caches lack, and the last one again if its outputs are gone
 * (generator_run.c). */
clg_status generator_evaluate(clg_generator *g);

/* Empties the caches: the next run sets them (generator_cache.c). */
void generator_drop_caches(clg_generator *g);
/* Sets the caches' inputs for a run that computes tokens up to n_total. */
clg_status generator_reserve(clg_generator *g, size_t n_total);
/* Cuts growing caches to n tokens, in the device's memory. */
clg_status generator_cut_caches(clg_generator *g, size_t n);
/* Returns the bytes of caches of this many tokens. */
uint64_t generator_cache_bytes(const clg_generator *g, uint64_t n_tokens);

/* Chooses a token from the session's outputs (choosing.c). */
clg_status generator_choose(clg_generator *g, int64_t *out_token);
/* Makes the next choice use g->sampling. */
void generator_reset_choosing(clg_generator *g);
/* Forgets tokens of the sequence from n on. */
void generator_forget_seen(clg_generator *g, size_t n);

#endif
