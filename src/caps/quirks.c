/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of quirks (known faults of drivers, which the library works around), and the functions
 * that find the entries for a device. To add a quirk, add a bit to device_quirk (caps.h), an entry
 * here with the fields of quirk_row, what measures it in ocl/probe_quirks.c if anything does, and a
 * case in tests/unit/caps/test_quirks.c. docs/quirks.md is generated from the table (target
 * docs_quirks).
 */
#include "caps/quirks.h"

#include "base/memory.h"
#include "base/strbuf.h"
#include "caps/words.h"

#include <string.h>

#ifdef __x86_64__
#define IS_X86 true
#else
#define IS_X86 false
#endif

static const char *const southern_islands[] = {"tahiti", "pitcairn", "capeverde",
                                               "oland",  "hainan",   NULL};
static const char *const ivy_bridge[] = {"ivybridge", NULL};
static const char *const apple_m1[] = {"apple m1", NULL};

const quirk_row quirk_rows[] = {
    {.bit = QUIRK_FILL_BREAKS_AT_2GB,
     .name = "fill-breaks-at-2gb",
     .family = PLATFORM_NVIDIA,
     .what = "clEnqueueFillBuffer of 2^31 bytes or more hangs or damages the queue",
     .why = "fill in pieces",
     .kept = "a probe would hang the queue; filling in pieces costs nothing",
     .source = "https://github.com/inducer/pyopencl/issues/395"},
    {.bit = QUIRK_BINARIES_CRASH,
     .name = "binaries-crash",
     .family = PLATFORM_POCL,
     .what = "a damaged program binary aborts the process, a truncated one is a segmentation fault",
     .why = "check our own checksum before the driver sees a byte",
     .kept = "a probe would end the process; the checksum costs nothing",
     .source = "measured with PoCL 3.1",
     .seen_from = "3.1",
     .seen_to = "3.1",
     .test = "api.ocl_programs"},
    {.bit = QUIRK_BINARIES_CRASH,
     .name = "binaries-crash",
     .family = PLATFORM_RUSTICL,
     .what = "a program binary of another driver aborts the process",
     .why = "check our own checksum before the driver sees a byte",
     .kept = "a probe would end the process; the checksum costs nothing",
     .source = "measured with Mesa 22.3",
     .seen_from = "22.3",
     .seen_to = "22.3"},
    {.bit = QUIRK_GLOBAL_SIZE_RECOMPILES,
     .name = "global-size-recompiles",
     .family = PLATFORM_POCL,
     .cpu_only = true,
     .what =
         "a dimension of 65,536 work-items or more, or a global offset, compiles the kernel again",
     .why = "stay below with loops over the grid, and use no offset",
     .kept = "the bit also says that local sizes compile a kernel again, each of which is "
             "tried in the compile helper: a measurement that errs would leave out trials",
     .source = "measured with PoCL 3.1; grid_width_specialization_limit in PoCL's sources",
     .seen_from = "3.1",
     .seen_to = "3.1"},
    {.bit = QUIRK_WIDER_LAUNCH_CRASHES,
     .name = "wider-launch-crashes",
     .family = PLATFORM_POCL,
     .cpu_only = true,
     .driver_before = "4",
     .what =
         "a kernel that starts with a larger grid than ever, while another queue runs it, aborts "
         "the process",
     .why = "launches that are new to the driver run while no other queue is at work",
     .kept = "a probe would end the process; from 4 on the driver returns entries by address "
             "(decision 15), and 6.0 and 7.1 did not show it",
     .source = "measured with PoCL 3.1; pocl_release_dlhandle_cache in PoCL's sources",
     .seen_from = "3.1",
     .seen_to = "3.1",
     .test = "unit.launch_guard"},
    {.bit = QUIRK_SLOW_DECLARATIONS,
     .name = "slow-declarations",
     .family = PLATFORM_POCL,
     .cpu_only = true,
     .driver_from = "3",
     .what = "reading the declarations of all built-in functions takes 0.15 s for each program",
     .why = "declare those that kernels call, and leave out the driver's",
     .probe = "a build with the driver's declarations takes twice as long as with ours, "
              "and 20 ms longer; and ours pass a test",
     .source =
         "measured with PoCL 3.0, 3.1, 6.0 and 7.1 (LLVM 14, 15, 18, 21); _clang_opencl.h among "
         "PoCL's files",
     .seen_from = "3.0",
     .seen_to = "7.1"},
    {.bit = QUIRK_SLOW_OPTIMIZER,
     .name = "slow-optimizer",
     .family = PLATFORM_POCL,
     .cpu_only = true,
     .driver_from = "3",
     .driver_before = "7",
     .what = "optimising takes half to two thirds of a build's time",
     .why = "build new kernels without optimisation first, and optimise them in the background",
     .kept = "a measurement would take as long as it saves",
     .source = "measured with PoCL 3.1 and 6.0 (LLVM 15, 18), with the same results; PoCL 7.1 sums "
               "some rows wrongly without optimisation",
     .seen_from = "3.1",
     .seen_to = "6.0"},
    {.bit = QUIRK_COSTLY_ARGUMENTS,
     .name = "costly-arguments",
     .family = PLATFORM_POCL,
     .cpu_only = true,
     .x86_only = true,
     .driver_from = "3",
     .what = "a launch copies each argument to its own memory, which another thread frees: "
             "0.1 us for each",
     .why = "pack all scalar arguments into one struct",
     .probe = "a launch with 31 more arguments takes 20 ns longer for each, and half as "
              "long again",
     .source = "measured with PoCL 3.0, 3.1, 6.0 and 7.1; pocl_kernel_copy_args in PoCL's sources",
     .seen_from = "3.0",
     .seen_to = "7.1"},
    {.bit = QUIRK_FINISHED_QUEUE_USED,
     .name = "finished-queue-used",
     .family = PLATFORM_POCL,
     .driver_from = "4",
     .what = "a queue that is released soon after clFinish, or after a blocking transfer, may be "
             "freed before the driver's thread has notified the waiting one: the process aborts",
     .why = "wait for events, which notifies nobody of the queue",
     .kept = "a probe would end the process, and in few runs; to wait for events costs "
             "nothing",
     .source = "measured with PoCL 6.0; the end of pocl_update_event_finished in PoCL's sources",
     .seen_from = "6.0",
     .seen_to = "6.0",
     .test = "faults.session_faults"},
    {.bit = QUIRK_SLOW_LAUNCH,
     .name = "slow-launch",
     .any_family = true,
     .software_only = true,
     .what = "a launch takes tens of milliseconds",
     .why = "no tuning, short measurements",
     .kept = "simulators may launch fast and compute slowly, and only measurements are "
             "cut short",
     .source = "measured with llvmpipe of Mesa 22.3",
     .seen_from = "22.3",
     .seen_to = "22.3"},
    {.bit = QUIRK_SMALL_ARRAYS,
     .name = "small-arrays",
     .family = PLATFORM_INTEL_GPU,
     .what = "arrays of more than 32 elements per work-item are in memory, not in registers",
     .why = "GEMMs keep 4 x 4 results per work-item, never 8 x 8",
     .kept = "a device may be busy while two GEMMs are compared; cltool tune compares "
             "implementations",
     .source = "measured with libigc1 1.0.12504 for Gen9, Gen12 and Arc; docs/portability.md"},
    {.bit = QUIRK_NO_BLAS,
     .name = "no-blas",
     .family = PLATFORM_AMD,
     .device_parts = southern_islands,
     .what = "CLBlast gives wrong results unless it was built with a workaround for these chips",
     .why = "use our kernels",
     .kept = "results are wrong for some sizes only, which a probe may miss",
     .source = "https://github.com/CNugteren/CLBlast/issues/301"},
    {.bit = QUIRK_NO_BLAS,
     .name = "no-blas",
     .family = PLATFORM_INTEL_GPU,
     .device_parts = ivy_bridge,
     .platform_part = "gen ocl driver",
     .driver_from = "1.3",
     .what = "CLBlast's own tests fail with the Beignet driver after 1.2.1",
     .why = "use our kernels",
     .kept = "results are wrong for some sizes only, which a probe may miss",
     .source = "https://github.com/CNugteren/CLBlast/issues/231"},
    {.bit = QUIRK_NO_BLAS,
     .name = "no-blas",
     .family = PLATFORM_APPLE,
     .device_parts = apple_m1,
     .what = "CLBlast before 1.6.3 gives wrong results for square GEMMs of 1152 and more",
     .why = "use our kernels: CLBlast does not report its version",
     .kept = "results are wrong for some sizes only, which a probe may miss",
     .source = "https://github.com/CNugteren/CLBlast/issues/542"},
};
const size_t n_quirk_rows = sizeof quirk_rows / sizeof *quirk_rows;

/* Parses a decimal number, and skips it and the character after it; 0 at the end of the string. */
static unsigned long next_number(const char **at)
{
    unsigned long value = 0;
    while (**at && (**at < '0' || **at > '9')) ++*at;
    for (; **at >= '0' && **at <= '9'; ++*at)
        value = value < 100000000 ? value * 10 + (unsigned long)(**at - '0') : value;
    return value;
}

int quirks_compare_versions(const char *a, const char *b)
{
    while (*a || *b) {
        unsigned long x = next_number(&a), y = next_number(&b);
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

static bool has_part(const char *name, const char *const *parts)
{
    for (; *parts; parts++)
        if (words_contain(name, *parts)) return true;
    return false;
}

/* Returns whether a row fits a device, whatever the driver's version. */
static bool fits(const quirk_row *row, const device_record *record, const device_caps *caps)
{
    if (!row->any_family && row->family != caps->family) return false;
    if ((row->cpu_only && caps->kind != CLG_DEVICE_CPU) ||
        (row->software_only && !caps->is_software) || (row->x86_only && !IS_X86))
        return false;
    if (row->device_parts && !has_part(record->name, row->device_parts)) return false;
    return !row->platform_part || words_contain(record->platform_name, row->platform_part);
}

static bool was_seen(const quirk_row *row, const device_record *record)
{
    return row->seen_from && quirks_compare_versions(record->driver_version, row->seen_from) >= 0 &&
           quirks_compare_versions(record->driver_version, row->seen_to) <= 0;
}

bool quirks_row_holds(const quirk_row *row, const device_record *record, const device_caps *caps)
{
    if (!fits(row, record, caps)) return false;
    if (row->driver_from && quirks_compare_versions(record->driver_version, row->driver_from) < 0)
        return false;
    return !row->driver_before ||
           quirks_compare_versions(record->driver_version, row->driver_before) < 0;
}

uint32_t quirks_of(const device_record *record, const device_caps *caps)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n_quirk_rows; i++)
        if (quirks_row_holds(&quirk_rows[i], record, caps)) bits |= (uint32_t)quirk_rows[i].bit;
    return bits;
}

uint32_t quirks_undecided(const device_record *record, const device_caps *caps)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n_quirk_rows; i++) {
        const quirk_row *row = &quirk_rows[i];
        if (row->probe && fits(row, record, caps) && !was_seen(row, record))
            bits |= (uint32_t)row->bit;
    }
    return bits;
}

uint32_t quirks_decide(uint32_t assumed, uint32_t measured, uint32_t present)
{
    return (assumed & ~measured) | (present & measured);
}

char *quirks_names(uint32_t bits)
{
    strbuf t;
    char *names = NULL;
    strbuf_init(&t, 0);
    for (size_t i = 0; i < n_quirk_rows; i++) {
        uint32_t bit = (uint32_t)quirk_rows[i].bit;
        if (bits & bit) strbuf_printf(&t, "%s%s", t.size_bytes > 0 ? "," : "", quirk_rows[i].name);
        bits &= ~bit; /* a quirk may have several entries */
    }
    if (strbuf_take(&t, &names) != CLG_OK) strbuf_deinit(&t);
    return names;
}
