/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a model as the options specify them: from files, from images, or filled with
 * generated values.
 */
#ifndef CLTOOL_INPUTS_H
#define CLTOOL_INPUTS_H

#include "options.h"

#include <clgraph/inspect.h>

typedef enum input_need {
    INPUTS_REQUIRED, /* an input that is not given is an error */
    INPUTS_FILL,     /* an input that is not given is filled with random values, with a note */
    INPUTS_SHAPES,   /* only shapes are needed: no values are generated */
    INPUTS_LOOK,     /* as INPUTS_SHAPES, and the caller prints the assumed free dimensions */
    INPUTS_STREAM    /* as INPUTS_REQUIRED, and inputs with a batch are datasets, read by rows */
} input_need;

typedef struct input_item {
    const clg_port *port;
    const char *from; /* source of the value, for messages: a file or a fill; NULL: none */
    clg_value *value; /* on the host; NULL where only the shape is known */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
    bool has_dims;       /* rank and dims are set; a dimension of -1 is not determined yet */
    const char **images; /* paths of image files, one per row */
    size_t n_images;
    struct image_folder *folder; /* that has the list of images; NULL: the item has it */
    struct image_place *places;  /* of the images in the value, one per row; NULL: not known */
    const char *fill;
    struct dataset *rows; /* with INPUTS_STREAM, in place of a value */
} input_item;

/* A named free dimension; dimensions with the same name have the same size. */
typedef struct input_symbol {
    const char *name; /* the model's */
    int64_t size;     /* -1: not known yet */
    bool is_given;    /* by --dim */
} input_symbol;

typedef struct input_set {
    const clg_model *model;
    input_need need;
    input_item *items; /* in the model's order */
    size_t count;
    input_symbol *symbols;
    size_t n_symbols;
} input_set;

/* Gathers the inputs of a model from the options. `need` tells what inputs must have a value. */
int inputs_gather(const options *o, const clg_model *model, input_need need, input_set *out_set);
void inputs_free(input_set *set);
/* Sets all inputs in the session: their values, or their shapes where there is no value. */
int inputs_give(const input_set *set, clg_session *session);
/* Returns the known shapes, for clg_model_flops and clg_model_memory; the caller frees them with
 * free(). */
clg_shape_override *inputs_shapes(const input_set *set, size_t *out_n);

/* Copies the inputs with n rows in each batch axis, by repeating rows. An error when the model
 * fixes another number of rows. */
int inputs_with_batch(const input_set *set, size_t n, input_set *out_set);
/* Copies the inputs, and rotates by `step` the elements of those that are floating-point, or
 * integers of rank 2 or more. */
int inputs_varied(const input_set *set, size_t step, input_set *out_set);
/* Returns the number of rows of the batch; 1 when the model has no batch. */
size_t inputs_batch(const input_set *set);

/* Returns the batch size that --dim gives; -1: none. */
int64_t inputs_given_batch(const input_set *set);

/* Returns the first dimension that all inputs share: its fixed size, -1 if it is free, 0 if inputs
 * differ in it. */
int64_t model_batch(const clg_model *model);

/* Returns the names of the inputs for messages, as "a, b and 3 more"; the caller frees it with
 * free(). */
char *inputs_names(const clg_model *model);

#endif
