/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the batch size by measuring throughput on rows of the dataset.
 */
#ifndef CLTOOL_PREDICT_BATCH_H
#define CLTOOL_PREDICT_BATCH_H

#include "dataset.h"

/* Finds the batch size with the most rows per second in the session, among a few sizes of up to
 * n_rows that fit into memory. Runs with rows of the inputs, starting at first_row. Afterwards,
 * shapes and values of the session's inputs are undefined. */
int batch_measure(clg_session *session, const clg_device_info *device, const input_set *inputs,
                  int64_t first_row, int64_t n_rows, size_t *out_batch);

#endif
