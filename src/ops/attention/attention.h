/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that the attention operators share: attention itself (cl/attention/attention.cl), appending
 * to a cache of keys or values (cl/attention/kvcache.cl), rotary embedding
 * (cl/attention/rotary.cl). Only these functions know the kernels' arguments.
 */
#ifndef CLG_OPS_ATTENTION_H
#define CLG_OPS_ATTENTION_H

#include "ops/core/op.h"

/* Rows of d elements; the row of batch b, head h, position i starts at b * sb + h * sh + i * si. */
typedef struct attention_rows {
    operand at;
    int64_t sb, sh, si;
} attention_rows;

/* Return the rows of dense tensors [batch, positions, heads * d] and [batch, heads, positions, d].
 */
attention_rows attention_by_position(operand at, int64_t n_positions, int64_t heads, int64_t d);
attention_rows attention_by_head(operand at, int64_t n_positions, int64_t heads, int64_t d);

typedef enum attention_mask {
    MASK_NONE,
    MASK_BOOL,
    MASK_ADD,
    MASK_INT
} attention_mask; /* P_MASK */
typedef enum attention_causal {
    CAUSAL_NONE,
    CAUSAL_OFFSET,
    CAUSAL_LENGTH
} attention_causal;                                                                /* P_CAUSAL */
typedef enum attention_keys { KEYS_ALL, KEYS_END, KEYS_START_END } attention_keys; /* P_KEYS */
typedef enum attention_sink { SINK_NONE, SINK_BY_HEAD, SINK_ZERO } attention_sink; /* P_SINK */

/* A tensor that is broadcast to the scores [batch, heads, q_len, kv_len]. */
typedef struct attention_addend {
    operand at;
    clg_dtype dtype;
    int64_t strides[4], length; /* length: of its last dimension */
} attention_addend;

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
        /* query i sees keys up to i + offset; CAUSAL_LENGTH: up to i + offset + length - q_len */
        offset;
    int64_t window; /* number of keys that a query sees, up to the last one; 0: all */
    attention_keys keys;
    operand lengths;
    clg_dtype lengths_dtype;
    int64_t length_add;
    attention_sink sink;
    operand sinks;
    double scale, softcap, masked;
} attention_job;

/* Sets the strides of a tensor of up to 4 dimensions that broadcasts to [batch, heads, q_len,
 * kv_len]; its last dimension may be shorter than kv_len. */
void attention_broadcast(const shape *dims, attention_addend *out);
/* Returns whether a shape broadcasts to `over`; unknown dimensions fit. */
bool attention_broadcasts(const shape *dims, const int64_t over[4], bool last_may_be_short);

/* Adds the candidate of an implementation, numbered from 0, and returns it; NULL after the last
 * one. Implementation 0, which is called `name`, is the fastest; the others are last resorts, for
 * drivers on which it is wrong or is rejected. Of the job, only sizes must be set. */
candidate *attention_candidate(lower_context *c, const char *name, int implementation,
                               const attention_job *j);
/* Returns the number of implementations. */
int attention_count(const lower_context *c, const attention_job *j);
const char *attention_name(const lower_context *c, const attention_job *j, int implementation);
void attention_step(lower_context *c, candidate *impl, const attention_job *j, int implementation);
/* Appends the step that writes the scores to `to`, [batch, heads, q_len, kv_len]. mode: P_MODE. */
void attention_scores_step(lower_context *c, candidate *impl, const attention_job *j, operand to,
                           int mode);

/* An append of new keys or values to a cache: present is [batch, heads, total, d]. Without lengths
 * the new ones begin at past_len, or at 0 if at_front or without a past. */
typedef struct attention_append {
    clg_dtype dtype;
    int64_t batch, heads, total, past_len, count, d;
    bool has_past, has_lengths, keeps, at_front;
    operand past, present, lengths; /* lengths: int32 */
    attention_rows fresh;
    int64_t length_add;
} attention_append;

void attention_append_step(lower_context *c, candidate *impl, const attention_append *a);
/* Returns the rows of keys or values that attention reads: a->fresh if the node has neither input
 * `past` nor output `present`. Otherwise appends the step that adds a->fresh to `past` and returns
 * its result, in `present` or in scratch. */
attention_rows attention_grow(lower_context *c, candidate *impl, attention_append *a, uint32_t past,
                              uint32_t present);

/* Which row of the caches of cosines and sines rotates position i of batch b. */
typedef enum rotary_positions {
    ROTARY_CACHE_ROWS, /* row [b, i]: the caches are [batch, positions, half] */
    ROTARY_IDS,        /* ids[b, i] */
    ROTARY_OFFSET,     /* ids[0] + i */
    ROTARY_LENGTHS     /* max(lengths[b] + length_add - positions, 0) + i */
} rotary_positions;    /* P_POSITIONS */

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

void attention_rotary_step(lower_context *c, candidate *impl, const attention_rotary *r);

#endif
