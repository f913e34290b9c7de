/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of options, defined in options.c. Parsing, --help, man pages and completion follow it.
 */
#ifndef CLTOOL_OPTION_TABLE_H
#define CLTOOL_OPTION_TABLE_H

#include "options.h"

typedef enum option_kind {
    KIND_FLAG,
    KIND_COUNT,
    KIND_TEXT,
    KIND_WORD, /* one of the words of the metavar, as in "yes|no" */
    KIND_LIST,
    KIND_SIZE,  /* 1 and more */
    KIND_SIZE0, /* 0 and more */
    KIND_REAL,  /* 0 and more */
    KIND_LIMITS /* clg_limits */
} option_kind;

typedef struct option_row {
    const char *name; /* without "--" */
    char letter;      /* 0: none */
    option_kind kind;
    size_t offset;       /* of the field in `options` */
    unsigned groups;     /* bits of option_groups: commands that accept it */
    const char *metavar; /* of the value, NULL without one; completion follows it */
    const char *help;
} option_row;

/* Returns the rows; several may have one name, for different groups. */
const option_row *option_rows(size_t *out_n);
bool option_takes_value(const option_row *row);

#endif
