/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of classes in a loss, from a file.
 */
#ifndef CLTOOL_CLASS_WEIGHTS_H
#define CLTOOL_CLASS_WEIGHTS_H

#include "failure.h"

#include <stddef.h>

/* Reads the numbers of a .npy file of floats of rank 1, or of a .csv file with one column or one
 * row. *out_weights: free(). */
int class_weights_read(const char *path, float **out_weights, size_t *out_n);

#endif
