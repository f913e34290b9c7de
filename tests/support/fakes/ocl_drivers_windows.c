/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves the drivers that a test sees on Windows unchanged: they are those of the registry.
 */
#include "support/fixtures/ocl_platforms.h"

void ocl_platforms_show_all(void) {}

void ocl_platforms_show_pocl(void) {}
