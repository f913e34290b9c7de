/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the system-dependent parts of the diagnosis, in diagnose_posix.c or diagnose_windows.c:
 * the build uses one of them.
 */
#ifndef CLG_OCL_DIAGNOSE_H
#define CLG_OCL_DIAGNOSE_H

#include "base/strbuf.h"
#include "caps/caps.h"
#include "ocl/diagnose/advice.h"
#include "ocl/library/opencl_library.h"

/* Reports the system's drivers, and its graphics cards with their OpenCL devices. */
void diagnose_system(strbuf *report, const device_record *records, size_t n);

/* Reports the names that were tried for the OpenCL library, in order, each with the reason why it
 * is not used. */
void diagnose_library(strbuf *report, const opencl_attempts *attempts);

/* The functions below exist on POSIX systems only. They are declared here for tests, which pass
 * other folders. */

/* Reports each .icd file of a folder, the library that it names, and whether that loads. */
void diagnose_drivers(strbuf *report, const char *folder);
/* Reports GPUs below a folder like /sys/bus/pci/devices, each with its OpenCL device, or what to
 * install. */
void diagnose_gpus(strbuf *report, const char *pci_folder, const distribution *d,
                   const device_record *records, size_t n);
/* Returns the distribution of a file like /etc/os-release, the first of the table without one. */
const distribution *diagnose_distribution(const char *os_release_folder);
/* Reports a distribution's packages for OpenCL. */
void diagnose_packages(strbuf *report, const distribution *d);
/* Reports containers and virtual machines, by files below a root folder, with what they need. */
void diagnose_surroundings(strbuf *report, const char *root);
/* Reports whether the user may open the GPU nodes below a folder like /dev, which are found by
 * name. */
void diagnose_nodes(strbuf *report, const char *dev_folder);
/* Reports whether PoCL can write its cache: if it cannot, it shows no device. */
void diagnose_pocl_cache(strbuf *report);

#endif
