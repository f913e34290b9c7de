/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a model as the options give them: files, pictures, fills, shapes.
 */
#ifndef CLTOOL_INPUTS_H
#define CLTOOL_INPUTS_H

#include "options.h"

#include <clgraph/inspect.h>

typedef enum input_need {
    INPUTS_REQUIRED, /* an input that is not given is a fault */
    INPUTS_FILL,     /* it is filled with random numbers, and that is said */
    INPUTS_SHAPES,   /* only shapes are wanted: nothing is filled */
    INPUTS_LOOK,     /* the same, and the caller prints what free dimensions are taken as */
    INPUTS_STREAM    /* as required, and inputs with a batch come in rows, of datasets */
} input_need;

typedef struct input_item {
    const clg_port *port;
    const char *from; /* the file or fill, for messages; NULL: not given */
    clg_value *value; /* on the host; NULL where only the shape is known */
    size_t rank;
    int64_t dims[CLG_MAX_RANK];
    bool has_dims;
    const char **pictures; /* files, one a row */
    size_t n_pictures;
    bool owns_pictures; /* the names too */
    const char *fill;
    struct dataset *rows; /* INPUTS_STREAM: in place of a value */
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
    size_t n;
    input_symbol *symbols;
    size_t n_symbols;
} input_set;

int inputs_gather(const options *o, const clg_model *model, input_need need, input_set *out_set);
void inputs_free(input_set *set);
/* Gives all of them to the session: values, or shapes where there is no value. */
int inputs_give(const input_set *set, clg_session *session);
/* The shapes that are known, for clg_model_flops and clg_model_memory; free(). */
clg_shape_override *inputs_shapes(const input_set *set, size_t *out_n);

/* The same inputs with n rows along the batch; a fault when the model fixes another number. */
int inputs_with_batch(const input_set *set, size_t n, input_set *out_set);
/* Other values of the same shapes: floating-point inputs, and integers of two axes and more, rotated. */
int inputs_varied(const input_set *set, size_t step, input_set *out_set);
/* Rows along the batch; 1 when the model has none. */
size_t inputs_batch(const input_set *set);

/* The size that --dim gives the batch; -1: none. */
int64_t inputs_given_batch(const input_set *set);

/* The size of the first axis of all inputs: -1 any, 0 none that they share, else the number it is fixed at. */
int64_t model_batch(const clg_model *model);

/* "a, b and 3 more": the names of inputs, for messages; free(). */
char *inputs_names(const clg_model *model);

#endif
