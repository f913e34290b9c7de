/* SPDX-License-Identifier: Apache-2.0
 *
 * "did you mean": finds the known name that a misspelt word most likely stands for.
 */
#ifndef CLTOOL_SUGGESTION_H
#define CLTOOL_SUGGESTION_H

#include <clgraph/clgraph.h>

#define SUGGESTION_BYTES 256 /* longer words and names are not compared */

/* The nearest of the names that were offered for a word. */
typedef struct suggestion {
    const char *word;   /* borrowed */
    const char *prefix; /* of the names in the hint: "--" for options; "" */
    size_t score;       /* smaller is nearer; SIZE_MAX: no name is near */
    char best[SUGGESTION_BYTES];
} suggestion;

/* Returns the number of insertions, deletions, replacements and swaps of neighbouring bytes that
 * turn a into b (optimal string alignment), where upper and lower case of ASCII are equal; SIZE_MAX
 * when one has SUGGESTION_BYTES bytes or more. */
size_t edit_distance(const char *a, const char *b);

void suggestion_begin(suggestion *s, const char *word);
/* Takes the name if it is nearer than those before; equally near ones keep the first. A name is
 * near when a third of its bytes differ at most, or when it contains the word. */
void suggestion_offer(suggestion *s, const char *name);
/* Offer the names of a model's inputs, outputs, initializers, nodes, or results of nodes. */
void suggestion_offer_inputs(suggestion *s, const clg_model *model);
void suggestion_offer_outputs(suggestion *s, const clg_model *model);
void suggestion_offer_initializers(suggestion *s, const clg_model *model);
void suggestion_offer_nodes(suggestion *s, const clg_model *model);
void suggestion_offer_values(suggestion *s, const clg_model *model);
/* Adds the hint to the recorded error, and returns true; false where no name is near. */
bool suggestion_hint(const suggestion *s);

#endif
