/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements ocl_platforms_show_* on Windows, where they do nothing: the OpenCL loader takes its
 * drivers from the registry.
 */
#include "support/fixtures/ocl_platforms.h"

void ocl_platforms_show_all(void) {}

void ocl_platforms_show_pocl(void) {}
