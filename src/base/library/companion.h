/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds files that are installed with the library: the compile helper, the module of images.
 */
#ifndef CLG_BASE_COMPANION_H
#define CLG_BASE_COMPANION_H

#include "base/error.h"

/* Sets *out_path to the absolute path of the file `name`: beside the library in a build tree or a
 * wheel, in a separate folder beside it or below libexec, or where it was installed, for programs
 * that contain the library. NULL: nowhere. Freed by memory_free. */
clg_status companion_find(const char *name, char **out_path);

#endif
