/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiplies and divides products of terms: implements size_products.h.
 */
#include "passes/shapes/size_products.h"
#include "base/checked.h"

void size_product_multiply(const size_terms *t, size_product *p, size_term term)
{
    size_term todo[CLG_MAX_RANK] = {term}, x, y;
    int64_t number;
    for (size_t n = 1; n > 0 && !p->exceeded;) {
        const size_term at = todo[--n];
        if (size_terms_is_number(t, at, &number)) {
            p->exceeded = !checked_mul_i64(p->number, number, &p->number);
        } else if (size_terms_is_product(t, at, &x, &y) && n + 2 <= CLG_MAX_RANK) {
            todo[n++] = x;
            todo[n++] = y;
        } else if (p->n < sizeof p->terms / sizeof *p->terms) {
            p->terms[p->n++] = at;
        } else {
            p->exceeded = true;
        }
    }
}

bool size_product_divide(size_product *p, size_term term)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->terms[i] != term) continue;
        p->terms[i] = p->terms[--p->n];
        return true;
    }
    return false;
}

bool size_product_has(const size_terms *t, const size_product *p, size_term term)
{
    size_product factors = SIZE_PRODUCT_ONE;
    size_product_multiply(t, &factors, term);
    for (size_t i = 0; i < factors.n; i++) {
        bool found = false;
        for (size_t k = 0; k < p->n; k++) found = found || p->terms[k] == factors.terms[i];
        if (!found) return false;
    }
    return !factors.exceeded;
}

/* Sorts the terms by their ids. */
static void sort(size_product *p)
{
    for (size_t i = 1; i < p->n; i++)
        for (size_t k = i; k > 0 && p->terms[k - 1] > p->terms[k]; k--) {
            const size_term larger = p->terms[k - 1];
            p->terms[k - 1] = p->terms[k];
            p->terms[k] = larger;
        }
}

size_term size_product_term(size_terms *t, size_product p)
{
    size_term product = size_terms_number(t, 1);
    sort(&p);
    for (size_t i = 0; i < p.n; i++) product = size_terms_apply(t, TERM_MUL, product, p.terms[i]);
    return size_terms_apply(t, TERM_MUL, product, size_terms_number(t, p.number));
}

size_term size_product_of(size_terms *t, size_term a, size_term b)
{
    size_product p = SIZE_PRODUCT_ONE;
    size_product_multiply(t, &p, a);
    size_product_multiply(t, &p, b);
    return p.exceeded ? size_terms_apply(t, TERM_MUL, a, b) : size_product_term(t, p);
}
