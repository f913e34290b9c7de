/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the number of rows per batch by measuring with the user's rows.
 */
#ifndef CLTOOL_PREDICT_BATCH_H
#define CLTOOL_PREDICT_BATCH_H

#include "dataset.h"

/* Finds the batch with the most rows per second in the session, out of a few sizes that fit into
 * memory, up to n_rows. Runs with rows of the inputs from first_row on. Shapes and values of the
 * session's inputs are undefined afterwards. */
int batch_measure(clg_session *session, const clg_device_info *device, const input_set *inputs,
                  int64_t first_row, int64_t n_rows, size_t *out_batch);

#endif
