/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that outputs are compared with, of --expect.
 */
#ifndef CLTOOL_EXPECTATION_H
#define CLTOOL_EXPECTATION_H

#include "compare.h"

typedef struct expectation {
    const char *name, *path;
    char *name_copy;
    clg_value *want;
    comparison result;
} expectation;

/* Returns the output of a model with this name; NULL when there is none. */
const clg_port *model_output_named(const clg_model *model, const char *name);
/* Parses "NAME=FILE", or "FILE" when the model has one output, and loads the file. */
int expectation_read(const clg_model *model, const char *text, expectation *x);
void expectation_free(expectation *x);

#endif
