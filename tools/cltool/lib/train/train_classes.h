/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of a training: folders of images with a subfolder for each class, and checks of targets
 * and of rows before they are trained with.
 */
#ifndef CLTOOL_TRAIN_CLASSES_H
#define CLTOOL_TRAIN_CLASSES_H

#include "dataset.h"

#include <clgraph/train.h>

/* Returns the folder with classes among items "[NAME=]PATH", borrowed; NULL: there is none. */
const char *train_classes_folder(const text_list *items);
/* Gets the names of a folder's classes, one a line, in the order of their numbers; free(), also
 * after a failure. A name that is not one line is an error. */
int train_classes_read(const char *folder, char **out_text);

/* What rows must hold. */
typedef struct train_checks {
    const char *target; /* name of the input with class numbers; NULL: the loss takes none */
    int64_t n_classes;  /* 0: not known, or not a loss of classes */
    bool has_ignore_index;
    int64_t ignore_index;
} train_checks;
/* Derives the checks from the loss: classes are along axis 1 of the model's output `output`; NULL:
 * of the only one. target: the name of the input that was added for targets, or NULL. */
train_checks train_checks_of(const clg_model *model, const clg_loss_options *loss,
                             const char *target);
/* Checks the elements of one row of an input: no NaN, and classes that the model has. A failure
 * names file and row. */
int train_check_row(const train_checks *c, const input_item *item, int64_t row, const void *data,
                    size_t size_bytes);
/* Checks all rows of a target of one class a row. */
int train_check_targets(const train_checks *c, const input_set *inputs);

#endif
