/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements identity.h. A driver is identified by its platform's name and vendor, not by the
 * device's: PoCL reports Intel's vendor id on an AMD processor, and Intel's CPU runtime the name of
 * the AMD processor that it runs on. See decision 4.
 */
#include "caps/identity.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "caps/words.h"

#include <string.h>

/* Bits of CL_DEVICE_TYPE. */
#define TYPE_CPU ((uint64_t)1 << 1)
#define TYPE_GPU ((uint64_t)1 << 2)

#define ID_SLUG_BYTES 40

typedef struct family_row {
    const char *word;
    int preference;
} family_row;

static const family_row families[] = {
    [PLATFORM_OTHER] = {"other", 1},       [PLATFORM_NVIDIA] = {"nvidia", 0},
    [PLATFORM_AMD] = {"amd", 0},           [PLATFORM_INTEL_GPU] = {"intel", 0},
    [PLATFORM_INTEL_CPU] = {"intel", 0},   [PLATFORM_INTEL_FPGA] = {"fpga", 0},
    [PLATFORM_APPLE] = {"apple", 0},       [PLATFORM_POCL] = {"pocl", 2},
    [PLATFORM_RUSTICL] = {"rusticl", 3},   [PLATFORM_CLOVER] = {"clover", 4},
    [PLATFORM_OCLGRIND] = {"oclgrind", 5}, [PLATFORM_ARM] = {"arm", 0},
    [PLATFORM_QUALCOMM] = {"qualcomm", 0},
};

const char *identity_family_word(platform_family family) { return families[family].word; }

int identity_preference(platform_family family) { return families[family].preference; }

platform_family identity_family(const device_record *record)
{
    const char *name = record->platform_name, *vendor = record->platform_vendor;
    /* Implementations that run on other vendors' hardware come first: their platform names may
     * mention that vendor. */
    if (words_contain(name, "portable computing language") || words_contain(vendor, "pocl"))
        return PLATFORM_POCL;
    if (words_contain(name, "oclgrind")) return PLATFORM_OCLGRIND;
    if (words_contain(name, "clover")) return PLATFORM_CLOVER;
    if (words_contain(name, "rusticl") || words_start(vendor, "mesa")) return PLATFORM_RUSTICL;
    if (words_contain(name, "nvidia") || words_contain(vendor, "nvidia")) return PLATFORM_NVIDIA;
    if (words_start(name, "amd ") || words_contain(vendor, "advanced micro devices"))
        return PLATFORM_AMD;
    if (words_contain(vendor, "apple")) return PLATFORM_APPLE;
    if (words_contain(vendor, "qualcomm")) return PLATFORM_QUALCOMM;
    if (words_equal(vendor, "arm", 3) || words_start(vendor, "arm ") || words_start(name, "arm "))
        return PLATFORM_ARM;
    if (words_start(vendor, "intel")) {
        if (words_contain(name, "fpga")) return PLATFORM_INTEL_FPGA;
        /* Older drivers for Windows list the CPU and the GPU on one platform. */
        return record->type & TYPE_GPU ? PLATFORM_INTEL_GPU : PLATFORM_INTEL_CPU;
    }
    return PLATFORM_OTHER;
}

bool identity_is_software(const device_record *record, platform_family family)
{
    static const char *const names[] = {"llvmpipe", "lavapipe",    "softpipe",
                                        "swrast",   "swiftshader", "basic render driver"};
    if (family == PLATFORM_OCLGRIND) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (words_contain(record->name, names[i])) return true;
    return false;
}

/* Returns whether the device is an AMD integrated GPU. Unified memory is not enough to tell: ROCm
 * reports it only if it is coherent with the CPU, which recent ones are not, and some versions of
 * Mesa do not report it. */
static bool is_amd_apu(const device_record *record)
{
    static const char *const chips[] = {"gfx902",  "gfx909",    "gfx90c",  "gfx1013",   "gfx1033",
                                        "gfx1035", "gfx1036",   "gfx1037", "gfx1103",   "gfx1150",
                                        "gfx1151", "gfx1152",   "gfx1153", "raven",     "renoir",
                                        "vangogh", "rembrandt", "raphael", "phoenix",   "stoney",
                                        "carrizo", "kaveri",    "kabini",  "mendocino", "picasso"};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (words_contain(record->name, chips[i])) return true;
    return false;
}

clg_device_kind identity_kind(const device_record *record, platform_family family)
{
    if (identity_is_software(record, family)) return CLG_DEVICE_CPU;
    if (record->type & TYPE_GPU) {
        bool integrated =
            record->unified_memory || family == PLATFORM_ARM || family == PLATFORM_QUALCOMM ||
            ((family == PLATFORM_AMD || family == PLATFORM_RUSTICL || family == PLATFORM_CLOVER) &&
             is_amd_apu(record));
        return integrated ? CLG_DEVICE_INTEGRATED_GPU : CLG_DEVICE_DISCRETE_GPU;
    }
    return record->type & TYPE_CPU ? CLG_DEVICE_CPU : CLG_DEVICE_ACCELERATOR;
}

/* Returns 10 * major + minor for the first "<major>.<minor>" of a string such as "OpenCL C 1.1
 * Mesa"; 0 if there is none. Callers accept a driver whose version cannot be parsed. */
static int version_of(const char *said)
{
    for (const char *c = said; *c; c++)
        if (c[0] >= '0' && c[0] <= '9' && c[1] == '.' && c[2] >= '0' && c[2] <= '9')
            return (c[0] - '0') * 10 + (c[2] - '0');
    return 0;
}

const char *identity_unusable(const device_record *record)
{
    int api = version_of(record->version), language = version_of(record->opencl_c_version);
    if (!record->available) return "is reported as unavailable by its driver";
    if (!record->compiler_available) return "has no compiler for kernels";
    if (!record->little_endian)
        return "is big-endian, and clgraph is written for little-endian devices";
    if ((api != 0 && api < 12) || (language != 0 && language < 12))
        return "has an OpenCL older than 1.2";
    /* The embedded profile has 64-bit integers only as an extension; kernels need them for indices.
     */
    if (words_start(record->profile, "embedded") &&
        !words_contain(record->extensions, "cles_khr_int64"))
        return "has an embedded profile without 64-bit integers";
    return NULL;
}

static bool has_uuid(const device_record *record)
{
    static const uint8_t zeros[sizeof record->uuid];
    return record->has_uuid && memcmp(record->uuid, zeros, sizeof zeros) != 0;
}

static bool has_pci(const device_record *record)
{
    return record->has_pci && (record->pci_bus | record->pci_device | record->pci_function) != 0;
}

bool identity_same_card(const device_record *a, const device_record *b)
{
    if (a->platform_index == b->platform_index) return false;
    if (has_uuid(a) && has_uuid(b) && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0) return true;
    return has_pci(a) && has_pci(b) && a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus &&
           a->pci_device == b->pci_device && a->pci_function == b->pci_function;
}

/* Appends a name, with each run of characters other than letters and digits replaced by a dash. */
static void append_slug(strbuf *t, const char *name)
{
    char slug[ID_SLUG_BYTES];
    size_t n = 0;
    for (const char *c = name; *c && n < sizeof slug; c++) {
        char lower = words_lower(*c);
        if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9'))
            slug[n++] = lower;
        else if (n > 0 && slug[n - 1] != '-')
            slug[n++] = '-';
    }
    while (n > 0 && slug[n - 1] == '-') n--;
    strbuf_append_bytes(t, slug, n);
}

char *identity_id(const device_record *record, platform_family family)
{
    strbuf t;
    char *id = NULL;
    strbuf_init(&t, 0);
    strbuf_printf(&t, "id:%s:", identity_family_word(family));
    if (has_uuid(record)) {
        for (size_t i = 0; i < sizeof record->uuid; i++)
            strbuf_printf(&t, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                          record->uuid[i]);
    } else if (has_pci(record)) {
        strbuf_printf(&t, "%04x:%02x:%02x.%x", record->pci_domain, record->pci_bus,
                      record->pci_device, record->pci_function);
    } else {
        uint64_t hash = hash_bytes(record->driver_version, strlen(record->driver_version),
                                   hash_string(record->name));
        append_slug(&t, record->name);
        strbuf_printf(&t, "-%08x", (unsigned)(hash >> 32));
    }
    if (strbuf_take(&t, &id) != CLG_OK) strbuf_deinit(&t);
    return id;
}
