/* SPDX-License-Identifier: Apache-2.0
 *
 * The completion script of fish.
 */
#include "completion.h"

#include "option_table.h"
#include "value_kind.h"

#include <stdio.h>
#include <string.h>

static const char head[] =
    "# Completion of cltool for fish, as 'cltool completion fish' prints it.\n"
    "\n"
    "function __cltool_selectors\n"
    "    cltool devices --list 2>/dev/null | string replace -r ' +' \\t\n"
    "end\n"
    "\n"
    "complete -c cltool -f\n"
    "complete -c cltool -n __fish_use_subcommand -s h -l help -d 'list the commands'\n"
    "complete -c cltool -n __fish_use_subcommand -s V -l version -d 'print the version'\n";

static void print_quoted(const char *text)
{
    (void)putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') (void)putchar('\\');
        (void)putchar(*text);
    }
    (void)putchar('\'');
}

/* Prints the flags that complete a value; fish completes files after NAME= by itself. */
static void print_value(const value_completion *v)
{
    switch (v->kind) {
    case VALUE_OTHER: (void)printf(" -x"); break;
    case VALUE_FILE:
        if (v->words[0] && !v->is_named)
            (void)printf(" -r -k -a '(__fish_complete_suffix .%s)'", v->words);
        else
            (void)printf(" -r -F");
        break;
    case VALUE_FOLDER: (void)printf(" -x -a '(__fish_complete_directories)'"); break;
    case VALUE_DEVICE: (void)printf(" -x -a '%s (__cltool_selectors)'", v->words); break;
    case VALUE_COMMAND: (void)printf(" -x -a \"$__cltool_commands\""); break;
    case VALUE_WORDS: (void)printf(" -x -a '%s'", v->words); break;
    }
}

static void print_option(const option_row *row, const command *commands, size_t n)
{
    const bool is_everywhere = row->groups & OPTIONS_ALL;
    bool is_accepted = is_everywhere;
    for (size_t i = 0; i < n; i++) is_accepted |= (row->groups & commands[i].groups) != 0;
    if (!is_accepted) return;
    (void)printf("complete -c cltool -n '");
    if (is_everywhere) {
        (void)printf("not __fish_use_subcommand");
    } else {
        (void)printf("__fish_seen_subcommand_from");
        for (size_t i = 0; i < n; i++)
            if (row->groups & commands[i].groups) (void)printf(" %s", commands[i].name);
    }
    (void)printf("'");
    if (row->letter) (void)printf(" -s %c", row->letter);
    (void)printf(" -l %s -d ", row->name);
    print_quoted(row->help);
    if (option_takes_value(row)) {
        const value_completion v = value_completion_of(row->metavar);
        print_value(&v);
    }
    (void)putchar('\n');
}

void completion_fish(const command *commands, size_t n)
{
    size_t n_rows;
    const option_row *rows = option_rows(&n_rows);
    (void)fputs(head, stdout);
    (void)printf("set -g __cltool_commands");
    for (size_t i = 0; i < n; i++) (void)printf(" %s", commands[i].name);
    (void)putchar('\n');
    for (size_t i = 0; i < n; i++) {
        value_completion items[2];
        const size_t n_items = argument_completions(commands[i].arguments, items);
        (void)printf("complete -c cltool -n __fish_use_subcommand -a %s -d ", commands[i].name);
        print_quoted(commands[i].what);
        (void)putchar('\n');
        for (size_t k = 0; k < n_items; k++) {
            if (items[k].kind == VALUE_OTHER) continue;
            (void)printf("complete -c cltool -n '__fish_seen_subcommand_from %s'",
                         commands[i].name);
            print_value(&items[k]);
            (void)putchar('\n');
        }
    }
    for (size_t k = 0; k < n_rows; k++) print_option(&rows[k], commands, n);
}
