/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of one input of a model: from a file or a folder that is never in memory as a whole, or made up.
 */
#ifndef CLTOOL_DATASET_H
#define CLTOOL_DATASET_H

#include "inputs.h"

typedef struct dataset dataset;

/* A .npy file; rows are steps of its first axis. Element types are held against the input's by the rules of every input
 * (value_fit_dtype), a cast that may lose something as soon as it does. */
int dataset_open_npy(const options *o, const clg_port *port, const char *path,
                     dataset **out_dataset);
/* n columns of a .csv file, from `first` on; n 0: all. */
int dataset_open_csv(const options *o, const clg_port *port, const char *path, size_t first,
                     size_t n, dataset **out_dataset);
/* The item's pictures. Its dims are decided like those of pictures in one run (image_begin). */
int dataset_open_pictures(const options *o, input_item *item, dataset **out_dataset);
/* One row, again and again: a value of the input's dtype whose first dimension is 1, which is retained. */
dataset *dataset_repeat(const clg_port *port, clg_value *row);
void dataset_free(dataset *d); /* accepts NULL */

/* Rows; -1: as many as are wanted. */
int64_t dataset_rows(const dataset *d);
/* As the input takes them, dims[0] being the number of rows. */
size_t dataset_rank(const dataset *d);
const int64_t *dataset_dims(const dataset *d);
/* Rows first..first+n in the input's dtype, in any order; size_bytes must be theirs. Not by two threads at once. */
int dataset_read(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes);

/* The pictures of a folder, by name; free() each and the list. */
int pictures_of_folder(const char *folder, const char ***out_files, size_t *out_n);

#endif
