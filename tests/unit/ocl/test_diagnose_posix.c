/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the diagnosis of missing OpenCL devices on a simulated machine: folders that mimic its
 * /sys, /dev and .icd files.
 */
#include "support/unit.h"

#include "support/scratch.h"

#include "ocl/diagnose/diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *folder(const char *name)
{
    const char *path = scratch_path(name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static void file(const char *name, const char *line)
{
    (void)scratch_file(name, line, strlen(line));
}

static void assert_says(const strbuf *report, const char *words)
{
    if (!strstr(strbuf_data(report), words))
        fail_msg("no \"%s\" in:\n%s", words, strbuf_data(report));
}

TEST(diagnose__drivers_that_do_not_load_are_named)
{
    strbuf report;
    strbuf_init(&report, 0);
    const char *vendors = folder("vendors");
    file("vendors/broken.icd", "libno-such-driver.so.1\n");
    file("vendors/empty.icd", "");
    file("vendors/works.icd", "  libm.so.6 \n");
    file("vendors/readme.txt", "libother.so");
    diagnose_drivers(&report, vendors);
    assert_says(&report, "broken.icd: 'libno-such-driver.so.1' DOES NOT LOAD");
    assert_says(&report, "empty.icd: cannot be read");
    assert_says(&report, "works.icd: 'libm.so.6' loads");
    assert_null(strstr(strbuf_data(&report), "libother"));
    strbuf_deinit(&report);

    strbuf_init(&report, 0);
    diagnose_drivers(&report, folder("no vendors"));
    assert_says(&report, "libnvidia-opencl.so.1");
    diagnose_drivers(&report, scratch_path("absent"));
    assert_says(&report, "cannot be read");
    strbuf_deinit(&report);
}

static void card(const char *address, const char *class_code, const char *vendor, const char *model)
{
    char name[128];
    (void)snprintf(name, sizeof name, "pci/%s", address);
    (void)folder(name);
    (void)snprintf(name, sizeof name, "pci/%s/class", address);
    file(name, class_code);
    (void)snprintf(name, sizeof name, "pci/%s/vendor", address);
    file(name, vendor);
    (void)snprintf(name, sizeof name, "pci/%s/device", address);
    file(name, model);
}

TEST(diagnose__cards_without_opencl_get_a_package)
{
    strbuf report;
    strbuf_init(&report, 0);
    const char *pci = folder("pci");
    card("0000:01:00.0", "0x030000\n", "0x10de\n", "0x2684\n");
    card("0000:03:00.0", "0x038000\n", "0x1002\n", "0x744c\n");
    card("0000:00:02.0", "0x030000\n", "0x8086\n", "0x9a49\n");
    card("0000:00:1f.3", "0x040300\n", "0x8086\n", "0xa0c8\n"); /* an audio device */
    char name[] = "NVIDIA GeForce RTX 4090", cpu[] = "cpu";
    const device_record records[] = {
        {.platform_index = 2,
         .device_index = 1,
         .name = name,
         .type = 4,
         .vendor_id = 0x10de,
         .has_pci = true,
         .pci_bus = 1},
        {.name = cpu, .type = 2, .vendor_id = 0x8086}, /* PoCL's CPU, which is not Intel's GPU */
    };
    diagnose_gpus(&report, pci, advice_distribution("ID=debian"), records, 2);
    assert_says(
        &report,
        "0000:01:00.0: vendor 0x10de (NVIDIA), model 0x2684: device 2:1 'NVIDIA GeForce RTX 4090'");
    assert_says(&report, "0000:03:00.0: vendor 0x1002 (AMD), model 0x744c: NO OPENCL DEVICE; "
                         "install 'rocm-opencl-icd', or 'mesa-opencl-icd' and set "
                         "RUSTICL_ENABLE=radeonsi");
    assert_says(&report, "0000:00:02.0: vendor 0x8086 (Intel), model 0x9a49: NO OPENCL DEVICE; "
                         "install 'intel-opencl-icd'");
    assert_null(strstr(strbuf_data(&report), "0000:00:1f.3"));
    strbuf_deinit(&report);

    strbuf_init(&report, 0); /* where only Mesa has a package, and where nobody has */
    diagnose_gpus(&report, pci, advice_distribution("ID=alpine"), NULL, 0);
    assert_says(&report, "(AMD), model 0x744c: NO OPENCL DEVICE; install 'mesa-rusticl' and set "
                         "RUSTICL_ENABLE=radeonsi");
    assert_says(&report, "(NVIDIA), model 0x2684: NO OPENCL DEVICE; Alpine Linux has no package");
    strbuf_deinit(&report);

    strbuf_init(&report, 0);
    diagnose_gpus(&report, scratch_path("no pci"), advice_distribution(NULL), NULL, 0);
    assert_says(&report, "none");
    strbuf_deinit(&report);
}

TEST(diagnose__device_nodes_are_listed)
{
    strbuf report;
    strbuf_init(&report, 0);
    const char *dev = folder("dev");
    (void)folder("dev/dri");
    file("dev/dri/renderD128", "");
    file("dev/nvidia0", "");
    file("dev/null2", "");
    diagnose_nodes(&report, dev);
    assert_says(&report, "renderD128: may be opened");
    assert_says(&report, "nvidia0: may be opened");
    assert_null(strstr(strbuf_data(&report), "null2"));
    strbuf_deinit(&report);

    strbuf_init(&report, 0);
    diagnose_nodes(&report, scratch_path("no dev"));
    assert_says(&report, "no GPU is passed");
    strbuf_deinit(&report);
}

TEST(diagnose__pocl_cache_is_checked)
{
    strbuf report;
    strbuf_init(&report, 0);
    assert_int_equal(setenv("POCL_CACHE_DIR", folder("pocl"), 1), 0);
    diagnose_pocl_cache(&report);
    assert_says(&report, "can be written");
    assert_int_equal(setenv("POCL_CACHE_DIR", scratch_path("pocl, absent"), 1), 0);
    diagnose_pocl_cache(&report);
    assert_says(&report, "is not there");
    assert_int_equal(unsetenv("POCL_CACHE_DIR"), 0);
    strbuf_deinit(&report);
}

TEST(diagnose__names_tried_for_the_library_are_listed_in_order)
{
    strbuf report;
    strbuf_init(&report, 0);
    static const opencl_attempts attempts = {.count = 3,
                                             .each = {{.name = "libA.so", .why = "no such file"},
                                                      {.name = "libB.so", .why = "it lacks clX"},
                                                      {.name = "/vendor/libC.so"}}};
    diagnose_library(&report, &attempts);
    assert_string_equal(strbuf_data(&report), "  'libA.so': not used: no such file\n"
                                              "  'libB.so': not used: it lacks clX\n"
                                              "  '/vendor/libC.so': in use\n");
    strbuf_deinit(&report);
}

TEST(diagnose__containers_and_wsl_get_their_advice)
{
    strbuf report;
    strbuf_init(&report, 0);
    const char *root = folder("root");
    diagnose_surroundings(&report, root);
    assert_says(&report, "none found");
    file("root/.dockerenv", "");
    (void)folder("root/proc");
    (void)folder("root/proc/sys");
    (void)folder("root/proc/sys/kernel");
    file("root/proc/sys/kernel/osrelease", "6.1.0-amd64\n");
    diagnose_surroundings(&report, root);
    assert_says(&report, "a container (Docker): ");
    assert_says(&report, "--device /dev/dri");
    assert_says(&report, "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    assert_null(strstr(strbuf_data(&report), "WSL 2"));
    file("root/proc/sys/kernel/osrelease", "5.15.90.1-Microsoft-standard-WSL2\n");
    diagnose_surroundings(&report, root);
    assert_says(&report, "WSL 2: ");
    strbuf_deinit(&report);
}

TEST(diagnose__packages_are_those_of_the_distribution)
{
    static const struct {
        const char *os_release, *title;
    } cases[] = {
        {"PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", "Debian and Ubuntu"},
        {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "Debian and Ubuntu"},
        {"NAME=Fedora\nID=fedora\n", "Fedora"},
        {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "Fedora"},
        {"ID=manjaro\nID_LIKE=arch\n", "Arch Linux"},
        {"ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", "openSUSE"},
        {"\nID=alpine\nVERSION_ID=3.22\n", "Alpine Linux"},
        {"NAME=FreeBSD\nID=freebsd\n", "FreeBSD"},
        {"ID=a-distribution-of-nobody-knows-whom-at-all-really\n", "Debian and Ubuntu"},
        {"VARIANT_ID=alpine", "Debian and Ubuntu"},
        {"", "Debian and Ubuntu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strbuf report;
        strbuf_init(&report, 0);
        file("os-release", cases[i].os_release);
        const distribution *d = diagnose_distribution(scratch_path(""));
        assert_string_equal(d->title, cases[i].title);
        diagnose_packages(&report, d);
        assert_says(&report, d->loader);
        assert_says(&report, d->cpu);
        assert_says(&report, d->mesa);
        strbuf_deinit(&report);
    }
}

TEST(diagnose__platforms_without_devices_get_a_reason)
{
    assert_non_null(strstr(advice_platform("rusticl"), "RUSTICL_ENABLE"));
    assert_non_null(strstr(advice_platform("NVIDIA CUDA"), "/dev/nvidia"));
    assert_non_null(strstr(advice_platform("Portable Computing Language"), "cache folder"));
    assert_non_null(strstr(advice_platform("of nobody"), "see below"));
}
