/* SPDX-License-Identifier: Apache-2.0
 *
 * The symbolic dimensions of a model's inputs, and the sizes that options and given values have for
 * them.
 */
#ifndef CLTOOL_INPUTS_SYMBOLS_H
#define CLTOOL_INPUTS_SYMBOLS_H

#include "inputs.h"

/* Returns whether dimension d of a port has a symbol. */
bool symbols_is_free(const clg_port *port, int d);
/* Returns the symbol of this name, or NULL. */
input_symbol *symbols_find(const input_set *set, const char *name);
/* Lists the symbols of all inputs in set->symbols. */
void symbols_collect(input_set *set);
/* Reads the sizes that --dim gives. */
int symbols_read(const options *o, input_set *set);
/* Sets symbols to the dimensions of a given input; an error if --dim says another size. The library
 * rejects other shapes that do not fit. */
int symbols_bind(input_set *set, const input_item *item);

#endif
