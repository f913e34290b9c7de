/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which device the selector `auto` takes and why, on recorded machines and on thousands of
 * random ones. Prints the seed of the random machines; CLG_TEST_SEED sets it.
 */
#include "support/unit.h"

#include "support/recorded/recordings.h"

#include "base/memory.h"
#include "caps/identity.h"
#include "caps/ranking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TEST(ranking__gives_reasons)
{
    static const struct {
        const char *machine, *place, *reason;
    } cases[] = {
        {"nvidia", "0:0", "auto takes it: the only device"},
        {"nvidia twins", "0:0",
         "auto takes it: the best of 2, a discrete GPU with 68 compute units at 1710 MHz"},
        {"nvidia twins", "0:1", "auto prefers 0:0: equally good, and listed first"},
        {"nvidia and intel and pocl", "0:0", "auto prefers 2:0: a discrete GPU comes before a CPU"},
        {"nvidia and intel and pocl", "1:0",
         "auto prefers 2:0: a discrete GPU comes before an integrated GPU"},
        {"nvidia old driver", "0:0", "auto never takes it: it has an OpenCL older than 1.2"},
        {"nvidia old driver", "1:0", "auto takes it: the only device that it may take"},
        {"nvidia and pocl-cuda", "0:1",
         "auto never takes it: it is the same card as 1:0 (NVIDIA CUDA)"},
        {"rocm and rusticl", "0:0",
         "auto never takes it: it is the same card as 1:0 (AMD Accelerated Parallel Processing)"},
        {"intel and rusticl and pocl", "0:0",
         "auto never takes it: it is the same card as 1:0 (Intel(R) OpenCL HD Graphics)"},
        {"intel cpu and pocl", "0:0",
         "auto prefers 1:0: 16 compute units at 4673 MHz against 4 compute units at 2000 MHz "
         "(assumed)"},
        {"intel oneapi", "0:0", "auto never takes it: it is an FPGA or emulates one"},
        {"oclgrind", "0:0", "auto never takes it: it is a simulator for debugging kernels"},
        {"clover", "0:0",
         "auto never takes it: it is served by Clover, Mesa's abandoned OpenCL 1.1; rusticl or "
         "the vendor's driver shows the same card"},
        {"pocl and llvmpipe", "1:0",
         "auto never takes it: it is a software rasteriser, far slower than 0:0 (Portable "
         "Computing Language)"},
        {"llvmpipe", "0:0",
         "auto takes it as the only choice left: a software rasteriser, far slower than PoCL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        device_record *records;
        device_caps *caps;
        size_t n, at = 0;
        assert_ok(recording_records(recording_find(cases[i].machine), &records, &n));
        assert_ok(caps_derive(records, n, &caps));
        while (at < n && strcmp(caps[at].selector, cases[i].place) != 0) at++;
        assert_true(at < n);
        assert_string_equal(caps[at].auto_reason, cases[i].reason);
        device_caps_free(caps, n);
        device_records_free(records, n);
    }
}

/* Puts the devices on two platforms, and returns which of them `auto` takes: 0 for a, 1 for b. */
static size_t taken_of(const device_record *a, const device_record *b)
{
    device_record records[2] = {*a, *b};
    device_caps *caps;
    records[1].platform_index = 1;
    assert_ok(caps_derive(records, 2, &caps));
    size_t taken = caps[0].is_default ? 0 : 1;
    assert_true(caps[taken].is_default && !caps[1 - taken].is_default);
    device_caps_free(caps, 2);
    return taken;
}

TEST(ranking__goes_by_speed_then_memory)
{
    device_record a = recorded_gfx1100, b = recorded_rtx3080;
    a.compute_units = 60, a.max_clock_mhz = 1000, a.global_mem_bytes = 1;
    b.compute_units = 30, b.max_clock_mhz = 2001, b.global_mem_bytes = 1;
    assert_int_equal(taken_of(&a, &b), 1);
    b.max_clock_mhz = 1999;
    assert_int_equal(taken_of(&a, &b), 0);
    b.max_clock_mhz = 2000, b.global_mem_bytes = 2;
    assert_int_equal(taken_of(&a, &b), 1);
    assert_int_equal(taken_of(&b, &a), 0);
    a.max_clock_mhz = 0, b.max_clock_mhz = 1000; /* 0: not reported */
    assert_int_equal(taken_of(&a, &b), 0);
    a = b = recorded_adreno; /* equal except for the platform; the vendor's is not first by name */
    b.platform_name = "Portable Computing Language";
    assert_int_equal(taken_of(&a, &b), 0);
    assert_int_equal(taken_of(&b, &a), 1);
    a = recorded_gfx1100, b = recorded_rtx3080;
    a.compute_units = b.compute_units = UINT32_MAX; /* must not overflow */
    a.max_clock_mhz = UINT32_MAX, b.max_clock_mhz = UINT32_MAX - 1;
    assert_int_equal(taken_of(&a, &b), 0);
}

TEST(ranking__puts_software_last)
{
    device_record many = recorded_llvmpipe; /* llvmpipe on a large machine */
    many.compute_units = 256;
    many.max_clock_mhz = 5000;
    assert_int_equal(taken_of(&many, &recorded_pocl_xeon), 1);
    assert_int_equal(taken_of(&many, &recorded_uhd620), 1);
    device_record oddity =
        recorded_intel_fpga_emulator; /* never selected by auto, so llvmpipe is the default */
    device_record records[2] = {many, oddity};
    device_caps *caps;
    records[1].platform_index = 1;
    assert_ok(caps_derive(records, 2, &caps));
    assert_true(caps[0].is_default && caps[1].never_auto);
    device_caps_free(caps, 2);
}

TEST(ranking__separates_one_card_from_two)
{
    device_record vendor = recorded_rtx3080, mesa = recorded_rusticl_navi31;
    mesa.platform_index = 1;
    /* the same PCI address, different UUIDs */
    mesa.pci_bus = vendor.pci_bus;
    assert_true(identity_same_card(&vendor, &mesa));
    mesa.pci_domain = 1;
    assert_false(identity_same_card(&vendor, &mesa));
    mesa.pci_domain = 0, mesa.pci_device = 1;
    assert_false(identity_same_card(&vendor, &mesa));
    mesa.pci_device = 0, mesa.pci_function = 1;
    assert_false(identity_same_card(&vendor, &mesa));
    /* the same UUID, different PCI addresses */
    memcpy(mesa.uuid, vendor.uuid, sizeof mesa.uuid);
    assert_true(identity_same_card(&vendor, &mesa));
    mesa.has_uuid = false;
    assert_false(identity_same_card(&vendor, &mesa));
    /* zeros are neither an address nor a UUID */
    mesa.has_uuid = true;
    memset(mesa.uuid, 0, sizeof mesa.uuid);
    memset(vendor.uuid, 0, sizeof vendor.uuid);
    mesa.pci_domain = mesa.pci_bus = vendor.pci_bus = 0;
    assert_false(identity_same_card(&vendor, &mesa));
    /* partitions of one card, on one platform */
    vendor = recorded_h100;
    device_record partition = recorded_h100;
    partition.device_index = 1;
    partition.uuid[0] ^= 1;
    assert_false(identity_same_card(&vendor, &partition));
}

/* Checks that a CPU is not taken for a duplicate of the GPU on the same chip. */
TEST(ranking__keeps_processors_apart_from_cards)
{
    device_record records[2] = {recorded_intel_cpu, recorded_rusticl_iris};
    device_caps *caps;
    records[0].has_pci = true;
    records[0].pci_device = records[1].pci_device;
    records[1].platform_index = 1;
    assert_ok(caps_derive(records, 2, &caps));
    assert_true(!caps[0].never_auto && !caps[1].never_auto && caps[1].is_default);
    device_caps_free(caps, 2);
}

/* Checks that an unusable driver of the vendor does not exclude the card's other driver. */
TEST(ranking__takes_the_other_driver_when_the_vendor_s_is_broken)
{
    device_record records[2] = {recorded_gfx1100, recorded_rusticl_navi31};
    device_caps *caps;
    records[1].platform_index = 1;
    records[0].compiler_available = false;
    assert_ok(caps_derive(records, 2, &caps));
    assert_true(caps[0].never_auto && !caps[1].never_auto && caps[1].is_default);
    device_caps_free(caps, 2);
}

/* ---- random machines ------------------------------------------------------------------------- */

#define MAX_DEVICES 12

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 16) % n);
}

static bool same_platform(const device_record *a, const device_record *b)
{
    return strcmp(a->platform_name, b->platform_name) == 0 &&
           strcmp(a->platform_version, b->platform_version) == 0;
}

/* Makes a machine of recorded devices on up to four platforms. Addresses and speeds have few
 * different values, so that duplicates and ties occur. Returns the number of devices. */
static size_t make_machine(device_record *records)
{
    size_t n = 0;
    uint32_t n_platforms = 1 + random_below(4);
    for (uint32_t p = 0; p < n_platforms; p++) {
        const device_record *leader = recorded_devices[random_below((uint32_t)n_recorded_devices)];
        bool taken = false;
        for (size_t i = 0; i < n; i++) taken |= same_platform(leader, &records[i]);
        uint32_t n_here = taken ? 0 : 1 + random_below(3);
        for (uint32_t d = 0; d < n_here; d++) {
            device_record *r = &records[n++];
            const device_record *model;
            do {
                model = recorded_devices[random_below((uint32_t)n_recorded_devices)];
            } while (!same_platform(leader, model));
            *r = *model;
            r->platform_index = (int)p;
            r->device_index = (int)d;
            r->pci_bus = random_below(4);
            if (r->has_uuid && random_below(2) > 0)
                memset(r->uuid, (int)random_below(3), sizeof r->uuid);
            r->compute_units = random_below(3);
            r->max_clock_mhz = random_below(3) * 1000;
            r->global_mem_bytes = random_below(2);
            r->unified_memory = random_below(2) > 0;
            r->compiler_available = random_below(8) > 0;
            r->available = random_below(8) > 0;
        }
    }
    return n;
}

/* Checks the invariants that hold on every machine. Returns the index of the default device, or n
 * when there is none. */
static size_t check_machine(const device_record *records, device_caps *caps, size_t n)
{
    device_choice *choices;
    size_t best = n, n_choices;
    for (size_t i = 0; i < n; i++) {
        assert_true(caps[i].auto_reason && *caps[i].auto_reason);
        if (caps[i].is_default) {
            assert_int_equal(best, n);
            best = i;
        }
        for (size_t j = 0; j < n; j++) {
            int order = ranking_compare(records, caps, i, j);
            assert_true(i == j ? order == 0 : order != 0);
            assert_true((order < 0) == (ranking_compare(records, caps, j, i) > 0));
            if (i != j) assert_string_not_equal(caps[i].id, caps[j].id);
        }
    }
    clg_status status = caps_select(records, caps, n, "auto", NULL, &choices, &n_choices);
    assert_int_equal(status, best < n ? CLG_OK : CLG_ERROR_NO_DEVICE);
    if (best < n) {
        assert_int_equal(n_choices, 1);
        assert_int_equal(choices[0].index, best);
        assert_false(caps[best].never_auto);
    }
    memory_free(choices);
    static const char *const words[] = {"all", "gpu", "cpu"};
    for (size_t w = 0; w < 3; w++) {
        status = caps_select(records, caps, n, words[w], NULL, &choices, &n_choices);
        assert_true(status == CLG_OK || status == CLG_ERROR_NO_DEVICE);
        for (size_t i = 0; i < n_choices; i++) {
            const device_caps *chosen = &caps[choices[i].index];
            assert_false(chosen->never_auto);
            if (w == 1) assert_true(!chosen->is_software && chosen->kind != CLG_DEVICE_CPU);
            for (size_t j = 0; j < i; j++)
                assert_false(
                    identity_same_card(&records[choices[i].index], &records[choices[j].index]));
        }
        memory_free(choices);
    }
    return best;
}

/* Copies the machine with its platforms in another order. */
static void permute_platforms(const device_record *records, size_t n, device_record *out)
{
    int order[4] = {0, 1, 2, 3};
    size_t n_out = 0;
    for (int i = 3; i > 0; i--) {
        int j = (int)random_below((uint32_t)i + 1), moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
    for (int p = 0; p < 4; p++)
        for (size_t i = 0; i < n; i++)
            if (records[i].platform_index == order[p]) {
                out[n_out] = records[i];
                out[n_out++].platform_index = p;
            }
    assert_int_equal(n_out, n);
}

TEST(ranking__holds_on_any_machine)
{
    const char *given = getenv("CLG_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    size_t n_taken = 0;
    print_message("CLG_TEST_SEED=%llu\n", (unsigned long long)seed);
    random_state = seed * 0x9e3779b97f4a7c15u | 1;
    for (int round = 0; round < 4000; round++) {
        device_record records[MAX_DEVICES], permuted[MAX_DEVICES];
        device_caps *caps, *permuted_caps;
        size_t n = make_machine(records);
        permute_platforms(records, n, permuted);
        assert_ok(caps_derive(records, n, &caps));
        assert_ok(caps_derive(permuted, n, &permuted_caps));
        size_t a = check_machine(records, caps, n), b = check_machine(permuted, permuted_caps, n);
        assert_int_equal(a == n, b == n);
        if (a < n) {
            n_taken++;
            assert_ptr_equal(records[a].name, permuted[b].name);
            assert_ptr_equal(records[a].platform_name, permuted[b].platform_name);
            assert_int_equal(records[a].device_index, permuted[b].device_index);
        }
        device_caps_free(caps, n);
        device_caps_free(permuted_caps, n);
    }
    assert_true(n_taken > 2000);
}
