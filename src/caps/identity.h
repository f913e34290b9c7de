/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies devices: vendor of the driver, kind, physical card, persistent id. Pure functions of
 * records.
 */
#ifndef CLG_CAPS_IDENTITY_H
#define CLG_CAPS_IDENTITY_H

#include "caps/caps.h"

platform_family identity_family(const device_record *record);

/* Returns the first word of a family's ids, "nvidia". */
const char *identity_family_word(platform_family family);

/* Returns the precedence of drivers that show the same card: 0 the vendor's own, then others,
 * Mesa's last. */
int identity_preference(platform_family family);

/* Returns whether the device is a rasteriser or simulator that computes on the CPU. */
bool identity_is_software(const device_record *record, platform_family family);
clg_device_kind identity_kind(const device_record *record, platform_family family);

/* Returns why the library cannot run on a device, as the end of a message that begins "it "; NULL
 * when it can. */
const char *identity_unusable(const device_record *record);

/* Returns whether two records are one physical card seen through two platforms: equal UUID or PCI
 * address. Devices of one platform are never the same card: partitions of a card have equal
 * addresses. */
bool identity_same_card(const device_record *a, const device_record *b);

/* Returns "id:<family word>:<address>", the address a UUID, a PCI address or, failing both, name
 * and driver. Free with memory_free; NULL when memory runs out. */
char *identity_id(const device_record *record, platform_family family);

#endif
