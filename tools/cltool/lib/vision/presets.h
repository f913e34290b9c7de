/* SPDX-License-Identifier: Apache-2.0
 *
 * --preset: the options for images of a family of models by one name.
 */
#ifndef CLTOOL_PRESETS_H
#define CLTOOL_PRESETS_H

#include "options.h"

/* Copies the options, with those of the preset, if there is one, where they are not given. The copy
 * borrows all memory. A name that is not in the table is a usage error. */
int preset_apply(const options *o, options *out_options);
/* Returns whether the table is requested: --preset list. */
bool presets_are_listed(const options *o);
/* Prints the table, as text or JSON. */
int presets_print(const options *o);

#endif
