/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the values of a node's attributes against the domains of the operator table. Every
 * operator is checked here, once, when the graph is resolved, so that the operators' functions read
 * attributes without checking them again. See decision 52.
 */
#include "ops/core/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool has_int(const op_domain *d, int64_t value)
{
    if (d->dtypes) return value >= 0 && value < 32 && (d->dtypes & DTYPE_BIT(value));
    return value >= d->min && value <= d->max;
}

/* Returns false for NaN. */
static bool has_float(const op_domain *d, float value)
{
    return (double)value >= (double)d->min && (double)value <= (double)d->max;
}

static bool has_word(const op_domain *d, const char *value)
{
    for (const char *const *w = d->words; *w; w++)
        if (strcmp(*w, value) == 0) return true;
    return false;
}

bool op_domain_has(const op_domain *d, const graph_attribute *a, size_t *out_at)
{
    const bool is_list = a->type == ATTRIBUTE_INTS;
    *out_at = 0;
    if (a->type == ATTRIBUTE_INT) return has_int(d, a->as.i);
    if (a->type == ATTRIBUTE_FLOAT) return has_float(d, a->as.f);
    if (a->type == ATTRIBUTE_STRING) return has_word(d, a->as.s);
    while (is_list && *out_at < a->count && has_int(d, a->as.ints[*out_at])) ++*out_at;
    return !is_list || *out_at == a->count;
}

/* Appends to the text in a buffer; what does not fit is dropped. */
static void append(char *text, size_t size_bytes, const char *more)
{
    const size_t used = strlen(text);
    (void)snprintf(text + used, size_bytes - used, "%s", more);
}

const char *op_domain_text(const op_domain *d, char buffer[OP_DOMAIN_TEXT_BYTES])
{
    char names[DTYPE_SET_TEXT_BYTES];
    buffer[0] = '\0';
    for (const char *const *w = d->words; w && *w; w++) {
        append(buffer, OP_DOMAIN_TEXT_BYTES, w == d->words ? "'" : w[1] ? "', '" : "' and '");
        append(buffer, OP_DOMAIN_TEXT_BYTES, *w);
    }
    if (d->words)
        append(buffer, OP_DOMAIN_TEXT_BYTES, "'");
    else if (d->dtypes)
        (void)snprintf(buffer, OP_DOMAIN_TEXT_BYTES, "%s%s",
                       d->dtypes & DTYPE_BIT(CLG_DTYPE_NONE) ? "0, " : "",
                       dtype_set_text(d->dtypes & ~DTYPE_BIT(CLG_DTYPE_NONE), names));
    else if (d->max == INT64_MAX)
        (void)snprintf(buffer, OP_DOMAIN_TEXT_BYTES, "%" PRId64 " and above", d->min);
    else
        (void)snprintf(buffer, OP_DOMAIN_TEXT_BYTES, "%" PRId64 " %s %" PRId64, d->min,
                       d->max - d->min == 1 ? "and" : "to", d->max);
    return buffer;
}

/* Returns the status for values outside of a domain. ONNX may allow dtypes that are not supported,
 * and newer versions of an operator add words. */
static clg_status status_of(const op_domain *d)
{
    return d->words    ? CLG_ERROR_UNSUPPORTED_ATTRIBUTE
           : d->dtypes ? CLG_ERROR_UNSUPPORTED_DTYPE
                       : CLG_ERROR_INVALID_MODEL;
}

clg_status op_domain_check(const node *n, const op_attribute *known, const graph_attribute *a)
{
    char shown[NODE_TEXT_BYTES], word[NAME_TEXT_BYTES], value[NAME_TEXT_BYTES + 16];
    char allowed[OP_DOMAIN_TEXT_BYTES];
    size_t at;
    if (!known->domain || op_domain_has(known->domain, a, &at)) return CLG_OK;
    if (a->type == ATTRIBUTE_STRING)
        (void)snprintf(value, sizeof value, "is '%s'", name_text(a->as.s, word));
    else if (a->type == ATTRIBUTE_FLOAT)
        (void)snprintf(value, sizeof value, "is %g", (double)a->as.f);
    else if (known->domain->dtypes && a->as.i == (int64_t)(clg_dtype)a->as.i)
        (void)snprintf(value, sizeof value, "is %" PRId64 " (%s)", a->as.i,
                       dtype_name((clg_dtype)a->as.i));
    else if (a->type == ATTRIBUTE_INT)
        (void)snprintf(value, sizeof value, "is %" PRId64, a->as.i);
    else
        (void)snprintf(value, sizeof value, "has the element %" PRId64, a->as.ints[at]);
    return error_set(status_of(known->domain), "%s: the attribute '%s' %s; allowed are %s",
                     node_text(n, shown), known->name, value,
                     op_domain_text(known->domain, allowed));
}
