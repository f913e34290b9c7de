/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, and contexts on them. clgraph.h includes this header, and its rules apply.
 */
#ifndef CLGRAPH_CONTEXT_H
#define CLGRAPH_CONTEXT_H

#include <clgraph/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clg_device_kind {
    CLG_DEVICE_CPU = 0,
    CLG_DEVICE_INTEGRATED_GPU = 1,
    CLG_DEVICE_DISCRETE_GPU = 2,
    CLG_DEVICE_ACCELERATOR = 3
} clg_device_kind;

/* Returns "cpu", "integrated gpu", "discrete gpu" or "accelerator"; "unknown" for other values. */
CLG_API const char *clg_device_kind_name(clg_device_kind kind);

typedef enum clg_kernel_class {
    CLG_KERNELS_AUTO = 0, /* simd on CPU devices, simt on the rest */
    CLG_KERNELS_SIMD = 1, /* explicit vectors, one work-item per group */
    CLG_KERNELS_SIMT = 2  /* work-group tiles in local memory */
} clg_kernel_class;

/* One OpenCL device. Strings are never NULL and live as long as their list or context. */
typedef struct clg_device_info {
    size_t struct_size;
    const char *selector;       /* platform and device index, "0:0", as cltool devices prints it */
    const char *id;             /* stable between runs of the program: "id:..." */
    const char *platform;       /* name of the platform */
    const char *name;           /* name of the device */
    const char *vendor;         /* vendor of the platform */
    const char *driver;         /* driver version */
    const char *opencl_version; /* "OpenCL 3.0 PoCL HSTR..." */
    const char *quirks;         /* names of applied quirks, comma-separated, "" for none */
    clg_device_kind kind;
    clg_kernel_class kernel_class;
    uint32_t compute_units;
    uint32_t max_clock_mhz;
    uint64_t global_mem_bytes;
    uint64_t max_alloc_bytes;
    uint64_t local_mem_bytes;
    bool unified_memory;
    /* Found by building and running probes; all false until the device was probed (clg_device_probe
     * in inspect.h, or a context on it). */
    bool probed, fp16, fp64, subgroups, int8_dot, matrix;
    bool is_default;         /* the one that "auto" selects */
    const char *auto_reason; /* why auto selects it, or why it never does */
    /* Of PCI where drivers tell; 0 if they do not, which no GPU has. vendor_id: as OpenCL gives it,
     * 0x10000 and more are not PCI's. */
    uint32_t vendor_id;
    uint32_t pci_domain, pci_bus, pci_device, pci_function;
} clg_device_info;

/* Lists every OpenCL device of the machine, usable or not, in platform order. Errors: NO_OPENCL. */
CLG_API CLG_MUST_USE clg_status clg_device_list(clg_device_info **out_devices,
                                                size_t *out_n_devices);
/* Frees the array of clg_device_list, of which devices is the first element; accepts NULL. */
CLG_API void clg_device_list_free(clg_device_info *devices, size_t n_devices);

/* Whether kernels are tested before use: the implementation chosen for a node must first solve a
 * small problem as the host does. The cache keeps the result. One that fails is logged and replaced
 * by another on that device and driver; if none is right, runs fail with UNSUPPORTED_DEVICE. */
typedef enum clg_selftest {
    CLG_SELFTEST_DEFAULT = 0, /* as $CLG_SELFTEST says: "off", else on */
    CLG_SELFTEST_ON = 1,
    CLG_SELFTEST_OFF = 2 /* also ignores the results of earlier tests */
} clg_selftest;

/* How kernels are compiled that the cache does not have. */
typedef enum clg_compilation {
    /* As $CLG_COMPILATION says: "tiered", "optimized" or "baseline"; else tiered. */
    CLG_COMPILATION_DEFAULT = 0,
    /* Where that pays, small kernels are first built without optimisation, for an early result.
     * Optimised ones, with the same results to the bit, are compiled in the background from the
     * first run on and replace them later; freeing the context waits for that. Elsewhere, and in
     * clg_session_prepare, as CLG_COMPILATION_OPTIMIZED. */
    CLG_COMPILATION_TIERED = 1,
    CLG_COMPILATION_OPTIMIZED = 2, /* each kernel once, with optimisation, before its first use */
    /* Never optimised where tiers pay: compiles faster and runs slower. Elsewhere optimised. */
    CLG_COMPILATION_BASELINE = 3
} clg_compilation;

typedef struct clg_context_options {
    size_t struct_size;
    const char *fallback; /* selector used when nothing matches; NULL: none */
    /* Folder of the cache of compiled programs; NULL: $CLG_CACHE_DIR, else the user's cache folder;
     * "" keeps everything in memory. */
    const char *cache_dir;
    /* Compute units of a CPU device to use, the first ones; 0: all. Of a part ("cpu/1"): the size
     * of the parts into which the device is cut; 0: 1. */
    uint32_t cpu_threads;
    bool profiling; /* queues record time stamps; needed by clg_session_profile */
    clg_selftest selftest;
    /* The program clgraph-compile, in which kernels are compiled first: a driver's compiler that
     * crashes, hangs or takes all memory ends that process and not this one. NULL:
     * $CLG_COMPILE_HELPER, else beside the library; "off": none; else an absolute path. Never
     * started from a setuid program. */
    const char *compile_helper;
    /* Seconds for a build; 0: 60. CLBlast's may take 5 times that. Where the system tells for how
     * long a process waited for a processor, as Linux does, that time does not count. */
    uint32_t compile_limit_s;
    uint32_t compile_limit_mib; /* resident MiB that it may take; 0: 4096 */
    /* Longest time of a launch, which systems limit where a GPU drives a display: longer ones are
     * divided, where possible. 0: 500 on GPUs, unlimited elsewhere; UINT32_MAX: unlimited. */
    uint32_t max_launch_ms;
    clg_compilation compilation;
} clg_context_options;
#define CLG_CONTEXT_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(clg_context_options), NULL, NULL, 0, false, CLG_SELFTEST_DEFAULT, NULL, 0, 0, 0,    \
            CLG_COMPILATION_DEFAULT                                                                \
    }

/* Opens the best device that matches selector. A selector, case-insensitive, is one of these (the
 * first that fits): auto, gpu, cpu, all; id:...; a platform's vendor (nvidia, amd, intel, pocl,
 * mesa); P:D as in clg_device_info; the name of a device or platform, or a part of one. WORD#N is
 * the N-th match of WORD, from 0; WORD/I or WORD#N/I is part I of that CPU, from 0 (cpu_threads).
 * NULL means $CLG_DEVICE, else auto. options may be NULL.
 * With an empty cache this compiles small probes. Errors: NO_OPENCL, NO_DEVICE (the message lists
 * the devices), UNSUPPORTED_DEVICE, OUT_OF_DEVICE_MEMORY, DEVICE_LOST. */
CLG_API CLG_MUST_USE clg_status clg_context_create(const char *selector,
                                                   const clg_context_options *options,
                                                   clg_context **out_context);
/* Opens each device of a list, "gpu,cpu/0" or "all", in its order; the first is what
 * clg_context_create opens. Free the array, and the contexts in it, with clg_context_list_free; a
 * context that is taken out of it is replaced by NULL. Errors: those of clg_context_create, of the
 * first device that cannot be opened. */
CLG_API CLG_MUST_USE clg_status clg_context_create_list(const char *selector,
                                                        const clg_context_options *options,
                                                        clg_context ***out_contexts,
                                                        size_t *out_n_contexts);
CLG_API void clg_context_list_free(clg_context **contexts, size_t n_contexts);
/* Returns the device, probed; borrowed, lives as long as the context. NULL for NULL. */
CLG_API const clg_device_info *clg_context_device(const clg_context *context);
/* Opens the device again, in another OpenCL context, if it was lost (DEVICE_LOST: a reset of the
 * driver, suspend); does nothing if it answers. Sessions, clones and streams are then rebuilt at
 * their next run or preparation. Host inputs, links and bound host values stay set. What was on the
 * device is lost: device values, outputs, mapped inputs, what a link carried (docs/errors.md). Any
 * thread, also during runs. Errors: NO_DEVICE (it is gone; may be called again), INVALID_ARGUMENT
 * (a context of clg_context_create_opencl), those of clg_context_create. */
CLG_API CLG_MUST_USE clg_status clg_context_recover(clg_context *context);
CLG_API void clg_context_free(clg_context *context);

#ifdef __cplusplus
}
#endif

#endif
