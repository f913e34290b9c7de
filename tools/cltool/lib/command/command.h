/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command is, as a row of the table in main.c: help, man pages and completion follow it.
 */
#ifndef CLTOOL_COMMAND_H
#define CLTOOL_COMMAND_H

#include "options.h"

typedef struct command {
    const char *name;
    const char *arguments; /* for the usage line: "MODEL [inputs]"; alternatives by " | " */
    size_t min_arguments, max_arguments;
    unsigned groups;  /* bits of option_groups */
    const char *what; /* description in one line */
    const char *more; /* paragraphs for --help, or NULL */
    const char *example;
    int (*run)(const options *o);
} command;

/* Options under one title of --help and of a man page. */
typedef struct option_section {
    const char *title;
    unsigned groups;
} option_section;
#define N_OPTION_SECTIONS 4
extern const option_section option_sections[N_OPTION_SECTIONS];

typedef struct exit_word {
    int code;
    const char *meaning;
} exit_word;
#define N_EXIT_WORDS 7
extern const exit_word exit_words[N_EXIT_WORDS];

#endif
