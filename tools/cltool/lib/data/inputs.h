/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a model as options specify them: files, images, fills, shapes.
 */
#ifndef CLTOOL_INPUTS_H
#define CLTOOL_INPUTS_H

#include "options.h"

#include <clgraph/inspect.h>

typedef enum input_need {
    INPUTS_REQUIRED, /* an input that is not given is an error */
    INPUTS_FILL,     /* it is filled with random values, with a note */
    INPUTS_SHAPES,   /* only shapes are needed: no values are generated */
    INPUTS_LOOK,     /* as INPUTS_SHAPES, and the caller prints the assumed free dimensions */
    INPUTS_STREAM    /* as INPUTS_REQUIRED, and inputs with a batch are datasets, read by rows */
} input_need;

typedef struct input_item {
    const clg_port *port;
    const char *from; /* the file or fill, for messages; NULL: not given */
    clg_value *value; /* on the host; NULL where only the shape is known */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
    bool has_dims;
    const char **images; /* files, one per row */
    size_t n_images;
    bool owns_images; /* the names and the list are freed */
    const char *fill;
    struct dataset *rows; /* INPUTS_STREAM: instead of a value */
} input_item;

/* A free dimension with a name. */
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

int inputs_gather(const options *o, const clg_model *model, input_need need, input_set *out_set);
void inputs_free(input_set *set);
/* Sets all inputs in the session: their values, or their shapes where there is no value. */
int inputs_give(const input_set *set, clg_session *session);
/* Returns the known shapes, for clg_model_flops and clg_model_memory; free(). */
clg_shape_override *inputs_shapes(const input_set *set, size_t *out_n);

/* Copies the inputs with n rows along the batch, by repeating rows; an error when the model fixes
 * another number. */
int inputs_with_batch(const input_set *set, size_t n, input_set *out_set);
/* Copies the inputs, with the elements of floating-point inputs, and of integers of rank 2 or more,
 * rotated by `step`. */
int inputs_varied(const input_set *set, size_t step, input_set *out_set);
/* Returns the number of rows along the batch; 1 when the model has no batch. */
size_t inputs_batch(const input_set *set);

/* Returns the size that --dim gives the batch; -1: none. */
int64_t inputs_given_batch(const input_set *set);

/* Returns the first dimension of all inputs: -1 if it is free, 0 if they differ, else the fixed
 * size. */
int64_t model_batch(const clg_model *model);

/* Returns "a, b and 3 more": the names of inputs, for messages; free(). */
char *inputs_names(const clg_model *model);

#endif
