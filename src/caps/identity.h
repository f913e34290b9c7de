/* SPDX-License-Identifier: Apache-2.0
 *
 * Who a device is: whose driver, which kind, which physical card, under which lasting name. Pure
 * functions of records.
 */
#ifndef CLG_CAPS_IDENTITY_H
#define CLG_CAPS_IDENTITY_H

#include "caps/caps.h"

platform_family identity_family(const device_record *record);

/* The first word of a family's ids, "nvidia". */
const char *identity_family_word(platform_family family);

/* Whose driver comes first when two show the same card: 0 the vendor's own, then others, Mesa's
 * last. */
int identity_preference(platform_family family);

/* A rasteriser or simulator that computes on the CPU. */
bool identity_is_software(const device_record *record, platform_family family);
clg_device_kind identity_kind(const device_record *record, platform_family family);

/* What keeps the library from running on a device, as the end of a sentence that begins "it "; NULL
 * when nothing does. */
const char *identity_unusable(const device_record *record);

/* One physical card seen through two platforms: equal UUID or PCI address. Devices of one platform
 * are never the same card: partitions of a card have equal addresses. */
bool identity_same_card(const device_record *a, const device_record *b);

/* "id:<family word>:<address>", the address a UUID, a PCI address or, failing both, name and
 * driver. Freed by memory_free; NULL without memory. */
char *identity_id(const device_record *record, platform_family family);

#endif
