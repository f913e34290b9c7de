/* SPDX-License-Identifier: Apache-2.0
 *
 * How many rows at a time: measured on rows of the user's.
 */
#ifndef CLTOOL_PREDICT_BATCH_H
#define CLTOOL_PREDICT_BATCH_H

#include "dataset.h"

/* The batch with which the session takes most rows a second, out of a few sizes that fit into memory; none is larger
 * than n_rows, the rows there are from first_row on. Shapes and values of inputs that the session had are undefined
 * afterwards. */
int batch_measure(clg_session *session, const clg_device_info *device, const input_set *inputs,
                  int64_t first_row, int64_t n_rows, size_t *out_batch);

#endif
