/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the drivers that a test sees on Windows: those of the registry, which tests do not
 * change.
 */
#include "support/fixtures/ocl_platforms.h"

void ocl_platforms_show_all(void) {}

void ocl_platforms_show_pocl(void) {}
