/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the commands of cltool. Each is defined in cmd_<name>.c and listed in the table of
 * main.c.
 */
#ifndef CLTOOL_CLTOOL_H
#define CLTOOL_CLTOOL_H

#include "options.h"

typedef struct command {
    const char *name;
    const char *arguments; /* for the usage line: "MODEL [inputs]" */
    size_t min_arguments, max_arguments;
    unsigned groups;  /* bits of option_groups */
    const char *what; /* description in one line */
    const char *more; /* paragraphs for --help, or NULL */
    const char *example;
    int (*run)(const options *o);
} command;

int cmd_devices(const options *o);
int cmd_inspect(const options *o);
int cmd_run(const options *o);
int cmd_predict(const options *o);
int cmd_merge(const options *o);
int cmd_verify(const options *o);
int cmd_diff(const options *o);
int cmd_gradient(const options *o);
int cmd_new(const options *o);
int cmd_train(const options *o);
int cmd_bench(const options *o);
int cmd_profile(const options *o);
int cmd_tune(const options *o);
int cmd_selftest(const options *o);
int cmd_cache(const options *o);

#endif
