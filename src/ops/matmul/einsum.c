/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses equations of Einsum (ONNX 12): operands ("terms") of letters and "...", blanks anywhere,
 * with or without "->" and a result.
 */
#include "ops/matmul/einsum.h"

#include <inttypes.h>
#include <string.h>

/* An operand or result ("term") as written in the equation, before "..." is expanded. */
typedef struct written_term {
    int n_before, n; /* letters before "...", all letters */
    bool dots;
    uint8_t letters[CLG_MAX_RANK + 1];
} written_term;

static int letter_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return -1;
}

static clg_status bad(const char *equation, const char *what)
{
    char shown[NAME_TEXT_BYTES];
    return error_set(CLG_ERROR_INVALID_MODEL, "the equation '%s' %s", name_text(equation, shown),
                     what);
}

/* Parses a term at *at, up to a comma, an arrow or the end, and advances *at past its letters. */
static clg_status read_term(const char *equation, const char **at, written_term *out)
{
    *out = (written_term){0};
    for (;; (*at)++) {
        const char c = **at;
        if (c == ' ') continue;
        if (c == '\0' || c == ',' || c == '-') break;
        if (c == '.') {
            if (strncmp(*at, "...", 3) != 0 || out->dots)
                return bad(equation, "has dots that are not an ellipsis");
            out->dots = true;
            out->n_before = out->n;
            *at += 2;
            continue;
        }
        if (letter_of(c) < 0) return bad(equation, "has a character that is not a letter");
        if (out->n == CLG_MAX_RANK) return bad(equation, "has a term of too many letters");
        out->letters[out->n++] = (uint8_t)letter_of(c);
    }
    if (!out->dots) out->n_before = out->n;
    return CLG_OK;
}

/* Sets the labels of a term. The equation has all_dots dimensions for "..."; in this term it stands
 * for the last n_dots of them. */
static clg_status set_labels(const char *equation, const written_term *w, int n_dots, int all_dots,
                             einsum_term *out)
{
    if (w->n + n_dots > CLG_MAX_RANK) return bad(equation, "has a result of too high a rank");
    out->rank = 0;
    for (int i = 0; i < w->n_before; i++) out->labels[out->rank++] = w->letters[i];
    for (int i = 0; i < n_dots; i++)
        out->labels[out->rank++] = (uint8_t)(EINSUM_DOTS + all_dots - n_dots + i);
    for (int i = w->n_before; i < w->n; i++) out->labels[out->rank++] = w->letters[i];
    return CLG_OK;
}

/* Merges a dimension of an operand into the size of its label. A dimension of 1 broadcasts. */
static clg_status merge_size(int64_t *size, int64_t dim)
{
    if (dim == 1 || *size == dim) return CLG_OK;
    if (dim == DIM_UNKNOWN && *size != 1) return CLG_OK;
    if (*size != 1 && *size != DIM_UNKNOWN)
        return error_set(CLG_ERROR_SHAPE, "dimensions of one label are %" PRId64 " and %" PRId64,
                         *size, dim);
    *size = dim;
    return CLG_OK;
}

/* Sets the implicit result of an equation without "->": the dimensions of "...", then the letters
 * that occur once, in the order of their character codes. */
static clg_status usual_result(const char *equation, const einsum_equation *e, int all_dots,
                               written_term *out)
{
    int count[EINSUM_LABELS] = {0};
    *out = (written_term){.dots = all_dots > 0};
    for (size_t t = 0; t < e->n_terms; t++)
        for (int i = 0; i < e->terms[t].rank; i++) count[e->terms[t].labels[i]]++;
    for (int l = 0; l < EINSUM_DOTS; l++) {
        if (count[l] != 1) continue;
        if (out->n == CLG_MAX_RANK) return bad(equation, "has a result of too high a rank");
        out->letters[out->n++] = (uint8_t)l;
    }
    return CLG_OK;
}

static clg_status check_result(const char *equation, const einsum_equation *e)
{
    bool given[EINSUM_LABELS] = {false}, taken[EINSUM_LABELS] = {false};
    for (size_t t = 0; t < e->n_terms; t++)
        for (int i = 0; i < e->terms[t].rank; i++) given[e->terms[t].labels[i]] = true;
    for (int i = 0; i < e->out.rank; i++) {
        const int label = e->out.labels[i];
        if (!given[label] || taken[label])
            return bad(equation, "has a result with a letter that is twice there or new");
        taken[label] = true;
    }
    for (int l = EINSUM_DOTS; l < EINSUM_LABELS; l++)
        if (given[l] && !taken[l]) return bad(equation, "has no ellipsis in its result");
    return CLG_OK;
}

static clg_status read_inputs(const char *equation, const char **at, const shape *const *shapes,
                              size_t n, einsum_equation *e, int *out_dots)
{
    written_term written[EINSUM_MAX_TERMS];
    *out_dots = 0;
    for (size_t t = 0;; t++) {
        if (t == n) return bad(equation, "has more terms than there are inputs");
        CLG_TRY(read_term(equation, at, &written[t]));
        const int n_dots = shapes[t]->rank - written[t].n;
        if (n_dots < 0 || (n_dots > 0 && !written[t].dots))
            return error_set(CLG_ERROR_SHAPE, "input %zu has rank %d and %d letters in its term", t,
                             shapes[t]->rank, written[t].n);
        if (n_dots > *out_dots) *out_dots = n_dots;
        e->n_terms = t + 1;
        if (**at != ',') break;
        (*at)++;
    }
    if (e->n_terms < n) return bad(equation, "has fewer terms than there are inputs");
    for (size_t t = 0; t < n; t++) {
        CLG_TRY(set_labels(equation, &written[t], shapes[t]->rank - written[t].n, *out_dots,
                           &e->terms[t]));
        for (int i = 0; i < e->terms[t].rank; i++)
            CLG_TRY(merge_size(&e->sizes[e->terms[t].labels[i]], shapes[t]->dims[i]));
    }
    return CLG_OK;
}

clg_status einsum_read(const node *n, const shape *const *shapes, einsum_equation *e)
{
    const char *equation = node_string(n, "equation", ""), *at = equation;
    written_term result;
    int all_dots;
    e->n_terms = 0;
    for (int i = 0; i < EINSUM_LABELS; i++) e->sizes[i] = 1;
    CLG_TRY(read_inputs(equation, &at, shapes, n->n_inputs, e, &all_dots));
    if (*at == '-') {
        if (at[1] != '>') return bad(equation, "has a dash that is not an arrow");
        at += 2;
        CLG_TRY(read_term(equation, &at, &result));
        if (*at != '\0') return bad(equation, "goes on after its result");
    } else {
        CLG_TRY(usual_result(equation, e, all_dots, &result));
    }
    CLG_TRY(set_labels(equation, &result, result.dots ? all_dots : 0, all_dots, &e->out));
    return check_result(equation, e);
}
