/* SPDX-License-Identifier: Apache-2.0
 *
 * What completes the value of an option or an argument, by its metavar: "MODEL" is a file that ends
 * in .onnx, "yes|no" one of two words.
 */
#ifndef CLTOOL_VALUE_KIND_H
#define CLTOOL_VALUE_KIND_H

#include <stdbool.h>
#include <stddef.h>

typedef enum value_kind {
    VALUE_OTHER, /* a number, a name: nothing is offered */
    VALUE_FILE,  /* `words` are endings, "npy npz"; "" for any file */
    VALUE_FOLDER,
    VALUE_DEVICE, /* `words`, and what 'cltool devices --list' prints */
    VALUE_COMMAND,
    VALUE_WORDS
} value_kind;

typedef struct value_completion {
    value_kind kind;
    bool is_named; /* may or must begin with "NAME=" */
    char words[160];
} value_completion;

value_completion value_completion_of(const char *metavar);

/* Returns what completes the arguments of a usage line: out[0] the first one, and the last of the
 * result's number all others. Alternatives, "path | warm MODEL", begin with a word, after which any
 * file may follow. */
size_t argument_completions(const char *usage, value_completion out[2]);

#endif
