/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements suggestion.h.
 */
#include "suggestion.h"

#include "output.h"

#include <clgraph/inspect.h>

#include <stdint.h>
#include <string.h>

#define MIN_PART_BYTES 3          /* of a word that is looked for inside of names */
#define PART_SCORE ((size_t)1000) /* of a name that contains the word: after all misspelt ones */

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

size_t edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t rows[3][SUGGESTION_BYTES]; /* of the distances between starts of a and starts of b */
    if (n >= SUGGESTION_BYTES || m >= SUGGESTION_BYTES) return SIZE_MAX;
    for (size_t k = 0; k <= m; k++) rows[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            const bool differ = lower(a[i - 1]) != lower(b[k - 1]);
            row[k] = smaller(above[k - 1] + differ, smaller(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && lower(a[i - 1]) == lower(b[k - 2]) &&
                lower(a[i - 2]) == lower(b[k - 1]))
                row[k] = smaller(row[k], second[k - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

/* Returns whether the name contains the word, in upper or lower case. */
static bool contains(const char *name, const char *word)
{
    const size_t n = strlen(word);
    for (; *name; name++) {
        size_t i = 0;
        while (i < n && name[i] && lower(name[i]) == lower(word[i])) i++;
        if (i == n) return true;
    }
    return false;
}

void suggestion_begin(suggestion *s, const char *word)
{
    *s = (suggestion){.word = word, .prefix = "", .score = SIZE_MAX};
}

void suggestion_offer(suggestion *s, const char *name)
{
    const size_t n = strlen(s->word), m = strlen(name), longer = n > m ? n : m;
    size_t score = edit_distance(s->word, name);
    if (m == 0 || score == SIZE_MAX) return;
    if (score > (longer + 2) / 3 || 2 * score > longer) {
        if (n < MIN_PART_BYTES || !contains(name, s->word)) return;
        score = PART_SCORE + m - n;
    }
    if (score >= s->score) return;
    s->score = score;
    memcpy(s->best, name, m + 1);
}

void suggestion_offer_inputs(suggestion *s, const clg_model *model)
{
    for (size_t i = 0; i < clg_model_n_inputs(model); i++)
        suggestion_offer(s, clg_model_input(model, i)->name);
}

void suggestion_offer_outputs(suggestion *s, const clg_model *model)
{
    for (size_t i = 0; i < clg_model_n_outputs(model); i++)
        suggestion_offer(s, clg_model_output(model, i)->name);
}

void suggestion_offer_initializers(suggestion *s, const clg_model *model)
{
    for (size_t i = 0; i < clg_model_n_initializers(model); i++)
        suggestion_offer(s, clg_model_initializer(model, i)->name);
}

static void offer_of_nodes(suggestion *s, const clg_model *model, bool values)
{
    clg_node_info *nodes;
    size_t n;
    if (clg_model_nodes(model, &nodes, &n) != CLG_OK) return; /* the error stays without a hint */
    for (size_t i = 0; i < n; i++) {
        if (!values) suggestion_offer(s, nodes[i].name);
        for (size_t k = 0; values && k < nodes[i].n_outputs; k++)
            suggestion_offer(s, nodes[i].outputs[k]);
    }
    clg_node_list_free(nodes, n);
}

void suggestion_offer_nodes(suggestion *s, const clg_model *model)
{
    offer_of_nodes(s, model, false);
}

void suggestion_offer_values(suggestion *s, const clg_model *model)
{
    offer_of_nodes(s, model, true);
}

bool suggestion_hint(const suggestion *s)
{
    if (s->score == SIZE_MAX) return false;
    fail_hint("did you mean '%s%s'?", s->prefix, printable(s->best));
    return true;
}
