/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the arithmetic of terms. Every result is either exact or says less than is true.
 */
#include "ops/batch/batch_term.h"

#include "base/checked.h"

#include <string.h>

#define SYMBOL_SIGNED ((uint32_t)1 << 31)

batch_term term_mixed(void) { return (batch_term){.known = false}; }

batch_term term_int(int64_t value) { return (batch_term){.known = true, .factor = value}; }

batch_term term_rows(void) { return (batch_term){.known = true, .rows = true, .factor = 1}; }

static batch_term symbol(batch_symbols *s, uint32_t sign)
{
    return (batch_term){
        .known = true, .n_symbols = 1, .factor = 1, .symbols = {++s->n_made | sign}};
}

batch_term term_size(batch_symbols *s) { return symbol(s, 0); }

batch_term term_number(batch_symbols *s) { return symbol(s, SYMBOL_SIGNED); }

/* Returns whether the terms are equal but for their factors. */
static bool has_same_symbols(const batch_term *a, const batch_term *b)
{
    return a->rows == b->rows && a->n_symbols == b->n_symbols &&
           memcmp(a->symbols, b->symbols, a->n_symbols * sizeof *a->symbols) == 0;
}

bool term_equal(const batch_term *a, const batch_term *b)
{
    return a->known && b->known && a->factor == b->factor && has_same_symbols(a, b);
}

bool term_is_int(const batch_term *a) { return a->known && !a->rows && a->n_symbols == 0; }

bool term_is(const batch_term *a, int64_t value) { return term_is_int(a) && a->factor == value; }

bool term_is_free(const batch_term *a) { return a->known && !a->rows; }

bool term_is_size(const batch_term *a)
{
    if (!a->known || a->factor < 0) return false;
    for (size_t i = 0; i < a->n_symbols; i++)
        if (a->symbols[i] & SYMBOL_SIGNED) return false;
    return true;
}

batch_term term_of(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    return term_is_free(a) && term_is_free(b) ? term_number(s) : term_mixed();
}

batch_term term_mul(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    batch_term t = {.known = true, .rows = a->rows || b->rows};
    size_t i = 0, j = 0;
    if (term_is(a, 0) || term_is(b, 0)) return term_int(0);
    if (!a->known || !b->known || (a->rows && b->rows) ||
        !checked_mul_i64(a->factor, b->factor, &t.factor) ||
        a->n_symbols + b->n_symbols > BATCH_MAX_SYMBOLS)
        return term_of(s, a, b);
    while (i < a->n_symbols || j < b->n_symbols) {
        const bool first =
            j == b->n_symbols || (i < a->n_symbols && a->symbols[i] <= b->symbols[j]);
        t.symbols[t.n_symbols++] = first ? a->symbols[i++] : b->symbols[j++];
    }
    return t;
}

static batch_term sum(batch_symbols *s, const batch_term *a, const batch_term *b, int64_t sign)
{
    batch_term t = *a;
    int64_t factor;
    if (term_is(b, 0)) return *a;
    if (a->known && b->known && has_same_symbols(a, b) &&
        checked_mul_i64(b->factor, sign, &factor) && checked_add_i64(a->factor, factor, &t.factor))
        return t.factor == 0 ? term_int(0) : t;
    if (term_is(a, 0) && b->known && checked_mul_i64(b->factor, sign, &factor)) {
        t = *b;
        t.factor = factor;
        return t;
    }
    return term_of(s, a, b);
}

static size_t n_sums(const batch_symbols *s)
{
    return s->n_sums < BATCH_MAX_SUMS ? s->n_sums : BATCH_MAX_SUMS;
}

batch_term term_add(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    const uint32_t n_made = s->n_made;
    for (size_t i = 0; i < n_sums(s); i++) {
        const batch_term *x = &s->sums[i].a, *y = &s->sums[i].b;
        if ((term_equal(x, a) && term_equal(y, b)) || (term_equal(x, b) && term_equal(y, a)))
            return s->sums[i].sum;
    }
    const batch_term made = sum(s, a, b, 1);
    if (s->n_made == n_made) return made;
    const size_t at = s->n_sums++ % BATCH_MAX_SUMS;
    s->sums[at].a = *a;
    s->sums[at].b = *b;
    s->sums[at].sum = made;
    return made;
}

batch_term term_sub(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    for (size_t i = 0; i < n_sums(s); i++) {
        if (!term_equal(&s->sums[i].sum, a)) continue;
        if (term_equal(&s->sums[i].a, b)) return s->sums[i].b;
        if (term_equal(&s->sums[i].b, b)) return s->sums[i].a;
    }
    return sum(s, a, b, -1);
}

/* Removes the symbols of b from those of a; returns whether a had them all. */
static bool remove_symbols(batch_term *a, const batch_term *b)
{
    size_t kept = 0, j = 0;
    for (size_t i = 0; i < a->n_symbols; i++) {
        if (j < b->n_symbols && a->symbols[i] == b->symbols[j])
            j++;
        else
            a->symbols[kept++] = a->symbols[i];
    }
    memset(a->symbols + kept, 0, (BATCH_MAX_SYMBOLS - kept) * sizeof *a->symbols);
    a->n_symbols = (uint8_t)kept;
    return j == b->n_symbols;
}

batch_term term_div(batch_symbols *s, const batch_term *a, const batch_term *b, bool *out_exact)
{
    batch_term t = *a;
    const bool divides = a->known && b->known && b->factor != 0 && b->factor != -1 &&
                         a->factor % b->factor == 0 && (a->rows || !b->rows) &&
                         remove_symbols(&t, b);
    if (out_exact) *out_exact = divides;
    if (!divides) return term_of(s, a, b);
    t.factor = a->factor / b->factor;
    t.rows = a->rows && !b->rows;
    return t;
}

/* Returns whether b is a number below the least value of a. There is at least one row. */
static bool is_above(const batch_term *a, const batch_term *b)
{
    const int64_t least = a->n_symbols == 0 ? a->factor : 0;
    return term_is_size(a) && term_is_int(b) && b->factor < least;
}

batch_term term_same(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    if (term_equal(a, b)) return term_int(1);
    if (term_is_int(a) && term_is_int(b)) return term_int(0);
    return is_above(a, b) || is_above(b, a) ? term_int(0) : term_of(s, a, b);
}

/* Returns whether a is known to be at least b. */
static bool is_at_least(const batch_term *a, const batch_term *b)
{
    if (term_is_int(a) && term_is_int(b)) return a->factor >= b->factor;
    return term_equal(a, b) || is_above(a, b) ||
           (term_is_size(a) && a->n_symbols == 0 && term_is(b, a->factor));
}

batch_term term_min(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    return is_at_least(a, b) ? *b : is_at_least(b, a) ? *a : term_of(s, a, b);
}

batch_term term_max(batch_symbols *s, const batch_term *a, const batch_term *b)
{
    return is_at_least(a, b) ? *a : is_at_least(b, a) ? *b : term_of(s, a, b);
}

batch_term term_choose(batch_symbols *s, const batch_term *cond, const batch_term *a,
                       const batch_term *b)
{
    if (term_is_int(cond)) return cond->factor != 0 ? *a : *b;
    if (term_equal(a, b)) return *a;
    const batch_term chosen = term_of(s, a, b);
    return cond->known && !cond->rows ? chosen : term_mixed();
}
