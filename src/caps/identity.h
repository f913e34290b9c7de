/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies devices from their records: the OpenCL implementation, the kind of device, the
 * physical card, and an id that does not change between runs. Pure functions. */
#ifndef CLG_CAPS_IDENTITY_H
#define CLG_CAPS_IDENTITY_H

#include "caps/caps.h"

platform_family identity_family(const device_record *record);

/* Returns the first word of a family's ids, "nvidia". */
const char *identity_family_word(platform_family family);

/* Returns the precedence of a driver among those that list the same card: 0 for the hardware
 * vendor's own, larger for others, largest for Mesa's. */
int identity_preference(platform_family family);

/* Returns whether the device is a rasteriser or simulator that computes on the CPU. */
bool identity_is_software(const device_record *record, platform_family family);
clg_device_kind identity_kind(const device_record *record, platform_family family);

/* Returns why the library cannot run on a device, as the end of a message that begins "it "; NULL
 * when it can. */
const char *identity_unusable(const device_record *record);

/* Returns whether two records are the same physical card, listed by two platforms: their UUIDs or
 * PCI addresses are equal. Two devices of one platform are never the same: partitions of a card
 * have equal addresses. */
bool identity_same_card(const device_record *a, const device_record *b);

/* Returns "id:<family word>:<address>", where the address is the UUID, else the PCI address, else
 * name and driver version. Free with memory_free; NULL if out of memory. */
char *identity_id(const device_record *record, platform_family family);

#endif
