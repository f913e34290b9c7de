/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests device selectors on recorded machines. Expected results are text: "1:0" is device 0 of
 * platform 1; "!words" is an error whose message contains the words.
 */
#include "support/unit.h"

#include "support/fakes/failing_alloc.h"
#include "support/recorded/recordings.h"

#include "base/memory.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

typedef struct selector_case {
    const char *machine, *selector, *expected, *fallback;
} selector_case;

static const selector_case cases[] = {
    /* auto takes a discrete GPU, else an integrated GPU, else a CPU */
    {"nvidia", "auto", "0:0", NULL},
    {"nvidia", NULL, "0:0", NULL},
    {"nvidia", "AUTO", "0:0", NULL},
    {"nvidia", " auto ", "0:0", NULL},
    {"nvidia laptop with amd", "auto", "0:0", NULL},
    {"nvidia and intel and pocl", "auto", "2:0", NULL},
    {"nvidia and intel and pocl", "auto#1", "1:0", NULL},
    {"nvidia and intel and pocl", "auto#2", "0:0", NULL},
    {"nvidia and intel and pocl", "auto#3", "!'auto#3' is out of range: 'auto' matches 3 devices",
     NULL},
    {"rocm apu and card", "auto", "0:1", NULL},
    {"rocm apu and pocl", "auto", "1:0", NULL},
    {"rusticl apu and card", "auto", "0:1", NULL},
    {"intel oneapi", "auto", "2:1", NULL},
    {"intel laptop", "auto", "1:0", NULL},
    {"apple intel", "auto", "0:2", NULL},
    {"apple silicon", "auto", "0:0", NULL},
    {"mali", "auto", "0:0", NULL},
    {"adreno", "auto", "0:0", NULL},
    {"beignet", "auto", "0:0", NULL},
    {"amd legacy", "auto", "0:0", NULL},
    {"intel cpu and pocl", "auto", "1:0", NULL},
    /* parts of a CPU */
    {"intel cpu and pocl", "cpu/1", "1:0/1", NULL},
    {"intel cpu and pocl", "cpu#0/0,cpu#0/1,cpu#0/0", "1:0/0 1:0/1", NULL},
    {"intel cpu and pocl", "1:0/12, 1:0", "1:0/12 1:0", NULL},
    {"intel cpu and pocl", "cpu#7/0", "!no device matches 'cpu#7/0'", NULL},
    {"intel cpu and pocl", "cpu/", "!no device matches 'cpu/'", NULL},
    {"nvidia", "gpu#0/1", "!'gpu#0/1' is out of reach: 'gpu#0' is no CPU", NULL},
    /* one card through two platforms counts once, the vendor's driver first */
    {"rocm and rusticl", "auto", "1:0", NULL},
    {"rocm and rusticl", "gpu#1", "0:1", NULL},
    {"rocm and rusticl", "gpu#2", "!'gpu#2' is out of range: 'gpu' matches 2 devices", NULL},
    {"intel and rusticl and pocl", "auto", "1:0", NULL},
    {"nvidia and pocl-cuda", "auto", "1:0", NULL},
    {"pocl-cuda", "auto", "0:1", NULL},
    {"clover and rusticl and pocl", "auto", "1:0", NULL},
    /* devices that auto never takes, or takes last */
    {"nvidia old driver", "auto", "1:0", NULL},
    {"intel fpga and cpu", "auto", "1:0", NULL},
    {"pocl and llvmpipe", "auto", "0:0", NULL},
    {"oclgrind and pocl", "auto", "1:0", NULL},
    {"oclgrind", "auto",
     "!no device matches 'auto'; there is: 0:0 Oclgrind Simulator (Oclgrind): auto never takes it: "
     "it is "
     "a simulator",
     NULL},
    {"clover", "auto", "!abandoned", NULL},
    {"llvmpipe", "auto", "0:0", NULL},
    {"windows without drivers", "auto", "0:0", NULL},
    {"windows with a processor's driver", "auto", "1:0", NULL},
    {"nothing", "auto",
     "!no device matches 'auto'; no OpenCL platform of this machine has a device", NULL},
    /* gpu and cpu */
    {"nvidia twins", "gpu", "0:0", NULL},
    {"nvidia twins", "gpu#1", "0:1", NULL},
    {"nvidia h100", "GPU#3", "0:3", NULL},
    {"nvidia and intel and pocl", "gpu", "2:0", NULL},
    {"nvidia and intel and pocl", "gpu#1", "1:0", NULL},
    {"nvidia and intel and pocl", "gpu #1", "1:0", NULL},
    {"nvidia and intel and pocl", "cpu", "0:0", NULL},
    {"nvidia", "cpu",
     "!no device matches 'cpu'; there is: 0:0 NVIDIA GeForce RTX 3080 (NVIDIA CUDA)", NULL},
    {"pocl on amd", "gpu", "!no device matches 'gpu'", NULL},
    {"pocl and llvmpipe", "gpu", "!no device matches 'gpu'", NULL},
    {"pocl and llvmpipe", "cpu", "0:0", NULL},
    {"pocl and llvmpipe", "cpu#1",
     "!'cpu#1' is out of range: 'cpu' matches 1 device, counted from 0", NULL},
    {"llvmpipe", "gpu", "!no device matches 'gpu'", NULL},
    {"oclgrind", "gpu", "!no device matches 'gpu'", NULL},
    {"clover", "gpu", "!no device matches 'gpu'", NULL},
    {"pocl twice", "cpu#1", "0:1", NULL},
    {"nvidia laptop with amd", "cpu", "2:0", NULL},
    /* all: each GPU once, best first; the CPU, once, only when there is no GPU */
    {"nvidia twins", "all", "0:0 0:1", NULL},
    {"nvidia and intel and pocl", "all", "2:0 1:0", NULL},
    {"nvidia and intel and pocl", "ALL", "2:0 1:0", NULL},
    {"nvidia and intel and pocl", "all#1", "1:0", NULL},
    {"rocm and rusticl", "all", "1:0 0:1", NULL},
    {"intel oneapi", "all", "2:1 2:0", NULL},
    {"pocl on intel", "all", "0:0", NULL},
    {"pocl twice", "all", "0:0", NULL},
    {"intel cpu and pocl", "all", "1:0", NULL},
    {"pocl and llvmpipe", "all", "0:0", NULL},
    {"clover and rusticl and pocl", "all", "1:0", NULL},
    {"oclgrind", "all", "!no device matches 'all'", NULL},
    /* vendors of platforms; a CPU is not found by the vendor of the processor */
    {"nvidia twins", "nvidia", "0:0", NULL},
    {"nvidia twins", "nvidia#0", "0:0", NULL},
    {"nvidia twins", "nvidia#1", "0:1", NULL},
    {"nvidia twins", "NVIDIA#1", "0:1", NULL},
    {"nvidia twins", "nvidia#2",
     "!'nvidia#2' is out of range: 'nvidia' matches 2 devices, counted from 0", NULL},
    {"nvidia twins", "nvidia#99999999999999999999", "!is out of range", NULL},
    {"nvidia twins", "amd", "!no platform of the vendor 'amd' has a device; there is: 0:0 NVIDIA",
     NULL},
    {"pocl on amd", "amd", "!no platform of the vendor 'amd'", NULL},
    {"pocl on amd", "intel", "!no platform of the vendor 'intel'", NULL},
    {"pocl on amd", "pocl", "0:0", NULL},
    {"pocl on amd", "amd ryzen", "0:0", NULL},
    {"intel cpu", "amd", "!no platform of the vendor 'amd'", NULL},
    {"intel cpu", "intel", "0:0", NULL},
    {"intel oneapi", "intel", "2:1", NULL},
    {"intel oneapi", "intel#1", "2:0", NULL},
    {"intel oneapi", "intel#2", "1:0", NULL},
    {"intel oneapi", "intel#3", "0:0", NULL},
    {"rocm and rusticl", "amd", "1:0", NULL},
    {"rocm and rusticl", "mesa", "0:1", NULL}, /* 0:0 is a duplicate of ROCm's card */
    {"rocm and rusticl", "mesa#1", "0:0", NULL},
    {"clover and rusticl and pocl", "mesa", "1:0", NULL},
    {"clover and rusticl and pocl", "mesa#1", "0:0", NULL},
    {"clover", "mesa", "0:0", NULL},
    {"clover", "amd", "!no platform of the vendor 'amd'", NULL},
    {"apple intel", "amd", "!no platform of the vendor 'amd'", NULL},
    {"apple intel", "radeon", "0:2", NULL},
    {"pocl-cuda", "pocl", "0:1", NULL},
    {"pocl-cuda", "nvidia", "!no platform of the vendor 'nvidia'", NULL},
    {"pocl-cuda", "nvidia geforce", "0:1", NULL},
    {"nvidia and pocl-cuda", "pocl", "0:0", NULL},
    {"nvidia and pocl-cuda", "pocl#1", "0:1", NULL},
    {"beignet", "intel", "0:0", NULL},
    /* indices of platform and device */
    {"nvidia and intel and pocl", "0:0", "0:0", NULL},
    {"nvidia and intel and pocl", "1:0", "1:0", NULL},
    {"nvidia beside empty clover", "1:0", "1:0", NULL},
    {"nvidia beside empty clover", "0:0", "!there is no device '0:0'; there is: 1:0 NVIDIA", NULL},
    {"nvidia", "0:1", "!there is no device '0:1'", NULL},
    {"nvidia", "7:0", "!there is no device '7:0'", NULL},
    {"nvidia", "99999999999999999999:0", "!there is no device", NULL},
    {"nvidia", "-1:0", "!no device matches '-1:0'", NULL},
    {"nvidia", "0:", "!no device matches '0:'", NULL},
    {"oclgrind", "0:0", "0:0", NULL},
    {"nvidia old driver", "0:0", "0:0", NULL},
    {"pocl and llvmpipe", "1:0", "1:0", NULL},
    /* ids */
    {"nvidia", "id:nvidia:5c119a3e-07d2-4b6f-9120-8e331f64aa01", "0:0", NULL},
    {"nvidia twins", "ID:NVIDIA:5C119A3E-07D2-4B6F-9120-8E331F64AA02", "0:1", NULL},
    {"nvidia twins", "id:5c119a3e-07d2-4b6f-9120-8e331f64aa02", "0:1", NULL},
    {"rocm and rusticl", "id:amd:0000:03:00.0", "1:0", NULL},
    {"rocm and rusticl", "id:0000:03:00.0", "1:0", NULL},
    {"rocm and rusticl", "id:rusticl:00000000-0300-0000-0000-000000000000", "0:0", NULL},
    {"rocm and rusticl", "id:0000:04:00.0", "!no device matches 'id:0000:04:00.0'", NULL},
    {"pocl twice", "id:", "!no device matches 'id:'", NULL},
    /* names of devices, boards and platforms: whole names match before parts */
    {"nvidia", "rtx 3080", "0:0", NULL},
    {"nvidia", "3080", "0:0", NULL},
    {"nvidia", "CUDA", "0:0", NULL},
    {"nvidia", "4090",
     "!no device matches '4090'; there is: 0:0 NVIDIA GeForce RTX 3080 (NVIDIA CUDA)", NULL},
    {"nvidia 3080 and 3080 ti", "3080", "0:1", NULL},
    {"nvidia 3080 and 3080 ti", "nvidia geforce rtx 3080", "0:0", NULL},
    {"nvidia 3080 and 3080 ti", "NVIDIA GeForce RTX 3080#1", "!matches 1 device", NULL},
    {"rocm", "7900", "0:0", NULL},
    {"rocm", "gfx1100", "0:0", NULL},
    {"rocm", "AMD Radeon RX 7900 XTX", "0:0", NULL},
    {"rocm", "rx 6800", "!gfx1100, AMD Radeon RX 7900 XTX (AMD Accelerated Parallel Processing)",
     NULL},
    {"rocm and rusticl", "7900", "1:0", NULL},
    {"rocm and rusticl", "rusticl", "0:1", NULL},
    {"rocm and rusticl", "7900#1", "0:0", NULL},
    {"intel oneapi", "arc", "2:1", NULL},
    {"intel oneapi", "uhd", "2:0", NULL},
    {"intel oneapi", "fpga", "0:0", NULL},
    {"intel oneapi", "Intel(R) OpenCL", "1:0",
     NULL}, /* the whole name of one platform, and a part of another's */
    {"intel oneapi", "Intel(R) OpenCL Graphics", "2:1", NULL},
    {"intel oneapi", "Intel(R) OpenCL#1",
     "!'Intel(R) OpenCL#1' is out of range: 'Intel(R) OpenCL' matches 1", NULL},
    {"oclgrind", "oclgrind", "0:0", NULL},
    {"clover", "clover", "0:0", NULL},
    {"llvmpipe", "llvmpipe", "0:0", NULL},
    {"pocl and llvmpipe", "llvmpipe", "1:0", NULL},
    {"pocl twice", "xeon", "0:0", NULL},
    {"pocl twice", "xeon#1", "0:1", NULL},
    {"pocl twice", "portable#1", "0:1", NULL},
    {"adreno", "snapdragon", "0:0", NULL},
    {"apple silicon", "m1", "0:0", NULL},
    /* commas: whole names match before commas separate a list */
    {"names with commas", "Intel(R) Core(TM) i7, foo", "0:0", NULL},
    {"names with commas", "Intel(R) Core(TM) i7, foo,nvidia", "0:0 1:0", NULL},
    {"names with commas", "nvidia,Intel(R) Core(TM) i7, foo", "1:0 0:0", NULL},
    {"names with commas", "Intel(R) Core(TM) i7, foo, bar#1", "0:0", NULL}, /* the whole name */
    {"names with commas", "Intel(R) Core(TM) i7, foo#0", "0:0", NULL},
    {"names with commas", "Intel(R) Core(TM) i7, foo#1", "!is out of range", NULL},
    {"names with commas", "Intel(R) Core(TM) i9, foo", "!no device matches 'Intel(R) Core(TM) i9'",
     NULL},
    {"rusticl apu and card", "(radeonsi, navi31, LLVM 17.0.6, DRM 3.57, 6.9.7)", "0:1", NULL},
    {"rusticl apu and card", "radeonsi, navi31", "0:1", NULL},
    {"rusticl apu and card", "radeonsi, raphael_mendocino", "0:0", NULL},
    {"rusticl apu and card", "radeonsi, navi31,0:0", "0:1 0:0", NULL},
    {"rusticl apu and card", "0:0,radeonsi, navi31,0:0", "0:0 0:1", NULL},
    /* lists */
    {"nvidia and intel and pocl", "cpu,gpu", "0:0 2:0", NULL},
    {"nvidia and intel and pocl", "1:0,0:0,2:0", "1:0 0:0 2:0", NULL},
    {"nvidia and intel and pocl", "nvidia, intel , pocl", "2:0 1:0 0:0", NULL},
    {"nvidia and intel and pocl", "nvidia,2:0,gpu,auto,3080", "2:0", NULL},
    {"nvidia and intel and pocl", "cpu,all", "0:0 2:0 1:0", NULL},
    {"nvidia and intel and pocl", "nvidia,amd", "!no platform of the vendor 'amd'", NULL},
    {"nvidia and intel and pocl", "nvidia,", "!an empty word selects no device", NULL},
    {"nvidia and intel and pocl", ",", "!an empty word", NULL},
    {"nvidia and intel and pocl", "", "!an empty word", NULL},
    {"nvidia and intel and pocl", "   ", "!an empty word", NULL},
    {"nvidia and intel and pocl", "gpu,,cpu", "!an empty word", NULL},
    {"pocl twice", "0:0,0:1", "0:0 0:1", NULL},
    {"pocl twice", "cpu#0,cpu#1", "0:0 0:1", NULL},
    {"nvidia twins", "nvidia#1,nvidia#0,nvidia#1", "0:1 0:0", NULL},
    {"nvidia", "#0", "!no device matches '#0'", NULL},
    {"nvidia", "nvidia#", "!no device matches 'nvidia#'", NULL},
    {"nvidia", "nvidia#x", "!no device matches 'nvidia#x'", NULL},
    {"nvidia", "nvidia#-1", "!no device matches 'nvidia#-1'", NULL},
    {"nvidia", "gpux", "!no device matches 'gpux'", NULL},
    /* fallback */
    {"pocl on amd", "gpu", "0:0", "cpu"},
    {"pocl on amd", "nvidia#3", "0:0", "auto"},
    {"pocl on amd", "gpu",
     "!no device matches 'gpu', and the fallback does not match: no platform of the vendor "
     "'nvidia' "
     "has",
     "nvidia"},
    {"nvidia", "gpu", "0:0", "cpu"},
    {"nvidia and intel and pocl", "gpu,amd", "0:0 1:0", "cpu,intel"},
};

typedef struct machine {
    device_record *records;
    device_caps *caps;
    size_t n;
} machine;

static void machine_open(const char *name, machine *m)
{
    const recording *r = recording_find(name);
    if (!r) fail_msg("there is no recording '%s'", name);
    assert_ok(recording_records(r, &m->records, &m->n));
    assert_ok(caps_derive(m->records, m->n, &m->caps));
}

static void machine_close(machine *m)
{
    device_caps_free(m->caps, m->n);
    device_records_free(m->records, m->n);
}

/* Appends the selection as text: "0:0 1:0", or "!" and the error message. */
static void select_text(const machine *m, const char *selector, const char *fallback, strbuf *t)
{
    device_choice *choices;
    size_t n;
    clg_status status = caps_select(m->records, m->caps, m->n, selector, fallback, &choices, &n);
    if (status != CLG_OK) {
        assert_int_equal(status, CLG_ERROR_NO_DEVICE);
        assert_null(choices);
        assert_int_equal(n, 0);
        assert_true(*error_hint_text());
        strbuf_printf(t, "!%s", error_text());
        return;
    }
    for (size_t i = 0; i < n; i++) {
        strbuf_printf(t, "%s%s", i > 0 ? " " : "", m->caps[choices[i].index].selector);
        if (choices[i].part != DEVICE_WHOLE) strbuf_printf(t, "/%d", (int)choices[i].part);
    }
    memory_free(choices);
}

static bool fits(const char *expected, const char *got)
{
    return *expected == '!' ? *got == '!' && strstr(got, expected + 1) != NULL
                            : strcmp(expected, got) == 0;
}

TEST(selector__means_what_the_table_says)
{
    size_t n_wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const selector_case *c = &cases[i];
        machine m;
        strbuf got;
        machine_open(c->machine, &m);
        strbuf_init(&got, 0);
        select_text(&m, c->selector, c->fallback, &got);
        if (!fits(c->expected, strbuf_data(&got))) {
            n_wrong++;
            print_error("%s, '%s': expected %s, got %s\n", c->machine,
                        c->selector ? c->selector : "(null)", c->expected, strbuf_data(&got));
        }
        strbuf_deinit(&got);
        machine_close(&m);
    }
    print_message("%zu selectors\n", sizeof cases / sizeof *cases);
    assert_int_equal(n_wrong, 0);
}

/* Checks on every machine that PLATFORM:DEVICE and the id, in lower or upper case, select exactly
 * that device, and that ids are unique. */
TEST(selector__finds_every_device_by_place_and_id)
{
    for (size_t r = 0; r < n_recordings; r++) {
        machine m;
        machine_open(recordings[r].name, &m);
        for (size_t i = 0; i < m.n; i++) {
            char shouted[200];
            size_t length = strlen(m.caps[i].id);
            assert_true(length < sizeof shouted && !strpbrk(m.caps[i].id, ", #"));
            for (size_t k = 0; k <= length; k++) {
                char c = m.caps[i].id[k];
                shouted[k] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
            }
            const char *selectors[] = {m.caps[i].selector, m.caps[i].id, shouted};
            for (size_t s = 0; s < 3; s++) {
                device_choice *choices;
                size_t n;
                assert_ok(caps_select(m.records, m.caps, m.n, selectors[s], NULL, &choices, &n));
                assert_int_equal(n, 1);
                assert_int_equal(choices[0].index, i);
                memory_free(choices);
            }
            for (size_t j = 0; j < i; j++) assert_string_not_equal(m.caps[i].id, m.caps[j].id);
        }
        machine_close(&m);
    }
}

/* Checks that random text is either rejected or selects existing devices, each once. */
TEST(selector__survives_any_text)
{
    static const char alphabet[] = "0123:#/,, ()idgpuallcpuautonvidiamesa\t\xc3\xa9%s";
    uint32_t x = 2463534242u;
    machine m;
    machine_open("rocm and rusticl", &m);
    for (size_t round = 0; round < 20000; round++) {
        char selector[24];
        size_t length = 0;
        for (; length < sizeof selector - 1; length++) {
            x ^= x << 13, x ^= x >> 17, x ^= x << 5;
            if (x % 16 == 0) break;
            selector[length] = alphabet[(x >> 8) % (sizeof alphabet - 1)];
        }
        selector[length] = '\0';
        device_choice *choices;
        size_t n;
        clg_status status = caps_select(m.records, m.caps, m.n, selector, NULL, &choices, &n);
        assert_true(status == CLG_OK ? n >= 1 && n <= m.n + 12
                                     : status == CLG_ERROR_NO_DEVICE && n == 0);
        for (size_t i = 0; i < n; i++) {
            assert_true(choices[i].index < m.n);
            for (size_t j = 0; j < i; j++)
                assert_true(choices[i].index != choices[j].index ||
                            choices[i].part != choices[j].part);
        }
        memory_free(choices);
    }
    machine_close(&m);
}

TEST(selector__bounds_lists_and_quotes)
{
    machine m;
    device_choice *choices;
    size_t n;
    char longest[4096];
    machine_open("nvidia", &m);
    memset(longest, ',', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_error(caps_select(m.records, m.caps, m.n, longest, NULL, &choices, &n),
                 CLG_ERROR_NO_DEVICE, "more than 64 items");
    memset(longest, 'x', sizeof longest - 1);
    assert_error(caps_select(m.records, m.caps, m.n, longest, NULL, &choices, &n),
                 CLG_ERROR_NO_DEVICE, "there is: 0:0");
    assert_true(strlen(error_text()) < 400);
    machine_close(&m);
}

/* Checks that the message about a machine with very many devices names some and counts the others.
 */
TEST(selector__lists_many_devices_in_short)
{
    enum { N = 30 };
    device_record records[N];
    device_caps *caps;
    device_choice *choices;
    size_t n;
    for (int i = 0; i < N; i++) {
        records[i] = recorded_h100;
        records[i].device_index = i;
        records[i].uuid[0] = (uint8_t)i;
    }
    assert_ok(caps_derive(records, N, &caps));
    assert_error(caps_select(records, caps, N, "amd", NULL, &choices, &n), CLG_ERROR_NO_DEVICE,
                 "; and 6 more");
    assert_ok(caps_select(records, caps, N, "all", NULL, &choices, &n));
    assert_int_equal(n, N);
    memory_free(choices);
    device_caps_free(caps, N);
}

static clg_status select_on_a_machine(void *user)
{
    const selector_case *c = user;
    device_record *records = NULL;
    device_caps *caps = NULL;
    device_choice *choices = NULL;
    size_t n = 0, n_choices;
    clg_status status = recording_records(recording_find(c->machine), &records, &n);
    if (status == CLG_OK) status = caps_derive(records, n, &caps);
    if (status == CLG_OK) {
        status = caps_select(records, caps, n, c->selector, c->fallback, &choices, &n_choices);
        if (*c->expected == '!' && status == CLG_ERROR_NO_DEVICE) status = CLG_OK;
    }
    memory_free(choices);
    device_caps_free(caps, n);
    device_records_free(records, n);
    return status;
}

TEST(selector__survives_every_failing_allocation)
{
    selector_case faulty[] = {
        {"nvidia and intel and pocl", "all", "2:0 1:0", NULL},
        {"rocm and rusticl", "radeonsi, navi31,0:1", "0:0 0:1", NULL},
        {"oclgrind", "auto", "!", NULL},
        {"pocl twice", "nvidia", "0:0", "cpu"},
        {"intel oneapi", "nvidia", "!", "amd"},
    };
    failing_alloc_install();
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++)
        assert_true(fault_loop(select_on_a_machine, &faulty[i]) > 15);
    failing_alloc_remove();
}
