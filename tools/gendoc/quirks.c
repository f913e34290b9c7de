/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints docs/quirks.md from the library's table of quirks. `cmake --build BUILD --target
 * docs_quirks` writes the file, the test lint.quirks_doc compares it.
 */
#include "caps/quirks.h"
#include "caps/identity.h"

#include <stdio.h>

/* Prints which devices an entry of the table applies to. */
static void print_devices(const quirk_row *row)
{
    printf("%s", row->any_family ? "any" : identity_family_word(row->family));
    if (row->cpu_only) printf(", CPUs%s", row->x86_only ? " (x86-64)" : "");
    if (row->software_only) printf(", software rasterisers and simulators");
    if (row->platform_part) printf(", platform `%s`", row->platform_part);
    for (const char *const *part = row->device_parts; part && *part; part++)
        printf("%s`%s`", part == row->device_parts ? ": " : ", ", *part);
}

static void print_versions(const quirk_row *row)
{
    if (!row->driver_from && !row->driver_before) printf("all");
    if (row->driver_from) printf("from %s", row->driver_from);
    if (row->driver_before) printf("%sbefore %s", row->driver_from ? ", " : "", row->driver_before);
}

static void print_seen(const quirk_row *row)
{
    if (!row->seen_from)
        printf("not by the project");
    else if (quirks_compare_versions(row->seen_from, row->seen_to) == 0)
        printf("%s", row->seen_from);
    else
        printf("%s to %s", row->seen_from, row->seen_to);
}

int main(void)
{
    puts("<!-- Generated from src/caps/quirks.c: cmake --build build --target docs_quirks -->");
    puts("# Quirks\n");
    puts("Known faults and differences of drivers, and what the library does about each. What a");
    puts("probe of a capability or a self-test finds is not listed. `cltool devices` shows what");
    puts("applies to a device.");
    puts("");
    puts(
        "- *applies to*: driver versions that get the workaround, which is safe without the fault");
    puts("- *seen with*: driver versions with which the project saw the fault");
    puts("- *other versions*: what decides on a version with which it was not seen. A probe "
         "measures");
    puts("  once for a device and driver, and the cache keeps its answer; *applies to* holds where "
         "it");
    puts("  cannot measure. Only what affects speed has a probe");
    puts("- *test*: the ctest that fails without the workaround, on such a driver");
    puts("");
    puts("| quirk | devices | applies to | seen with | other versions | the driver | the library | "
         "test | source |");
    puts("|---|---|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < n_quirk_rows; i++) {
        const quirk_row *row = &quirk_rows[i];
        printf("| `%s` | ", row->name);
        print_devices(row);
        printf(" | ");
        print_versions(row);
        printf(" | ");
        print_seen(row);
        printf(" | %s: %s", row->probe ? "probe" : "kept", row->probe ? row->probe : row->kept);
        printf(" | %s | %s | %s%s%s | %s |\n", row->what, row->why, row->test ? "`" : "",
               row->test ? row->test : "none", row->test ? "`" : "", row->source);
    }
    return 0;
}
