/* SPDX-License-Identifier: Apache-2.0
 *
 * Which drivers a test sees on Windows: those of the registry, which tests leave alone.
 */
#include "support/fixtures/ocl_platforms.h"

void ocl_platforms_show_all(void) {}

void ocl_platforms_show_pocl(void) {}
