/* SPDX-License-Identifier: Apache-2.0
 *
 * A dataset: the rows of one input of a model, from a file or a folder that is never in memory as a
 * whole, or one row repeated.
 */
#ifndef CLTOOL_DATASET_H
#define CLTOOL_DATASET_H

#include "inputs.h"

typedef struct dataset dataset;

/* Opens a .npy file; rows are steps of its first axis. The dtype is checked against the input's
 * (value_fit_dtype); a cast that changes a value fails when that row is read. */
int dataset_open_npy(const options *o, const clg_port *port, const char *path,
                     dataset **out_dataset);
/* Opens columns first..first+n of a .csv file; n 0: all columns. */
int dataset_open_csv(const options *o, const clg_port *port, const char *path, size_t first,
                     size_t n, dataset **out_dataset);
/* Opens the item's images, one per row. Sets its free dims as image_begin does. */
int dataset_open_images(const options *o, input_item *item, dataset **out_dataset);
/* Creates a dataset of any number of equal rows: a value of the input's dtype whose first dimension
 * is 1, which is retained. */
dataset *dataset_repeat(const clg_port *port, clg_value *row);
void dataset_free(dataset *d); /* accepts NULL */

/* Returns the number of rows; -1: any number. */
int64_t dataset_rows(const dataset *d);
/* Return rank and dims in the form of the input, with dims[0] the number of rows. */
size_t dataset_rank(const dataset *d);
const int64_t *dataset_dims(const dataset *d);
/* Reads rows first..first+n in the input's dtype, in any order; size_bytes must be theirs. One
 * thread at a time. */
int dataset_read(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes);

/* Lists the image files of a folder, sorted by name; free() each and the list. */
int images_of_folder(const char *folder, const char ***out_files, size_t *out_n);

#endif
