/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the diagnosis that look at the system: diagnose_posix.c and diagnose_windows.c, one of which is built.
 */
#ifndef CLG_OCL_DIAGNOSE_H
#define CLG_OCL_DIAGNOSE_H

#include "base/text.h"
#include "caps/caps.h"

/* What the system shows: its drivers, and its graphics cards beside the devices of OpenCL. */
void diagnose_system(text *report, const device_record *records, size_t n);

/* ---- the parts of it on POSIX systems; apart, so that tests give them folders of their own --------------- */

/* Each file PATTERN.icd of a folder, the library it names, and whether that loads. */
void diagnose_drivers(text *report, const char *folder);
/* GPUs below a folder like /sys/bus/pci/devices, each with the device of OpenCL that is it, or what to install. */
void diagnose_gpus(text *report, const char *pci_folder, const device_record *records, size_t n);
/* Whether the user may open the nodes below a folder like /dev whose names tell of GPUs. */
void diagnose_nodes(text *report, const char *dev_folder);
/* PoCL shows no device when it cannot write its cache. */
void diagnose_pocl_cache(text *report);

#endif
