/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of metamorphic tests: graphs that the project makes, and those of a folder of models
 * with test data. For each, where its batch axes are and which relations between batches hold.
 */
#ifndef CLG_TESTS_METAMORPHIC_MODELS_H
#define CLG_TESTS_METAMORPHIC_MODELS_H

#include "support/metamorphic/metamorphic_run.h"

/* Relations between batches that hold for a model, as bits. */
#define META_PERMUTED 1u /* rows of all inputs in another order: so are those of the outputs */
#define META_EXTENDED 2u /* more rows after the first: the first are the same; also in two parts */

/* The batch of a model. */
typedef struct meta_batch {
    const char *name;
    unsigned holds; /* META_PERMUTED | META_EXTENDED, or fewer */
    /* Batch axes by patterns of names (* any characters) of inputs and outputs, the first that
     * matches: "past_*=1 sr=- *=0"; - is an input that all rows share. NULL if there is no batch
     * axis. */
    const char *axes;
    const char *reason; /* why a relation does not hold; NULL if all do */
} meta_batch;

/* A model with inputs and tolerances. */
typedef struct meta_case {
    char name[64];
    clg_model *model;
    size_t n_inputs;
    clg_value *inputs[META_PORTS];
    double rtol, atol; /* of its results beside a reference */
    /* Another order of sums may take the whole tolerance: values are rounded to steps or to float16
     * between operators, or differences of large numbers are taken. */
    bool whole;
    const meta_batch *batch; /* NULL: the model is not in the table */
} meta_case;

size_t meta_own_count(void);
const char *meta_own_name(size_t which);
/* Makes graph `which` of the project and its inputs. */
clg_status meta_own_open(size_t which, meta_case *out_case);

/* Loads FOLDER/NAME/model.onnx, the largest set of inputs in FOLDER/NAME, and the tolerance of NAME
 * in FOLDER/tolerance.json, or its "default". */
clg_status meta_given_open(const char *folder, const char *name, meta_case *out_case);

void meta_case_close(meta_case *c); /* all zeros is closed */

/* Returns the batch axis of an input or output of this name; -1 if it has none. */
int meta_batch_axis(const meta_batch *batch, const char *name);

#endif
