/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a model as given by options: files, images, fills, shapes.
 */
#ifndef CLTOOL_INPUTS_H
#define CLTOOL_INPUTS_H

#include "options.h"

#include <clgraph/inspect.h>

typedef enum input_need {
    INPUTS_REQUIRED, /* an input that is not given is an error */
    INPUTS_FILL,     /* it is filled with random numbers, with a note */
    INPUTS_SHAPES,   /* only shapes are needed: no values are generated */
    INPUTS_LOOK,     /* as INPUTS_SHAPES, and the caller prints the assumed free dimensions */
    INPUTS_STREAM    /* as required, and inputs with a batch are datasets, read by rows */
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
    bool owns_images; /* the names too */
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
/* Sets all inputs in the session: values, or shapes where there is no value. */
int inputs_give(const input_set *set, clg_session *session);
/* Returns the known shapes, for clg_model_flops and clg_model_memory; free(). */
clg_shape_override *inputs_shapes(const input_set *set, size_t *out_n);

/* Makes the same inputs with n rows along the batch; an error when the model fixes another
 * number. */
int inputs_with_batch(const input_set *set, size_t n, input_set *out_set);
/* Makes other values of the same shapes: floating-point inputs, and integers of two axes and more,
 * rotated. */
int inputs_varied(const input_set *set, size_t step, input_set *out_set);
/* Returns the rows along the batch; 1 when the model has none. */
size_t inputs_batch(const input_set *set);

/* Returns the size that --dim gives the batch; -1: none. */
int64_t inputs_given_batch(const input_set *set);

/* Returns the size of the first axis of all inputs: -1 any, 0 if they differ, else the fixed
 * number. */
int64_t model_batch(const clg_model *model);

/* Returns "a, b and 3 more": the names of inputs, for messages; free(). */
char *inputs_names(const clg_model *model);

#endif
