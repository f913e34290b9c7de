/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of what drivers are known to do wrong or differently. A row is a last resort: what a
 * probe or a self-test can find out is not written down here.
 */
#ifndef CLG_CAPS_QUIRKS_H
#define CLG_CAPS_QUIRKS_H

#include "caps/caps.h"

typedef struct quirk_row {
    quirk bit;
    const char *name; /* what `cltool devices` shows */
    bool any_family;  /* else `family` must be the device's */
    platform_family family;
    bool cpu_only, software_only;
    const char *const
        *device_parts; /* one of them is part of the device's name; NULL: any; ends with NULL */
    const char *platform_part; /* part of the platform's name; NULL: any */
    const char *driver_from,
        *driver_before; /* versions "3.1", from <= driver < before; NULL: open */
    const char *what;   /* the driver does */
    const char *why;    /* what the library does about it */
    const char *source; /* where it is known from */
} quirk_row;

extern const quirk_row quirk_rows[];
extern const size_t n_quirk_rows;

/* Whether a row is about this device; caps needs family, kind and is_software. */
bool quirks_row_holds(const quirk_row *row, const device_record *record, const device_caps *caps);

/* Bits of enum quirk that hold for a device whose family, kind and is_software are set in caps. */
uint32_t quirks_of(const device_record *record, const device_caps *caps);

/* The names of the bits, comma-separated, "" for none. Freed by memory_free; NULL without memory.
 * */
char *quirks_names(uint32_t bits);

/* Orders versions number by number: "3.1+debian" after "3.0" and before "3.10". */
int quirks_compare_versions(const char *a, const char *b);

#endif
