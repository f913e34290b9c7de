/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of known driver faults and differences. A row is a last resort: anything that a probe
 * or a self-test can detect is not listed.
 */
#ifndef CLG_CAPS_QUIRKS_H
#define CLG_CAPS_QUIRKS_H

#include "caps/caps.h"

typedef struct quirk_row {
    device_quirk bit;
    const char *name; /* as `cltool devices` shows it */
    bool any_family;  /* otherwise `family` must be the device's */
    platform_family family;
    bool cpu_only, software_only;
    bool x86_only; /* the workaround was checked only on x86-64 hosts */
    /* Substrings, ended by NULL, of which the device's name must contain one; NULL: any name. */
    const char *const *device_parts;
    /* A substring that the platform's name must contain; NULL: any name. */
    const char *platform_part;
    /* Versions such as "3.1": applies where from <= driver < before; NULL: no bound. */
    const char *driver_from, *driver_before;
    const char *what;   /* what the driver does */
    const char *why;    /* what the library does about it */
    const char *source; /* where it is documented or was measured */
    /* The first and last driver version with which the project saw it; NULL: it is only reported.
     * The workaround applies to the versions between the bounds above all the same: it is safe
     * without the fault, and the fault may be there. */
    const char *seen_from, *seen_to;
    /* The ctest that fails without the workaround, where the fault shows; NULL: none, the fault
     * needs hardware or luck. */
    const char *test;
} quirk_row;

extern const quirk_row quirk_rows[];
extern const size_t n_quirk_rows;

/* Returns whether a row applies to this device; caps needs family, kind and is_software. */
bool quirks_row_holds(const quirk_row *row, const device_record *record, const device_caps *caps);

/* Returns the bits of enum quirk that apply to a device whose family, kind and is_software are set
 * in caps. */
uint32_t quirks_of(const device_record *record, const device_caps *caps);

/* Returns the names of the bits, comma-separated, "" for none. Free with memory_free; NULL when
 * memory runs out. */
char *quirks_names(uint32_t bits);

/* Compares versions number by number: "3.1+debian" is after "3.0" and before "3.10". */
int quirks_compare_versions(const char *a, const char *b);

#endif
