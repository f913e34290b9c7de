/* SPDX-License-Identifier: Apache-2.0
 *
 * Standard input and output as files of values: "-" in place of a path.
 */
#ifndef CLTOOL_STANDARD_STREAMS_H
#define CLTOOL_STANDARD_STREAMS_H

#include "failure.h"

#include <stdio.h>

#define STANDARD_INPUT_BYTES ((uint64_t)4 << 30) /* the most that is read */

bool is_standard(const char *path); /* "-" */
/* Reads all of standard input into a temporary file whose ending says what it holds: .npy, .npz or
 * .csv, by its first bytes. *out_path is valid until standard_streams_end. Later calls get the same
 * file. A terminal is refused. */
int standard_input(const char **out_path);
/* Reads all of standard input as a text of at most 64 MiB, which may be empty, and which the caller
 * frees. At a terminal a note says so. */
int standard_input_text(char **out_text, size_t *out_bytes);

/* Keeps standard output for data, which is refused where that is a terminal and the data are not
 * text; from then on, what is printed goes to standard error. Must be called before anything is
 * printed. */
int standard_output_claim(bool is_text);
/* Writes data to the standard output that was claimed. */
int standard_output_write(const void *data, size_t size_bytes);
/* Returns the standard output that was claimed, for text. */
FILE *standard_output_stream(void);
/* Sets *out_path to a temporary file with this ending, which standard_output_copy writes to
 * standard output when it is complete. Valid until standard_streams_end. */
int standard_output_file(const char *ending, const char **out_path);
int standard_output_copy(void);
/* Writes a tensor of numbers as .npy, or as lines of numbers. */
int standard_output_npy(clg_value *value);
int standard_output_csv(const clg_value *value);
/* Writes n named tensors as .npz. */
int standard_output_npz(const char *const *names, clg_value *const *values, size_t n);

/* Removes temporary files. Any thread; once at the program's end. */
void standard_streams_end(void);

#endif
