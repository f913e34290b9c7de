/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of devices, and the choice of `auto`.
 */
#ifndef CLG_CAPS_RANKING_H
#define CLG_CAPS_RANKING_H

#include "caps/caps.h"

/* Returns a negative value when device i comes before j. A total order: never zero for two
 * different devices, and the same for any order of the platforms unless two are equal in every
 * respect. */
int ranking_compare(const device_record *records, const device_caps *caps, size_t i, size_t j);

/* Sorts indices, best first. */
void ranking_sort(const device_record *records, const device_caps *caps, size_t *indices, size_t n);

/* Sets never_auto, is_default and auto_reason of caps whose other fields are set. */
clg_status ranking_decide(const device_record *records, device_caps *caps, size_t n);

#endif
