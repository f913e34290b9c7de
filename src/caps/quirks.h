/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of quirks: known driver faults and differences. It lists only what neither a probe of a
 * capability nor a self-test can detect. */
#ifndef CLG_CAPS_QUIRKS_H
#define CLG_CAPS_QUIRKS_H

#include "caps/caps.h"

typedef struct quirk_row {
    device_quirk bit;
    const char *name; /* as `cltool devices` shows it */
    bool any_family;  /* applies to all families; else only to `family` */
    platform_family family;
    bool cpu_only, software_only;
    bool x86_only; /* the workaround was checked only on x86-64 hosts */
    /* Substrings, ended by NULL, of which the device's name must contain one; NULL: any name. */
    const char *const *device_parts;
    /* A substring that the platform's name must contain; NULL: any name. */
    const char *platform_part;
    /* Driver versions such as "3.1": the entry applies if driver_from <= version < driver_before;
     * NULL means no bound. */
    const char *driver_from, *driver_before;
    const char *what;   /* what the driver does */
    const char *why;    /* what the library does about it */
    const char *source; /* where it is documented or was measured */
    /* The first and last driver version in which the project observed the fault; NULL: it was only
     * reported by others. */
    const char *seen_from, *seen_to;
    /* What decides on versions outside of those, one of the two. probe: what is measured, once for
     * each device and driver (ocl/probe_quirks.c); the bounds above hold until then, and where it
     * cannot be measured. Only for quirks that affect speed alone. kept: why the bounds above
     * decide instead, since the workaround does no harm without the fault. */
    const char *probe, *kept;
    /* Name of the CTest test that fails without the workaround on an affected device; NULL: none,
     * since the fault needs special hardware or occurs at random. */
    const char *test;
} quirk_row;

extern const quirk_row quirk_rows[];
extern const size_t n_quirk_rows;

/* Returns whether an entry applies to a device. Uses family, kind and is_software of caps. */
bool quirks_row_holds(const quirk_row *row, const device_record *record, const device_caps *caps);

/* Returns the bits of enum quirk that apply to a device. Uses family, kind and is_software of caps.
 */
uint32_t quirks_of(const device_record *record, const device_caps *caps);

/* Returns the bits that a probe has to decide on a device: of rows that fit it in all but the
 * driver's version, which is none of those seen. */
uint32_t quirks_undecided(const device_record *record, const device_caps *caps);
/* Returns the bits that apply after probes: `present` of those measured, `assumed` of the rest. */
uint32_t quirks_decide(uint32_t assumed, uint32_t measured, uint32_t present);

/* Returns the names of the bits, comma-separated, "" for none. Free with memory_free; NULL when
 * memory runs out. */
char *quirks_names(uint32_t bits);

/* Compares two versions by their numbers, from left to right: "3.0" < "3.1+debian" < "3.10".
 * Returns a negative, zero or positive number. */
int quirks_compare_versions(const char *a, const char *b);

#endif
