/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes as products of a number and other terms, in which factors can be found.
 */
#ifndef CLG_PASSES_SIZE_PRODUCTS_H
#define CLG_PASSES_SIZE_PRODUCTS_H

#include "passes/shapes/size_terms.h"

typedef struct size_product {
    int64_t number;
    size_term terms[2 * CLG_MAX_RANK];
    size_t n;
    bool exceeded; /* there are more terms, or the number cannot be represented */
} size_product;

#define SIZE_PRODUCT_ONE ((size_product){.number = 1})

/* Multiplies a product with a term, or with its factors. */
void size_product_multiply(const size_terms *t, size_product *p, size_term term);
/* Removes a term from a product. Returns false if it is not there. */
bool size_product_divide(size_product *p, size_term term);
/* Returns whether a product has all factors of a term but for numbers. */
bool size_product_has(const size_terms *t, const size_product *p, size_term term);
/* Returns the product as a term: equal products are one term. */
size_term size_product_term(size_terms *t, size_product p);
/* Returns the product of two terms, in the same form. */
size_term size_product_of(size_terms *t, size_term a, size_term b);

#endif
