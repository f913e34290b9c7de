/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowers the steps that several attention operators have in common: attention itself
 * (cl/attention/attention.cl), appending to a cache of keys or values (cl/attention/kvcache.cl),
 * and rotary embedding (cl/attention/rotary.cl). Only attention.c sets the arguments of these
 * kernels.
 */
#ifndef CLG_OPS_ATTENTION_H
#define CLG_OPS_ATTENTION_H

#include "ops/core/op.h"

/* Queries, keys or values in memory, as rows of contiguous elements: the row of batch b, head h,
 * position i starts b * sb + h * sh + i * si elements after `at`. */
typedef struct attention_rows {
    operand at;
    int64_t sb, sh, si;
} attention_rows;

/* Returns the rows of a dense tensor [batch, positions, heads * d]. */
attention_rows attention_by_position(operand at, int64_t n_positions, int64_t heads, int64_t d);
/* Returns the rows of a dense tensor [batch, heads, positions, d]. */
attention_rows attention_by_head(operand at, int64_t n_positions, int64_t heads, int64_t d);

/* How the mask changes the scores. */
typedef enum attention_mask {
    MASK_NONE,
    MASK_BOOL,    /* adds `masked` where the mask is false */
    MASK_ADD,     /* adds the mask */
    MASK_INT      /* adds `masked` where the mask is not positive */
} attention_mask; /* P_MASK */
/* Which keys j are excluded for query i. */
typedef enum attention_causal {
    CAUSAL_NONE,
    CAUSAL_OFFSET,  /* j > i + offset */
    CAUSAL_LENGTH   /* j > i + offset + length[b] - q_len */
} attention_causal; /* P_CAUSAL */
/* KEYS_END: adds `masked` to the scores of keys j >= length[b]. KEYS_START_END: also to those of
 * keys j < length[batch + b]. */
typedef enum attention_keys { KEYS_ALL, KEYS_END, KEYS_START_END } attention_keys; /* P_KEYS */
/* An additional key with value 0 in each row: with score sinks[h] (SINK_BY_HEAD), or 0
 * (SINK_ZERO). */
typedef enum attention_sink { SINK_NONE, SINK_BY_HEAD, SINK_ZERO } attention_sink; /* P_SINK */

/* A tensor that is broadcast to the scores [batch, heads, q_len, kv_len]. */
typedef struct attention_addend {
    operand at;
    clg_dtype dtype;
    int64_t strides[4], length; /* in elements; length of its last dimension */
} attention_addend;

/* A computation of attention; its formula and the enumerations above are explained in the head of
 * cl/attention/attention.cl. */
typedef struct attention_job {
    clg_dtype dtype; /* float32, float16 or bfloat16 */
    int64_t batch, heads, kv_heads, q_len, kv_len, d, dv;
    attention_rows q, k, v, y;
    attention_mask mask_kind;
    attention_addend mask;
    bool has_bias;
    attention_addend bias;
    attention_causal causal;
    int64_t
        /* the last key of query i is i + offset, or i + offset + length[b] - q_len: see `causal` */
        offset;
    int64_t window; /* number of keys of a query, ending with the last one; 0: no limit */
    attention_keys keys;
    operand lengths; /* for CAUSAL_LENGTH and KEYS_*: [batch], or [2 * batch] for KEYS_START_END */
    clg_dtype lengths_dtype;
    int64_t length_add; /* length[b] = lengths[b] + length_add */
    attention_sink sink;
    operand sinks;                 /* [heads], for SINK_BY_HEAD */
    double scale, softcap, masked; /* softcap 0: none; masked: added to masked scores */
} attention_job;

/* Sets the strides of a tensor of up to 4 dimensions that broadcasts to [batch, heads, q_len,
 * kv_len]; its last dimension may be shorter than kv_len. */
void attention_broadcast(const shape *dims, attention_addend *out);
/* Returns whether a shape can be broadcast to `over`, as far as it is known. last_may_be_short: its
 * last dimension may be shorter than over[3]. */
bool attention_broadcasts(const shape *dims, const int64_t over[4], bool last_may_be_short);

/* Adds the candidate of an implementation, numbered from 0, and returns it; NULL after the last
 * one. Implementation 0, which is called `name`, is the fastest; the others are last resorts, for
 * drivers on which it is wrong or is rejected. Of the job, only sizes must be set. */
candidate *attention_candidate(lower_context *c, const char *name, int implementation,
                               const attention_job *j);
/* Returns the number of implementations. */
int attention_count(const lower_context *c, const attention_job *j);
/* Returns the name of an implementation. */
const char *attention_name(const lower_context *c, const attention_job *j, int implementation);
/* Appends the steps that compute j->y by an implementation. */
void attention_step(lower_context *c, candidate *impl, const attention_job *j, int implementation);
/* Appends the step that writes the scores to `to`, [batch, heads, q_len, kv_len]. mode: 0 scaled
 * products, 1 after softcap, 2 after masks, 3 after softmax (P_MODE). */
void attention_scores_step(lower_context *c, candidate *impl, const attention_job *j, operand to,
                           int mode);

/* An append of `count` new keys or values per head, `fresh`, to those of `past`, [batch, heads,
 * past_len, d]. The result, `present`, is [batch, heads, total, d]. The new ones begin at position
 * lengths[b] + length_add - count; without lengths at past_len, or at 0 if at_front or without a
 * past. keeps: elements of the past at positions after the new ones are copied too.
 * in_place: `present` is the memory of `past`, in which only the new ones are written. */
typedef struct attention_append {
    clg_dtype dtype;
    int64_t batch, heads, total, past_len, count, d;
    bool has_past, has_lengths, keeps, at_front, in_place;
    operand past, present, lengths; /* lengths: int32 */
    attention_rows fresh;
    int64_t length_add;
    const struct attention_append *next; /* in lower_context.appends */
} attention_append;

/* Appends the step that computes a->present. */
void attention_append_step(lower_context *c, candidate *impl, const attention_append *a);
/* Returns the keys or values for attention. If the node has neither the input of index `past` nor
 * the output of index `present`: a->fresh. Otherwise appends the step that appends a->fresh to the
 * past, and returns its result: the output, or scratch memory if the node omits it. */
attention_rows attention_grow(lower_context *c, candidate *impl, attention_append *a, uint32_t past,
                              uint32_t present);

/* Which row of the caches of cosines and sines rotates position i of batch b. */
typedef enum rotary_positions {
    ROTARY_CACHE_ROWS, /* row [b, i]: the caches are [batch, positions, half] */
    ROTARY_IDS,        /* ids[b, i] */
    ROTARY_OFFSET,     /* ids[0] + i */
    ROTARY_LENGTHS     /* max(lengths[b] + length_add - positions, 0) + i */
} rotary_positions;    /* P_POSITIONS */

/* A rotary embedding of x into y: cl/attention/rotary.cl. cos and sin: [cache_len, rotated / 2]. */
typedef struct attention_rotary {
    clg_dtype dtype, ids_dtype;
    int64_t batch, n_positions, heads, d, rotated; /* rotated: leading elements of d */
    int64_t cache_len;                             /* rows of the caches */
    attention_rows x, y;
    operand cos, sin, ids;
    rotary_positions positions;
    bool interleaved;
    int64_t length_add;
} attention_rotary;

/* Appends the step of a rotary embedding. */
void attention_rotary_step(lower_context *c, candidate *impl, const attention_rotary *r);

/* Inputs of the internal operators clgraph.AttentionCore and clgraph.CacheAppend
 * (op_attention_core.c), by which self-tests run these steps. */
enum { CORE_Q, CORE_K, CORE_V, CORE_MASK, CORE_BIAS, CORE_LENGTHS, CORE_SINKS, CORE_INPUTS };
enum { APPEND_PAST, APPEND_FRESH, APPEND_LENGTHS, APPEND_INPUTS };

#endif
