/* SPDX-License-Identifier: Apache-2.0
 *
 * A dataset: the rows of one input of a model. They are read from a file or folder in parts, never
 * as a whole, or are one row repeated.
 */
#ifndef CLTOOL_DATASET_H
#define CLTOOL_DATASET_H

#include "inputs.h"

typedef struct dataset dataset;

/* Opens a .npy file; a row is one index of its first axis. The file's dtype must fit the input's
 * (value_fit_dtype); a cast that would change a value fails when its row is read. */
int dataset_open_npy(const options *o, const clg_port *port, const char *path,
                     dataset **out_dataset);
/* Opens n columns of a .csv file, starting at column `first`; n 0: all columns. says_header: see
 * csv_open. */
int dataset_open_csv(const options *o, const clg_port *port, const char *path, size_t first,
                     size_t n, bool says_header, dataset **out_dataset);
/* Opens an IDX file (idx.h). Bytes with three axes or more are the pixels of images, converted as
 * those of image files; other elements are numbers as they are. The shape of a row is that of the
 * file or, with as many elements, of the input. */
int dataset_open_idx(const options *o, const clg_port *port, const char *path,
                     dataset **out_dataset);
/* Opens the item's images, one per row. Sets the item's free dimensions as image_begin does, from
 * the first image that can be read. Rows of images that cannot be loaded are zeros; dataset_problem
 * has the reasons. */
int dataset_open_images(const options *o, input_item *item, dataset **out_dataset);
/* Opens the classes of the images of a folder with a subfolder for each class, as int64: the order
 * of rows is that of dataset_open_images of the same folder. */
int dataset_open_classes(const options *o, const clg_port *port, const char *folder,
                         dataset **out_dataset);
/* The images that the rows of a dataset are. */
typedef struct dataset_image {
    size_t channels, height, width;
    bool is_nchw; /* [channels, height, width], else [height, width, channels] */
    char *black;  /* an element of each channel, in the input's dtype */
} dataset_image;
/* Returns the shape of the images; NULL: rows are not images. Image files and bytes of IDX files
 * are, and .npy files and numbers of IDX files with three or four axes as --layout says. */
const dataset_image *dataset_image_of(const dataset *d);
/* Creates a dataset without a fixed number of rows, each equal to `row`: a value of the input's
 * dtype whose first dimension is 1. Retains `row`. */
dataset *dataset_repeat(const clg_port *port, clg_value *row);
void dataset_free(dataset *d); /* accepts NULL */

/* Returns the number of rows; -1: any number, for a repeated row. */
int64_t dataset_rows(const dataset *d);
/* Returns the rank of all rows together as a value of the input. */
size_t dataset_rank(const dataset *d);
/* Returns the dimensions of all rows together as a value of the input; the first is the number of
 * rows. */
const int64_t *dataset_dims(const dataset *d);
/* Reads n rows, starting at row `first`, in the input's dtype. `to` has size_bytes bytes, which
 * must be the size of these rows. Ranges may be read in any order, but by one thread at a time. */
int dataset_read(dataset *d, int64_t first, size_t n, void *to, size_t size_bytes);
/* As dataset_read for n different rows in any order. */
int dataset_read_rows(dataset *d, const int64_t *rows, size_t n, void *to, size_t size_bytes);
/* Returns whether there may be rows that cannot be loaded: in datasets of images. */
bool dataset_may_fail(const dataset *d);
/* Returns why a row that was read could not be loaded; NULL: it was loaded. Any thread, while other
 * rows are read. The text is valid until the dataset is freed. */
const char *dataset_problem(const dataset *d, int64_t row);

#endif
