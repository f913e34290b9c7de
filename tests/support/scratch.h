/* SPDX-License-Identifier: Apache-2.0
 *
 * A temporary folder of the test, created at first use and removed when the program ends.
 */
#ifndef CLG_TESTS_SCRATCH_H
#define CLG_TESTS_SCRATCH_H

#include <stddef.h>

const char *scratch_folder(void);
/* Returns FOLDER/NAME, which stays valid until the program ends. */
const char *scratch_path(const char *name);
/* Creates a file in the folder with these bytes; returns its path. */
const char *scratch_file(const char *name, const void *data, size_t size_bytes);

#endif
