/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of advice, and lookups in them. Packages are named as of the distributions' current
 * releases; docs/opencl.md is generated from these tables (target docs_opencl).
 */
#include "ocl/diagnose/advice.h"

#include <stdio.h>
#include <string.h>

const distribution distributions[] = {
    {.title = "Debian and Ubuntu",
     .ids = " debian ubuntu ",
     .install = "apt install",
     .loader = "ocl-icd-libopencl1",
     .cpu = "pocl-opencl-icd",
     .nvidia = "nvidia-opencl-icd",
     .amd = "rocm-opencl-icd",
     .intel = "intel-opencl-icd",
     .mesa = "mesa-opencl-icd"},
    {.title = "Fedora",
     .ids = " fedora rhel centos ",
     .install = "dnf install",
     .loader = "ocl-icd",
     .cpu = "pocl",
     .nvidia = "xorg-x11-drv-nvidia-cuda",
     .amd = "rocm-opencl",
     .intel = "intel-compute-runtime",
     .mesa = "mesa-libOpenCL"},
    {.title = "Arch Linux",
     .ids = " arch ",
     .install = "pacman -S",
     .loader = "ocl-icd",
     .cpu = "pocl",
     .nvidia = "opencl-nvidia",
     .amd = "rocm-opencl-runtime",
     .intel = "intel-compute-runtime",
     .mesa = "opencl-mesa"},
    {.title = "openSUSE",
     .ids = " opensuse suse ",
     .install = "zypper install",
     .loader = "libOpenCL1",
     .cpu = "pocl",
     .nvidia = "nvidia-compute-G06",
     .intel = "intel-opencl",
     .mesa = "Mesa-libRusticlOpenCL"},
    {.title = "Alpine Linux",
     .ids = " alpine ",
     .install = "apk add",
     .loader = "opencl-icd-loader",
     .cpu = "pocl",
     .mesa = "mesa-rusticl"},
    {.title = "FreeBSD",
     .ids = " freebsd ",
     .install = "pkg install",
     .loader = "ocl-icd",
     .cpu = "pocl",
     .intel = "intel-compute-runtime",
     .mesa = "mesa-devel"},
};
const size_t n_distributions = sizeof distributions / sizeof *distributions;

const card_vendor card_vendors[] = {
    {0x10de, "NVIDIA", offsetof(distribution, nvidia), NULL,
     "from the same version as the kernel's driver", "libnvidia-opencl.so.1"},
    {0x1002, "AMD", offsetof(distribution, amd), "radeonsi", NULL, "libamdocl64.so"},
    {0x8086, "Intel", offsetof(distribution, intel), "iris", NULL, NULL},
    {0x1af4, "a virtual machine's", offsetof(distribution, cpu), NULL,
     "or pass a card of the host to the machine: the virtual one has no OpenCL", NULL},
};
const size_t n_card_vendors = sizeof card_vendors / sizeof *card_vendors;

const char *advice_package(const card_vendor *vendor, const distribution *d)
{
    const char *package;
    memcpy(&package, (const char *)d + vendor->package, sizeof package);
    return package;
}

#define GPUS_OF_CONTAINERS                                                                         \
    "a GPU has to be passed in: '--device /dev/dri' (AMD's ROCm: '--device /dev/kfd' too) with "   \
    "'--group-add render --group-add video'; NVIDIA's with '--gpus all -e "                        \
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility' and the NVIDIA Container Toolkit. The driver's "  \
    "package, or its .icd file in /etc/OpenCL/vendors, has to be in the container"

const surrounding surroundings[] = {
    {"a container (Docker)", ".dockerenv", NULL, GPUS_OF_CONTAINERS},
    {"a container (Podman)", "run/.containerenv", NULL, GPUS_OF_CONTAINERS},
    {"a container (Kubernetes)", "var/run/secrets/kubernetes.io", NULL,
     "a pod gets a GPU by the vendor's device plugin: 'resources: limits: nvidia.com/gpu: 1', "
     "amd.com/gpu or gpu.intel.com/i915. The driver's package has to be in the container"},
    {"WSL 2", "proc/sys/kernel/osrelease", "microsoft",
     "Windows' driver passes the GPU on as /dev/dxg, with no file in /dev/dri. Intel's OpenCL "
     "package works there; NVIDIA's does where /usr/lib/wsl/lib has libnvidia-opencl.so.1, and "
     "wants no driver in Linux; AMD's is a part of ROCm for WSL. PoCL uses the processor"},
};
const size_t n_surroundings = sizeof surroundings / sizeof *surroundings;

static const platform_advice platform_rows[] = {
    {"rusticl", "rusticl shows a device when RUSTICL_ENABLE names its driver: iris, radeonsi, "
                "nouveau, freedreno, panfrost, asahi, llvmpipe; several with commas"},
    {"Clover",
     "Clover needs a Gallium driver for a GPU of this system; in newer Mesa rusticl is in "
     "its place"},
    {"Portable Computing Language",
     "PoCL shows none when its cache folder cannot be written, see below"},
    {"NVIDIA", "NVIDIA's driver shows none when its version is not the kernel module's, or "
               "/dev/nvidia* cannot be opened; CUDA_VISIBLE_DEVICES hides cards"},
    {"AMD Accelerated Parallel Processing",
     "AMD's driver needs to open /dev/kfd and /dev/dri/renderD*: groups 'render' and 'video'"},
    {"Intel(R) OpenCL Graphics",
     "Intel's driver needs to open /dev/dri/renderD*: groups 'render' and 'video'"},
    {"", "see below what the system shows of it"},
};

const char *advice_platform(const char *platform_name)
{
    const platform_advice *row = platform_rows;
    while (!strstr(platform_name, row->part)) row++;
    return row->advice;
}

/* ---- distributions --------------------------------------------------------------------------- */

/* Finds the line `KEY=value` and returns its value's start; stores its length, without quotes. */
static const char *find_value(const char *text, const char *key, size_t *out_n)
{
    const size_t n_key = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        while (*line == '\n') line++;
        if (strncmp(line, key, n_key) != 0) continue;
        const char *value = line + n_key;
        if (*value == '"' || *value == '\'') value++;
        *out_n = strcspn(value, "\"'\r\n");
        return value;
    }
    return NULL;
}

/* Returns the row of the first word that is an id of one; NULL when there is none. */
static const distribution *of_words(const char *words, size_t n)
{
    while (n > 0) {
        char word[32]; /* " debian " */
        size_t n_word = 0;
        while (n_word < n && words[n_word] != ' ') n_word++;
        if (n_word > 0 && n_word < sizeof word - 2) {
            (void)snprintf(word, sizeof word, " %.*s ", (int)n_word, words);
            for (size_t i = 0; i < n_distributions; i++)
                if (strstr(distributions[i].ids, word)) return &distributions[i];
        }
        const size_t n_skip = n_word < n ? n_word + 1 : n;
        words += n_skip;
        n -= n_skip;
    }
    return NULL;
}

const distribution *advice_distribution(const char *os_release)
{
    static const char *const keys[] = {"ID=", "ID_LIKE="};
    for (size_t i = 0; os_release && i < sizeof keys / sizeof *keys; i++) {
        size_t n;
        const char *value = find_value(os_release, keys[i], &n);
        const distribution *d = value ? of_words(value, n) : NULL;
        if (d) return d;
    }
    return &distributions[0];
}
