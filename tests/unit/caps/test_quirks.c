/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the table of driver quirks: its entries are complete and apply to the right recorded
 * devices.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/recorded/recordings.h"

#include "base/memory.h"
#include "caps/quirks.h"

#include <string.h>

TEST(quirks__rows_are_complete)
{
    assert_true(n_quirk_rows > 0);
    for (size_t i = 0; i < n_quirk_rows; i++) {
        const quirk_row *row = &quirk_rows[i];
        assert_true(row->bit != 0 && ((unsigned)row->bit & ((unsigned)row->bit - 1)) == 0);
        assert_true(*row->name && *row->what && *row->why && *row->source);
        assert_null(strpbrk(row->name, ", "));
        assert_int_equal(row->seen_from != NULL, row->seen_to != NULL);
        assert_true((row->probe != NULL) != (row->kept != NULL));
        /* What can crash or give wrong results is not left to a measurement. */
        if (row->probe)
            assert_true(row->bit == QUIRK_SLOW_DECLARATIONS || row->bit == QUIRK_COSTLY_ARGUMENTS);
        if (row->seen_from) {
            assert_true(quirks_compare_versions(row->seen_from, row->seen_to) <= 0);
            assert_true(!row->driver_from ||
                        quirks_compare_versions(row->driver_from, row->seen_from) <= 0);
            assert_true(!row->driver_before ||
                        quirks_compare_versions(row->seen_to, row->driver_before) < 0);
        }
        /* Entries have equal names exactly if they have equal bits: a name stands for one quirk. */
        for (size_t j = 0; j < i; j++)
            assert_int_equal(quirk_rows[j].bit == row->bit,
                             strcmp(quirk_rows[j].name, row->name) == 0);
    }
}

#ifdef __x86_64__
#define ON_X86 ",costly-arguments"
#else
#define ON_X86 ""
#endif

TEST(quirks__fit_the_recorded_devices)
{
    static const struct {
        const device_record *record;
        const char *names;
    } cases[] = {
        {&recorded_rtx3080, "fill-breaks-at-2gb"},
        {&recorded_h100, "fill-breaks-at-2gb"},
        {&recorded_pocl_xeon,
         "binaries-crash,global-size-recompiles,wider-launch-crashes,slow-declarations,"
         "slow-optimizer" ON_X86},
        {&recorded_pocl_ryzen,
         "binaries-crash,global-size-recompiles,wider-launch-crashes,slow-declarations,"
         "slow-optimizer" ON_X86},
        {&recorded_pocl_5900x,
         "binaries-crash,global-size-recompiles,slow-declarations,slow-optimizer" ON_X86
         ",finished-queue-used"},
        {&recorded_pocl_cuda, "binaries-crash,finished-queue-used"},
        {&recorded_llvmpipe, "binaries-crash,slow-launch"},
        {&recorded_oclgrind, "slow-launch"},
        {&recorded_warp, "slow-launch"},
        {&recorded_tahiti, "no-blas"},
        {&recorded_ivybridge, "small-arrays,no-blas"},
        {&recorded_ellesmere, ""},
        {&recorded_gfx1100, ""},
        {&recorded_uhd620, "small-arrays"},
        {&recorded_a770, "small-arrays"},
        {&recorded_intel_cpu_on_amd, ""},
        {&recorded_rusticl_navi31, "binaries-crash"},
        {&recorded_apple_m1, "no-blas"},
        {&recorded_mali, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        device_caps *caps;
        assert_ok(caps_derive(cases[i].record, 1, &caps));
        assert_string_equal(caps->quirk_names, cases[i].names);
        assert_int_equal(caps->quirks != 0, *cases[i].names != '\0');
        device_caps_free(caps, 1);
    }
}

TEST(quirks__orders_versions_by_number)
{
    static const char *const rising[] = {"",           "1.2.1", "1.3",    "1.3.1",  "3.0",
                                         "3.1+debian", "3.10",  "22.3.6", "511.65", "535.183.01"};
    size_t n = sizeof rising / sizeof *rising;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int order = quirks_compare_versions(rising[i], rising[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    assert_int_equal(quirks_compare_versions("3.1", "3.1.0"), 0);
    assert_int_equal(quirks_compare_versions("99999999999999999999", "99999999999999999999.0"), 0);
}

TEST(quirks__keeps_to_a_row_s_conditions)
{
    static const char *const parts[] = {"rtx 20", "rtx 30", NULL};
    const quirk_row any = {.bit = QUIRK_NO_BLAS, .name = "x", .any_family = true};
    device_record record = recorded_rtx3080;
    device_caps caps = {.family = PLATFORM_NVIDIA, .kind = CLG_DEVICE_DISCRETE_GPU};
    assert_true(quirks_row_holds(&any, &record, &caps));

    quirk_row row = any;
    row.any_family = false;
    row.family = PLATFORM_AMD;
    assert_false(quirks_row_holds(&row, &record, &caps));
    row.family = PLATFORM_NVIDIA;
    assert_true(quirks_row_holds(&row, &record, &caps));
    row.device_parts = parts;
    assert_true(quirks_row_holds(&row, &record, &caps));
    record.name = "NVIDIA GeForce GTX 1080";
    assert_false(quirks_row_holds(&row, &record, &caps));

    row = any;
    row.platform_part = "cuda";
    assert_true(quirks_row_holds(&row, &record, &caps));
    row.platform_part = "rusticl";
    assert_false(quirks_row_holds(&row, &record, &caps));

    row = any;
    row.cpu_only = true;
    assert_false(quirks_row_holds(&row, &record, &caps));
    row = any;
    row.software_only = true;
    assert_false(quirks_row_holds(&row, &record, &caps));
    caps.is_software = true;
    assert_true(quirks_row_holds(&row, &record, &caps));
}

TEST(quirks__keeps_to_a_range_of_drivers)
{
    const quirk_row row = {
        .name = "x", .any_family = true, .driver_from = "1.3", .driver_before = "1.3.1"};
    static const struct {
        const char *driver;
        bool holds;
    } cases[] = {{"1.2.1", false}, {"1.3", true}, {"1.3.0", true}, {"1.3.1", false}, {"2", false}};
    const device_caps caps = {.family = PLATFORM_INTEL_GPU};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char driver[16];
        device_record record = recorded_ivybridge;
        strcpy(driver, cases[i].driver);
        record.driver_version = driver;
        assert_int_equal(quirks_row_holds(&row, &record, &caps), cases[i].holds);
    }
}

/* Quirks of PoCL on a processor, by version, before any measurement and with each answer. */
TEST(quirks__probes_decide_on_versions_that_were_not_seen)
{
    const uint32_t declarations = QUIRK_SLOW_DECLARATIONS, arguments = QUIRK_COSTLY_ARGUMENTS;
#ifdef __x86_64__
    const uint32_t both = declarations | arguments;
#else
    const uint32_t both = declarations;
#endif
    const struct {
        const char *driver;
        uint32_t assumed, undecided;
    } cases[] = {
        {"3.1", both, 0}, /* seen */
        {"3.1+debian", both, 0}, {"3.0-rc2", both, 0},  {"6.0+debian", both, 0},
        {"7.1", both, 0},        {"7.1.1", both, both}, /* not seen, within the bounds */
        {"9.0", both, both},     {"1.8", 0, both},      /* outside of the bounds */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char driver[16];
        strcpy(driver, cases[i].driver);
        device_record record = recorded_pocl_xeon;
        record.driver_version = driver;
        device_caps *caps;
        assert_ok(caps_derive(&record, 1, &caps));
        const uint32_t all = caps->quirks, undecided = quirks_undecided(&record, caps);
        assert_int_equal(all & both, cases[i].assumed);
        assert_int_equal(undecided, cases[i].undecided);
        /* no answer; yes; no; an answer to one */
        assert_int_equal(quirks_decide(all, 0, 0), all);
        assert_int_equal(quirks_decide(all, undecided, undecided), all | undecided);
        assert_int_equal(quirks_decide(all, undecided, 0), all & ~undecided);
        assert_int_equal(quirks_decide(all, undecided & declarations, declarations & undecided),
                         all | (undecided & declarations));
        device_caps_free(caps, 1);
    }
}

TEST(quirks__nothing_is_measured_where_no_row_asks)
{
    const device_record *const others[] = {&recorded_rtx3080,  &recorded_llvmpipe,
                                           &recorded_uhd620,   &recorded_pocl_cuda,
                                           &recorded_oclgrind, &recorded_tahiti};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        device_caps *caps;
        assert_ok(caps_derive(others[i], 1, &caps));
        assert_int_equal(quirks_undecided(others[i], caps), 0);
        device_caps_free(caps, 1);
    }
}

static clg_status name_all(void *user)
{
    (void)user;
    char *names = quirks_names(UINT32_MAX);
    bool named = names != NULL;
    if (named) assert_non_null(strstr(names, "fill-breaks-at-2gb,binaries-crash"));
    memory_free(names);
    return named ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

TEST(quirks__survives_every_failing_allocation)
{
    assert_true(fault_loop_alone(name_all, NULL) > 0);
}
