/* SPDX-License-Identifier: Apache-2.0
 *
 * The completion script of zsh, for the function _arguments.
 */
#include "completion.h"

#include "option_table.h"
#include "value_kind.h"

#include <stdio.h>
#include <string.h>

static const char head[] =
    "#compdef cltool\n"
    "# Completion of cltool for zsh, as 'cltool completion zsh' prints it.\n"
    "\n"
    "# Offers the words that are given; values go on after '=' and ':'.\n"
    "_cltool_offer() {\n"
    "  local word\n"
    "  for word; do\n"
    "    case $word in\n"
    "      *[=:]) compadd -S '' -- $word ;;\n"
    "      *) compadd -- $word ;;\n"
    "    esac\n"
    "  done\n"
    "}\n"
    "\n"
    "# Completes what follows NAME=.\n"
    "_cltool_named() {\n"
    "  compset -P '*='\n"
    "  \"$@\"\n"
    "}\n"
    "\n"
    "_cltool_selectors() {\n"
    "  local line\n"
    "  local -a found\n"
    "  for line in ${(f)\"$(${(Q)program} devices --list 2>/dev/null)\"}; do\n"
    "    found+=(\"${${line%% *}//:/\\\\:}:${line#* }\")\n"
    "  done\n"
    "  _describe -t devices device found\n"
    "  _cltool_offer \"$@\"\n"
    "}\n"
    "\n";

static const char tail[] = "_cltool() {\n"
                           "  local program=$words[1] curcontext=$curcontext state\n"
                           "  _arguments -C \\\n"
                           "    '(- : *)'{-h,--help}'[list the commands]' \\\n"
                           "    '(- : *)'{-V,--version}'[print the version]' \\\n"
                           "    '1: :_cltool_commands' \\\n"
                           "    '*:: :->arguments' && return\n"
                           "  [[ $state = arguments ]] || return 1\n"
                           "  curcontext=${curcontext%:*:*}:cltool-$words[1]:\n"
                           "  (( $+functions[_cltool_$words[1]] )) && _cltool_$words[1]\n"
                           "}\n"
                           "\n"
                           "_cltool \"$@\"\n";

/* Prints a text inside of single quotes; bytes of `special` get a backslash. */
static void print_quoted(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", stdout);
            continue;
        }
        if (*text == '\\' || strchr(special, *text)) (void)putchar('\\');
        (void)putchar(*text);
    }
}

/* Prints ":MESSAGE:ACTION" for a value. A blank before the action keeps _arguments from adding
 * options to it. */
static void print_action(const char *metavar, const value_completion *v)
{
    (void)putchar(':');
    print_quoted(metavar, ":");
    (void)printf(":%s", v->is_named && v->kind != VALUE_OTHER ? " _cltool_named" : "");
    switch (v->kind) {
    case VALUE_OTHER: break;
    case VALUE_FOLDER: (void)printf(" _files -/"); break;
    case VALUE_COMMAND: (void)printf(" _cltool_commands"); break;
    case VALUE_FILE:
        (void)printf(" _files");
        if (v->words[0]) {
            (void)printf(" -g \"*.(");
            for (const char *c = v->words; *c; c++) (void)putchar(*c == ' ' ? '|' : *c);
            (void)printf(")(-.)\""); /* else the last parentheses would be qualifiers */
        }
        break;
    case VALUE_DEVICE:
    case VALUE_WORDS:
        (void)printf(v->kind == VALUE_DEVICE ? " _cltool_selectors " : " _cltool_offer ");
        print_quoted(v->words, ":");
        break;
    }
}

static void print_option(const option_row *row)
{
    const bool has_value = option_takes_value(row);
    const bool repeats = row->kind == KIND_LIST || row->kind == KIND_COUNT;
    (void)printf(" \\\n    ");
    if (repeats) {
        (void)printf("'*'");
    } else if (row->letter) {
        (void)printf("'(-%c --%s)'", row->letter, row->name);
    }
    if (row->letter)
        (void)printf("{-%c%s,--%s%s}'", row->letter, has_value ? "+" : "", row->name,
                     has_value ? "=" : "");
    else
        (void)printf("--%s%s'", row->name, has_value ? "=" : "");
    (void)putchar('[');
    print_quoted(row->help, "[]");
    (void)putchar(']');
    if (has_value) {
        const value_completion v = value_completion_of(row->metavar);
        print_action(row->metavar, &v);
    }
    (void)putchar('\'');
}

static void print_command(const command *c)
{
    size_t n_rows;
    const option_row *rows = option_rows(&n_rows);
    value_completion items[2];
    const size_t n_items = argument_completions(c->arguments, items);
    (void)printf("_cltool_%s() {\n  _arguments -s -S", c->name);
    for (size_t k = 0; k < n_rows; k++)
        if (rows[k].groups & (c->groups | OPTIONS_ALL)) print_option(&rows[k]);
    for (size_t k = 0; k < n_items; k++) {
        (void)printf(" \\\n    '%s", k + 1 == n_items ? "*" : "1");
        print_action("argument", &items[k]);
        (void)putchar('\'');
    }
    (void)printf("\n}\n\n");
}

void completion_zsh(const command *commands, size_t n)
{
    (void)fputs(head, stdout);
    (void)printf("_cltool_commands() {\n  local -a commands=(\n");
    for (size_t i = 0; i < n; i++) {
        (void)printf("    '%s:", commands[i].name);
        print_quoted(commands[i].what, "");
        (void)printf("'\n");
    }
    (void)printf("  )\n  _describe -t commands command commands\n}\n\n");
    for (size_t i = 0; i < n; i++) print_command(&commands[i]);
    (void)fputs(tail, stdout);
}
