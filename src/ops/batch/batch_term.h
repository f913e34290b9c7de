/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes that are known up to the number of rows of a batch: products of a whole number, symbols for
 * numbers that no part of the batch changes, and at most once the number of rows.
 */
#ifndef CLG_OPS_BATCH_TERM_H
#define CLG_OPS_BATCH_TERM_H

#include "base/error.h"

#define BATCH_MAX_SYMBOLS 6

/* factor * symbols... * (rows ? the number of rows : 1). */
typedef struct batch_term {
    bool known; /* false: a number of which nothing is known; it may depend on the number of rows */
    bool rows;
    uint8_t n_symbols;
    int64_t factor;                      /* 0: the term is 0 and has no symbols */
    uint32_t symbols[BATCH_MAX_SYMBOLS]; /* ascending */
} batch_term;

/* Makes symbols. Each is a number that is the same for every part of the batch; those of term_size
 * are not negative. */
#define BATCH_MAX_SUMS 32
typedef struct batch_symbols {
    uint32_t n_made;
    /* The last sums that became symbols: the same sum is the same symbol, and a difference may give
     * back what was added (the length of a Range from `past` to `past + new`). */
    struct {
        batch_term a, b, sum;
    } sums[BATCH_MAX_SUMS];
    size_t n_sums; /* ever */
} batch_symbols;

batch_term term_mixed(void); /* the unknown term */
batch_term term_int(int64_t value);
batch_term term_rows(void); /* the number of rows, at least 1 */
batch_term term_size(batch_symbols *s);
batch_term term_number(batch_symbols *s); /* a symbol that may be negative */

/* Return whether the terms are known to be equal; whether a term is known to be this number; and
 * whether it is known not to be negative. */
bool term_equal(const batch_term *a, const batch_term *b);
bool term_is(const batch_term *a, int64_t value);
bool term_is_size(const batch_term *a);
/* Returns whether the term is a number, without symbols and rows. */
bool term_is_int(const batch_term *a);
/* Returns whether the term does not depend on the number of rows. */
bool term_is_free(const batch_term *a);

/* Arithmetic. What no term can express is a new symbol if neither operand depends on the number of
 * rows, else unknown. */
batch_term term_mul(batch_symbols *s, const batch_term *a, const batch_term *b);
batch_term term_add(batch_symbols *s, const batch_term *a, const batch_term *b);
batch_term term_sub(batch_symbols *s, const batch_term *a, const batch_term *b);
/* Exact quotients only; *out_exact, which may be NULL, says whether the quotient is one. */
batch_term term_div(batch_symbols *s, const batch_term *a, const batch_term *b, bool *out_exact);
/* 1 or 0 where that is known. */
batch_term term_same(batch_symbols *s, const batch_term *a, const batch_term *b);
batch_term term_min(batch_symbols *s, const batch_term *a, const batch_term *b);
batch_term term_max(batch_symbols *s, const batch_term *a, const batch_term *b);
/* cond ? a : b */
batch_term term_choose(batch_symbols *s, const batch_term *cond, const batch_term *a,
                       const batch_term *b);
/* The result of a function of which only the operands are known. */
batch_term term_of(batch_symbols *s, const batch_term *a, const batch_term *b);

#endif
