/* SPDX-License-Identifier: Apache-2.0
 *
 * Man pages in roff, with the macros of man(7).
 */
#include "completion.h"

#include "option_table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LINE_COLUMNS 78 /* of the roff text, where lines of prose are broken */

/* ---- text ------------------------------------------------------------------------------------ */

/* Prints n bytes in which nothing is a request, an escape, or a sign that groff replaces. */
static void print_escaped(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (text[i]) {
        case '\\': (void)fputs("\\e", stdout); break;
        case '-': (void)fputs("\\-", stdout); break;
        case '\'': (void)fputs("\\(aq", stdout); break;
        case '`': (void)fputs("\\(ga", stdout); break;
        case '^': (void)fputs("\\(ha", stdout); break;
        case '~': (void)fputs("\\(ti", stdout); break;
        default: (void)putchar(text[i]);
        }
    }
}

static void print_text(const char *text) { print_escaped(text, strlen(text)); }

/* Prints the words of a text with n bytes as lines of prose. */
static void print_prose(const char *text, size_t n)
{
    const char *end = text + n;
    size_t column = 0;
    while (text < end) {
        const size_t gap = strspn(text, " \n"), word = strcspn(text + gap, " \n");
        text += gap;
        const size_t length = text + word < end ? word : text < end ? (size_t)(end - text) : 0;
        if (length == 0) break;
        if (column > 0) {
            const bool breaks = column + 1 + length > LINE_COLUMNS;
            (void)putchar(breaks ? '\n' : ' ');
            column = breaks ? 0 : column + 1;
        }
        if (column == 0 && (text[0] == '.' || text[0] == '\'')) (void)fputs("\\&", stdout);
        print_escaped(text, length);
        column += length;
        text += length;
    }
    if (column > 0) (void)putchar('\n');
}

/* Returns the bytes of the first word where a line is a row of a list, "path    prints where it
 * is"; 0 for prose. */
static size_t list_word(const char *line, size_t n)
{
    size_t word = 0;
    while (word < n && islower((unsigned char)line[word])) word++;
    return word > 0 && word + 2 < n && line[word] == ' ' && line[word + 1] == ' ' ? word : 0;
}

/* Prints the paragraphs of a help text, whose lines are broken by hand. */
static void print_more(const char *text)
{
    bool is_first = true;
    while (*text) {
        const size_t n = strcspn(text, "\n"), word = list_word(text, n);
        const char *end = text + n;
        if (word > 0) {
            (void)printf(".TP\n\\fB%.*s\\fR\n", (int)word, text);
            print_prose(text + word, n - word);
        } else {
            while (*end && !list_word(end + 1, strcspn(end + 1, "\n")))
                end += 1 + strcspn(end + 1, "\n");
            if (!is_first) (void)printf(".PP\n");
            print_prose(text, (size_t)(end - text));
        }
        is_first = false;
        text = *end ? end + 1 : end;
    }
}

/* ---- parts of a page ------------------------------------------------------------------------- */

static void print_title(const char *name, const char *what)
{
    (void)printf(".\\\" Printed by 'cltool man'.\n.TH ");
    for (const char *c = name; *c; c++) {
        if (*c == '-')
            (void)fputs("\\-", stdout);
        else
            (void)putchar(toupper((unsigned char)*c));
    }
    (void)printf(" 1 \"\" \"clgraph %s\" \"User Commands\"\n.SH NAME\n", clg_version());
    print_text(name);
    (void)printf(" \\- ");
    print_text(what);
    (void)printf("\n.SH SYNOPSIS\n");
}

static void print_option(const option_row *row)
{
    (void)printf(".TP\n");
    if (row->letter) (void)printf("\\fB\\-%c\\fR, ", row->letter);
    (void)printf("\\fB\\-\\-");
    print_text(row->name);
    (void)printf("\\fR");
    if (row->metavar) {
        (void)printf(" \\fI");
        print_text(row->metavar);
        (void)printf("\\fR");
    }
    (void)putchar('\n');
    print_prose(row->help, strlen(row->help));
}

static void print_options(const command *c)
{
    size_t n_rows;
    const option_row *rows = option_rows(&n_rows);
    const unsigned all = c->groups | OPTIONS_ALL;
    (void)printf(".SH OPTIONS\n");
    for (size_t s = 0; s < N_OPTION_SECTIONS; s++) {
        const unsigned groups = all & option_sections[s].groups;
        if (groups && s > 0)
            (void)printf(".SS %c%s\n", toupper((unsigned char)option_sections[s].title[0]),
                         option_sections[s].title + 1);
        for (size_t k = 0; k < n_rows; k++)
            if (rows[k].groups & groups) print_option(&rows[k]);
    }
}

static void print_exit_status(void)
{
    (void)printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < N_EXIT_WORDS; i++) {
        (void)printf(".TP\n%d\n", exit_words[i].code);
        print_prose(exit_words[i].meaning, strlen(exit_words[i].meaning));
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

void manual_command(const command *c)
{
    char name[64];
    (void)snprintf(name, sizeof name, "cltool-%s", c->name);
    print_title(name, c->what);
    (void)printf("\\fBcltool %s\\fR", c->name);
    if (c->arguments[0]) {
        (void)printf(" \\fI");
        print_text(c->arguments);
        (void)printf("\\fR");
    }
    (void)printf(" [options]\n");
    if (c->more) {
        (void)printf(".SH DESCRIPTION\n");
        print_more(c->more);
    }
    print_options(c);
    print_exit_status();
    (void)printf(".SH EXAMPLES\n.EX\n");
    print_text(c->example);
    (void)printf("\n.EE\n.SH SEE ALSO\n.BR cltool (1)\n");
}

static const struct {
    const char *name, *meaning;
} variables[] = {
    {"CLG_DEVICE", "the device where \\-\\-device is not given"},
    {"CLG_CACHE_DIR", "the folder of compiled programs, tuning and self\\-test results"},
    {"NO_COLOR", "set: no colours"},
    {"TERM", "dumb: no colours, no progress lines"},
};

void manual_overview(const command *commands, size_t n)
{
    print_title("cltool", "neural-network prediction and training on any OpenCL device");
    (void)printf("\\fBcltool\\fR \\fICOMMAND\\fR [options] [arguments]\n.br\n"
                 "\\fBcltool\\fR \\fB\\-\\-help\\fR | \\fB\\-\\-version\\fR\n"
                 ".SH DESCRIPTION\nRuns, trains, measures and examines ONNX models.\nResults go to "
                 "standard output; the device, notes, progress and errors go to standard error.\n"
                 ".SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        (void)printf(".TP\n.BR cltool\\-%s (1)\n", commands[i].name);
        print_prose(commands[i].what, strlen(commands[i].what));
    }
    (void)printf(".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nlists the commands\n"
                 ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nprints the version\n");
    print_exit_status();
    (void)printf(".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        (void)printf(".TP\n\\fB%s\\fR\n%s\n", variables[i].name, variables[i].meaning);
}
