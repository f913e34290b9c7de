/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators: decoder language models that write one token after another. The rules of clgraph.h
 * apply.
 *
 *     clg_generator_open(context, "folder", NULL, &generator);
 *     clg_generator_append(generator, prompt, n_prompt);
 *     for (;;) {
 *         int64_t token;
 *         clg_generator_end end;
 *         if (clg_generator_next(generator, &token, &end) != CLG_OK) break;
 *         use(token);
 *         if (end != CLG_END_NONE) break;
 *     }
 *     clg_generator_free(generator);
 *
 * The generator holds a sequence of tokens. Their keys and values stay in the device's memory; each
 * call computes only the tokens that were added since, and reads back a few numbers.
 */
#ifndef CLGRAPH_GENERATE_H
#define CLGRAPH_GENERATE_H

#include <clgraph/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clg_generator clg_generator;

/* ---- opening --------------------------------------------------------------------------------- */

/* How the keys and values of earlier tokens are kept. */
typedef enum clg_generator_cache {
    CLG_CACHE_AUTO = 0,
    CLG_CACHE_GROWING = 1, /* tensors that grow by each token */
    /* Tensors with room for more tokens than there are, which double when they are full: shapes
     * stay the same for many tokens. For models whose caches are read by GroupQueryAttention only,
     * which AUTO finds. */
    CLG_CACHE_RESERVED = 2,
    CLG_CACHE_NONE = 3 /* the model has no inputs for them: each token computes all again */
} clg_generator_cache;

typedef struct clg_generator_options {
    size_t struct_size;
    /* Of the model's session, with the cancel token of all calls, opening included; may be NULL.
     * Sessions of several devices are not supported. */
    const clg_session_options *session;
    /* The most tokens of a sequence; 0: the model's context length. More than that is
     * INVALID_ARGUMENT. */
    uint64_t max_context;
    /* Tokens of a prompt that one run computes, which bounds memory; 0: 256. Models with an input
     * use_cache_branch compute all tokens in the first run, and one in each of the others. */
    uint32_t chunk;
    clg_generator_cache cache; /* AUTO, GROWING or RESERVED */
    bool read_files;           /* as in clg_model_options */
} clg_generator_options;
#define CLG_GENERATOR_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(clg_generator_options), NULL, 0, 0, CLG_CACHE_AUTO, false                           \
    }

/* Opens the model of a folder: one with genai_config.json, as onnxruntime-genai's model builder
 * writes it, or with config.json (generation_config.json too, if it is there) and model.onnx or
 * decoder_model_merged.onnx, as Optimum exports it; the latter's use_cache_branch is set by the
 * generator. Models have one sequence, and caches in float32 or float16. options may be NULL.
 * Errors: IO (a file is missing or cannot be read), INVALID_MODEL (the configuration is damaged, or
 * does not fit the model; file and name are in the message), UNSUPPORTED_ATTRIBUTE (an input that
 * the generator does not know, encoders, pipelines), INVALID_ARGUMENT, those of
 * clg_model_load_file and clg_session_create. */
CLG_API CLG_MUST_USE clg_status clg_generator_open(clg_context *context, const char *folder,
                                                   const clg_generator_options *options,
                                                   clg_generator **out_generator);
/* Frees a generator, on which no call may be in progress; accepts NULL. */
CLG_API void clg_generator_free(clg_generator *generator);

/* What a generator's folder and model say. */
typedef struct clg_generator_info {
    size_t struct_size;
    const char *model_type; /* "llama"; "" if it is not known; borrowed from the generator */
    uint64_t vocabulary;    /* tokens are 0 to vocabulary - 1 */
    uint64_t max_context;   /* tokens of a sequence at most */
    uint64_t n_layers;      /* with caches */
    int64_t bos, pad;       /* -1: none */
    const int64_t *eos;     /* n_eos tokens that end the text; borrowed */
    size_t n_eos;
    clg_generator_cache cache; /* not AUTO */
} clg_generator_info;
#define CLG_GENERATOR_INFO_INIT                                                                    \
    {                                                                                              \
        sizeof(clg_generator_info), NULL, 0, 0, 0, 0, 0, NULL, 0, CLG_CACHE_AUTO                   \
    }

/* out_info starts with its INIT. */
CLG_API CLG_MUST_USE clg_status clg_generator_describe(const clg_generator *generator,
                                                       clg_generator_info *out_info);

/* ---- choosing tokens ------------------------------------------------------------------------- */

/* How the next token is chosen from the logits, in this order: penalty, temperature, top_k, top_p,
 * min_p, a draw. With all zeros: the most likely token. */
typedef struct clg_sampling {
    size_t struct_size;
    /* Divides the logits; 0: the most likely token is taken, and what follows but the penalty has
     * no effect. */
    double temperature;
    uint32_t top_k; /* only the k most likely tokens, 0: all, which reads all logits back */
    double top_p;   /* only the most likely ones whose probabilities sum up to p; 0: off */
    double min_p;   /* only those at least p times as likely as the most likely one; 0: off */
    /* Logits of tokens in the sequence, the prompt included, are divided by this if positive, else
     * multiplied; 0 and 1: off. */
    double repetition_penalty;
    /* Of the draws: each is a function of the seed and of the token's index in the sequence. The
     * same logits give the same tokens, on every device; where devices round logits differently, a
     * draw between two tokens may differ. */
    uint64_t seed;
    uint64_t max_new; /* tokens after the last append; 0: until max_context */
} clg_sampling;
#define CLG_SAMPLING_INIT                                                                          \
    {                                                                                              \
        sizeof(clg_sampling), 0, 0, 0, 0, 0, 0, 0                                                  \
    }

/* Returns the current settings: at first those of the folder (genai's "search", Optimum's
 * generation_config.json), where sampling that is not requested (do_sample) is temperature 0. */
CLG_API CLG_MUST_USE clg_status clg_generator_get_sampling(const clg_generator *generator,
                                                           clg_sampling *out_sampling);
/* Sets them for the next tokens. NULL: those of the folder. Errors: INVALID_ARGUMENT (negative, not
 * finite, top_p or min_p above 1), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_generator_set_sampling(clg_generator *generator,
                                                           const clg_sampling *sampling);

/* Why a text has ended. */
typedef enum clg_generator_end {
    CLG_END_NONE = 0,
    CLG_END_EOS = 1,    /* the token is one of the model's end tokens */
    CLG_END_LENGTH = 2, /* max_new tokens were made, or the sequence has max_context tokens */
    CLG_END_STOP = 3    /* a stop text was found (functions of text only) */
} clg_generator_end;

/* ---- generation ------------------------------------------------------------------------------ */

/* Calls on a generator that is working on another one return BUSY, except clg_generator_cancel and
 * clg_generator_describe; clg_generator_get_sampling, _tokens and _n_tokens may not be called then.
 */

/* Appends n tokens to the sequence; they are computed by the next call that needs it. Begins a new
 * text: counts max_new from here, and forgets an end. Errors: INVALID_ARGUMENT (a token that is
 * not in the vocabulary; nothing is appended), LIMIT (more than max_context tokens), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_generator_append(clg_generator *generator,
                                                     const int64_t *tokens, size_t n);
/* Computes what is new in the sequence, chooses the next token, and appends it. After an end it
 * only returns that, with token -1. Errors: INVALID_ARGUMENT (the sequence is empty), DATA (a
 * logit is NaN), those of clg_session_run, LIMIT (max_context was reached without an end), BUSY.
 * After an error the sequence is as before, and the next call computes it again. */
CLG_API CLG_MUST_USE clg_status clg_generator_next(clg_generator *generator, int64_t *out_token,
                                                   clg_generator_end *out_end);
/* Copies the logits after the last token of the sequence, `vocabulary` numbers as the model gave
 * them (before penalty and temperature), computing what is new. n must be `vocabulary`. Errors: as
 * clg_generator_next. */
CLG_API CLG_MUST_USE clg_status clg_generator_logits(clg_generator *generator, float *out_logits,
                                                     size_t n);
/* ---- text ------------------------------------------------------------------------------------ */

/* The following functions need tokenizer.json in the folder (clgraph/tokenizer.h), which they open
 * when it is first needed. Errors also: those of clg_tokenizer_open. */

/* Appends the tokens of a text, UTF-8; to an empty sequence with the special tokens that the
 * tokenizer puts around a text. text may be NULL if text_bytes is 0. Errors: as
 * clg_generator_append and clg_tokenizer_encode. */
CLG_API CLG_MUST_USE clg_status clg_generator_append_text(clg_generator *generator,
                                                          const char *text, size_t text_bytes);
/* As clg_generator_next, and returns the text that is certain with the token: "" while a character
 * is not complete, or what there is may be the beginning of a stop text. Special tokens give no
 * text. It ends before a stop text (CLG_END_STOP), whose tokens are in the sequence. *out_text is
 * valid until the next call. After an error the next call returns the text that is missing. */
CLG_API CLG_MUST_USE clg_status clg_generator_next_text(clg_generator *generator,
                                                        const char **out_text,
                                                        size_t *out_text_bytes,
                                                        clg_generator_end *out_end);
/* Sets the stop texts, n strings, which are copied; 0: none, as at first. Errors: INVALID_ARGUMENT
 * (an empty one), BUSY. */
CLG_API CLG_MUST_USE clg_status clg_generator_set_stops(clg_generator *generator,
                                                        const char *const *texts, size_t n);

/* ---- the sequence ---------------------------------------------------------------------------- */

/* Cuts the sequence to its first n_tokens, of which what was computed is kept; 0: starts over.
 * Errors: INVALID_ARGUMENT (n_tokens is more than there are), BUSY, and of growing caches those of
 * a run; the sequence is cut anyway. */
CLG_API CLG_MUST_USE clg_status clg_generator_rewind(clg_generator *generator, size_t n_tokens);
/* Return the tokens of the sequence, borrowed until the next call that changes it, and their
 * number; 0 for NULL. */
CLG_API const int64_t *clg_generator_tokens(const clg_generator *generator);
CLG_API size_t clg_generator_n_tokens(const clg_generator *generator);
/* Ends the call in progress with CANCELLED, as clg_session_cancel; the tokenizer's part of a call
 * is not interrupted. Any thread; accepts NULL. */
CLG_API void clg_generator_cancel(clg_generator *generator);

/* Sums over the calls so far. */
typedef struct clg_generator_stats {
    size_t struct_size;
    /* Runs with tokens that were appended, by chunks: their tokens, and seconds. */
    uint64_t n_prompt_tokens;
    double prompt_s;
    /* The other runs, of one token each that clg_generator_next chose. */
    uint64_t n_new_tokens;
    double new_s;
    double sampling_s;    /* of both: choosing tokens from logits */
    uint64_t n_runs;      /* of the model */
    uint64_t n_cached;    /* tokens whose keys and values are on the device now */
    uint64_t capacity;    /* tokens for which reserved caches have room now; n_cached of others */
    uint64_t cache_bytes; /* of the keys and values of `capacity` tokens */
} clg_generator_stats;
#define CLG_GENERATOR_STATS_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_generator_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0                                     \
    }

/* out_stats starts with its INIT. Errors: BUSY. */
CLG_API CLG_MUST_USE clg_status clg_generator_get_stats(clg_generator *generator,
                                                        clg_generator_stats *out_stats);

#ifdef __cplusplus
}
#endif

#endif
