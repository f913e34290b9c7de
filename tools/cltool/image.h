/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures as tensors.
 */
#ifndef CLTOOL_IMAGE_H
#define CLTOOL_IMAGE_H

#include "inputs.h"

/* Loads the item's pictures into its value. dims of the item: -1 where the picture may decide. */
int image_load(const options *o, input_item *item);

#endif
