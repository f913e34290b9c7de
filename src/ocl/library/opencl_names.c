/* SPDX-License-Identifier: Apache-2.0
 *
 * The names under which systems have their OpenCL library. An application's own loader, which the
 * process has loaded already, goes before all of them (cl_api.c).
 */
#include "ocl/library/opencl_names.h"

#include <stdint.h>
#include <string.h>

/* The loader's file name is enough where it is installed as packages do. The rest is for loaders
 * outside of the search path, and for boards whose Mali driver is the library itself. */
static const char *const linux_names[] = {
    "libOpenCL.so.1",
    "libOpenCL.so", /* without a version, as of old drivers */
    "/usr/local/lib/libOpenCL.so.1",
    "/usr/lib64/libOpenCL.so.1",
    "/opt/rocm/lib/libOpenCL.so.1",
    "/usr/local/cuda/lib64/libOpenCL.so.1",
    "/opt/intel/oneapi/compiler/latest/lib/libOpenCL.so.1",
    "libmali.so.1",
    "libmali.so",
    NULL,
};

/* An app may open a vendor's library by its name if the manifest declares it, and the vendor lists
 * it as public; Pixel phones and cars have names of their own. The paths serve programs outside of
 * an app, and systems before Android 7. Mali's and PowerVR's drivers are the library themselves. */
#define ANDROID_NAMES(lib)                                                                         \
    "libOpenCL.so", "libOpenCL-pixel.so", "libOpenCL-car.so", "libGLES_mali.so", "libmali.so",     \
        "libPVROCL.so", "/system/vendor/" lib "/libOpenCL.so", "/vendor/" lib "/libOpenCL.so",     \
        "/system/" lib "/libOpenCL.so", "/system/vendor/" lib "/egl/libGLES_mali.so",              \
        "/vendor/" lib "/egl/libGLES_mali.so", "/system/" lib "/egl/libGLES_mali.so",              \
        "/system/vendor/" lib "/libPVROCL.so", "/vendor/" lib "/libPVROCL.so", NULL

static const char *const android_64_names[] = {ANDROID_NAMES("lib64")};
static const char *const android_32_names[] = {ANDROID_NAMES("lib")};

/* The framework's file is in the system's cache of libraries and may not exist on disk: it is
 * opened by each of its paths. The others are Khronos's loader and ocl-icd. */
#define FRAMEWORK "/System/Library/Frameworks/OpenCL.framework/"
static const char *const macos_names[] = {
    FRAMEWORK "OpenCL",
    FRAMEWORK "Versions/Current/OpenCL",
    FRAMEWORK "Versions/A/OpenCL",
    "libOpenCL.1.dylib",
    "libOpenCL.dylib",
    "/opt/homebrew/opt/opencl-icd-loader/lib/libOpenCL.dylib",
    "/usr/local/opt/opencl-icd-loader/lib/libOpenCL.dylib",
    NULL,
};

static const char *const freebsd_names[] = {
    "libOpenCL.so.1",
    "libOpenCL.so",
    "/usr/local/lib/libOpenCL.so.1",
    "/usr/local/lib/libOpenCL.so",
    NULL,
};

static const char *const netbsd_names[] = {
    "libOpenCL.so.1",
    "libOpenCL.so",
    "/usr/pkg/lib/libOpenCL.so.1",
    "/usr/pkg/lib/libOpenCL.so",
    NULL,
};

/* Libraries are libOpenCL.so.MAJOR.MINOR with numbers of OpenBSD's own, and the plain name finds
 * the highest. */
static const char *const openbsd_names[] = {"libOpenCL.so", "/usr/local/lib/libOpenCL.so", NULL};

static const char *const windows_names[] = {"OpenCL.dll", NULL};

#define ANDROID(bits, list)                                                                        \
    {                                                                                              \
        .system = "Android", .pointer_bits = (bits), .names = (list),                              \
        .opener = "libvndksupport.so", .opener_function = "android_load_sphal_library",            \
        .hint = "an app needs <uses-native-library android:name=\"libOpenCL.so\" "                 \
                "android:required=\"false\"/> in its manifest, and the same for "                  \
                "libOpenCL-pixel.so, libOpenCL-car.so and libvndksupport.so; some phones have "    \
                "no OpenCL"                                                                        \
    }

const opencl_names opencl_name_tables[] = {
    {.system = "Linux",
     .names = linux_names,
     .hint = "install the OpenCL loader and a driver; on Debian and Ubuntu 'ocl-icd-libopencl1' "
             "and 'pocl-opencl-icd' (any CPU), or the driver package of your GPU's vendor"},
    ANDROID(64, android_64_names),
    ANDROID(32, android_32_names),
    {.system = "macOS",
     .names = macos_names,
     .hint = "OpenCL is a part of macOS; iOS has none for applications"},
    {.system = "FreeBSD",
     .names = freebsd_names,
     .hint = "install the OpenCL loader 'ocl-icd' and a driver: 'pocl' (any CPU), or that of "
             "your GPU"},
    {.system = "NetBSD",
     .names = netbsd_names,
     .hint = "install an OpenCL loader, such as 'ocl-icd', and a driver"},
    {.system = "OpenBSD",
     .names = openbsd_names,
     .hint = "install an OpenCL loader, such as 'ocl-icd', and a driver"},
    {.system = "Windows",
     .names = windows_names,
     .system_folder_only = true,
     .hint = "install the current driver of your graphics card, which brings OpenCL.dll"},
};
const size_t n_opencl_name_tables = sizeof opencl_name_tables / sizeof *opencl_name_tables;

#if defined(_WIN32)
#define SYSTEM_HERE "Windows"
#elif defined(__ANDROID__)
#define SYSTEM_HERE "Android"
#elif defined(__APPLE__)
#define SYSTEM_HERE "macOS"
#elif defined(__FreeBSD__) || defined(__DragonFly__)
#define SYSTEM_HERE "FreeBSD"
#elif defined(__NetBSD__)
#define SYSTEM_HERE "NetBSD"
#elif defined(__OpenBSD__)
#define SYSTEM_HERE "OpenBSD"
#else
#define SYSTEM_HERE "Linux"
#endif

const opencl_names *opencl_names_of(const char *system, unsigned pointer_bits)
{
    for (size_t i = 0; i < n_opencl_name_tables; i++) {
        const opencl_names *row = &opencl_name_tables[i];
        if (strcmp(row->system, system) == 0 &&
            (row->pointer_bits == 0 || row->pointer_bits == pointer_bits))
            return row;
    }
    return NULL;
}

const opencl_names *opencl_names_here(void)
{
    const opencl_names *row = opencl_names_of(SYSTEM_HERE, 8 * (unsigned)sizeof(void *));
    return row ? row : &opencl_name_tables[0];
}
