/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the commands of cltool. Each is defined in cmd_<name>.c and listed in the table of
 * main.c.
 */
#ifndef CLTOOL_CLTOOL_H
#define CLTOOL_CLTOOL_H

#include "command.h"

/* Returns the table of commands. */
const command *commands_all(size_t *out_n);
/* Finds a command by its name; an unknown one is an error. */
int command_find(const char *name, size_t *out_index);

int cmd_devices(const options *o);
int cmd_inspect(const options *o);
int cmd_run(const options *o);
int cmd_predict(const options *o);
int cmd_merge(const options *o);
int cmd_verify(const options *o);
int cmd_diff(const options *o);
int cmd_gradient(const options *o);
int cmd_generate(const options *o);
int cmd_new(const options *o);
int cmd_tokenize(const options *o);
int cmd_train(const options *o);
int cmd_bench(const options *o);
int cmd_profile(const options *o);
int cmd_tune(const options *o);
int cmd_selftest(const options *o);
int cmd_report(const options *o);
int cmd_cache(const options *o);
int cmd_completion(const options *o);
int cmd_man(const options *o);

#endif
