/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of classes: what a score output is, its largest elements, and the names of classes.
 */
#ifndef CLTOOL_SCORES_H
#define CLTOOL_SCORES_H

#include "failure.h"

/* Names of classes, one a line of a file. All zeros is valid and empty. */
typedef struct label_list {
    char **items;
    size_t count;
    const char *path; /* borrowed */
} label_list;

/* Reads the file; path NULL gives an empty list. */
int labels_read(const char *path, label_list *out_labels);
void labels_free(label_list *labels);
/* Returns the name of a class; "" when there is none. */
const char *label_at(const label_list *labels, int64_t i);
/* Checks that there are as many labels as classes, unless there are no labels. The message names
 * both numbers and the output. */
int labels_check(const label_list *labels, const char *output, size_t n_classes);

/* Returns the classes of a score output: one vector of classes per row, so that the first axis
 * counts rows, and only one of the other axes is longer than 1; a tensor of one axis is one row.
 * Elements are floating-point, or of 8 bits as quantised scores are. Returns 0 for another tensor,
 * and in *out_why what is wrong, to be freed with free(). */
size_t score_classes(clg_dtype dtype, size_t rank, const int64_t *dims, char **out_why);
/* A search for score outputs among the outputs of a run. All zeros is a new one. */
typedef struct score_search {
    size_t n_found;
    char *problem; /* of the first output that is none */
} score_search;

/* Returns the classes of an output; 0 if it is not a score output. */
size_t score_search_add(score_search *search, const char *name, const clg_value *output);
/* Ends the search, and returns `code`, or an error if there is no score output. Outputs that are
 * none beside score outputs get a note. */
int score_search_end(score_search *search, int code);
/* Returns the number of rows that are ranked separately: the first dimension, or 1 for a tensor of
 * rank 0 or 1. */
size_t score_rows(const clg_value *scores);

typedef struct ranked {
    double value;
    int64_t index;
} ranked;

/* Returns the elements of a row with their indices, in descending order; equal ones by index. NaN
 * is replaced by -infinity. *out_n is their number. The caller frees them with free(). */
ranked *rank_row(const clg_value *scores, size_t row, size_t *out_n);

#endif
