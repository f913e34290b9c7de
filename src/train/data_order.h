/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of rows in an epoch, as a function of seed, epoch and position: no list is kept, so
 * that data of any size are shuffled, and a training goes on anywhere.
 */
#ifndef CLG_TRAIN_DATA_ORDER_H
#define CLG_TRAIN_DATA_ORDER_H

#include <stdint.h>

/* Returns which of n_rows rows is at a position of an epoch; each row is at one position. position
 * must be less than n_rows. */
uint64_t data_order_row(uint64_t seed, uint64_t epoch, uint64_t n_rows, uint64_t position);

#endif
