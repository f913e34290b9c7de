/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the completion scripts of shells and man pages to standard output, from the tables of
 * commands and options.
 */
#ifndef CLTOOL_COMPLETION_H
#define CLTOOL_COMPLETION_H

#include "command.h"

void completion_bash(const command *commands, size_t n);
void completion_zsh(const command *commands, size_t n);
void completion_fish(const command *commands, size_t n);

/* cltool.1, and the page of one command. */
void manual_overview(const command *commands, size_t n);
void manual_command(const command *c);

#endif
