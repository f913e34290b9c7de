/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks devices, and chooses the device that the selector `auto` means.
 */
#ifndef CLG_CAPS_RANKING_H
#define CLG_CAPS_RANKING_H

#include "caps/caps.h"

/* Returns a negative value if device i ranks before device j. This is a total order: the result is
 * never 0 for two different devices. It does not depend on the order of platforms, except for
 * devices with equal properties. */
int ranking_compare(const device_record *records, const device_caps *caps, size_t i, size_t j);

/* Sorts indices, best first. */
void ranking_sort(const device_record *records, const device_caps *caps, size_t *indices, size_t n);

/* Sets never_auto, is_default and auto_reason of caps whose other fields are set. */
clg_status ranking_decide(const device_record *records, device_caps *caps, size_t n);

#endif
