/* SPDX-License-Identifier: Apache-2.0
 *
 * The completion script of bash. It needs bash alone, not the package bash-completion.
 */
#include "completion.h"

#include "option_table.h"
#include "value_kind.h"

#include <stdio.h>
#include <string.h>

/* COMP_WORDS is broken at '=' and ':'; the script joins these parts again, and completes the last
 * part only. */
static const char functions[] =
    "# Prints the words that begin with $1, one a line.\n"
    "_cltool_words() { compgen -W \"$2\" -- \"$1\"; }\n"
    "\n"
    "# Prints folders that begin with $1, and files with one of the endings $2; without, all "
    "files.\n"
    "_cltool_files() {\n"
    "  local file ending\n"
    "  compgen -d -- \"$1\"\n"
    "  while IFS= read -r file; do\n"
    "    [ -d \"$file\" ] && continue\n"
    "    [ -z \"$2\" ] && printf '%s\\n' \"$file\"\n"
    "    for ending in $2; do\n"
    "      case $file in *.\"$ending\") printf '%s\\n' \"$file\" ;; esac\n"
    "    done\n"
    "  done < <(compgen -f -- \"$1\")\n"
    "}\n"
    "\n"
    "# Prints values that begin with $2, of the kind $1, with the words $3.\n"
    "_cltool_values() {\n"
    "  case $1 in\n"
    "    file) _cltool_files \"$2\" \"$3\" ;;\n"
    "    folder) compgen -d -- \"$2\" ;;\n"
    "    words) _cltool_words \"$2\" \"$3\" ;;\n"
    "    command) _cltool_words \"$2\" \"$_cltool_commands\" ;;\n"
    "    device) _cltool_words \"$2\" \"$3 $(\"$_cltool_program\" devices --list 2>/dev/null |\n"
    "      sed 's/ .*//')\" ;;\n"
    "  esac\n"
    "}\n"
    "\n"
    "_cltool() {\n"
    "  local words=() n=0 i word last='' current command='' option='' arguments=0\n"
    "  local kind='' named='' list='' cut front=''\n"
    "  local _cltool_program=${COMP_WORDS[0]}\n"
    "  for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "    word=${COMP_WORDS[i]}\n"
    "    if [[ $n -gt 0 && ( $word == [=:]* || $last == *[=:] ) ]]; then\n"
    "      words[n - 1]+=$word\n"
    "    else\n"
    "      words[n++]=$word\n"
    "    fi\n"
    "    last=$word\n"
    "  done\n"
    "  current=${words[n - 1]}\n"
    "  cut=$((${#current} - ${#last}))\n"
    "  [[ $last == [=:]* ]] && cut=${#current}\n"
    "  for ((i = 0; i < n - 1; i++)); do\n"
    "    word=${words[i]}\n"
    "    if [ -n \"$option\" ]; then\n"
    "      option=''\n"
    "    elif [ -z \"$command\" ]; then\n"
    "      command=$word\n"
    "    elif [[ $word == -?* ]]; then\n"
    "      [[ $word != *=* ]] && _cltool_takes \"$command\" \"$word\" && option=$word\n"
    "    else\n"
    "      arguments=$((arguments + 1))\n"
    "    fi\n"
    "  done\n"
    "  if [ -z \"$command\" ]; then\n"
    "    list=\"$_cltool_commands help --help --version\"\n"
    "    list=$(_cltool_words \"$current\" \"$list\")\n"
    "  else\n"
    "    word=$current\n"
    "    if [[ -z $option && $word == --*=* ]]; then\n"
    "      option=${word%%=*}\n"
    "      word=${word#*=}\n"
    "    fi\n"
    "    if [ -n \"$option\" ]; then\n"
    "      _cltool_takes \"$command\" \"$option\" || return 0\n"
    "    elif [[ $word == -* ]]; then\n"
    "      kind=words list=$(_cltool_options \"$command\") named=''\n"
    "    else\n"
    "      _cltool_argument \"$command\" \"$arguments\"\n"
    "    fi\n"
    "    [[ -n $named && $word == *=* ]] && word=${word#*=}\n"
    "    if [ \"$kind\" = file ] || [ \"$kind\" = folder ]; then compopt -o filenames 2>/dev/null; "
    "fi\n"
    "    list=$(_cltool_values \"$kind\" \"$word\" \"$list\")\n"
    "    i=$((${#current} - ${#word}))\n"
    "    [ \"$cut\" -lt \"$i\" ] && front=${current:cut:i-cut} cut=$i\n"
    "    cut=$((cut - i))\n"
    "  fi\n"
    "  COMPREPLY=()\n"
    "  while IFS= read -r word; do\n"
    "    [ -n \"$word\" ] || continue\n"
    "    [[ $word == *[=:] ]] && compopt -o nospace 2>/dev/null\n"
    "    COMPREPLY+=(\"$front${word:cut}\")\n"
    "  done <<<\"$list\"\n"
    "}\n"
    "complete -F _cltool cltool\n";

static void print_completion(const value_completion *v)
{
    static const char *const kinds[] = {
        [VALUE_OTHER] = "",        [VALUE_FILE] = "file",       [VALUE_FOLDER] = "folder",
        [VALUE_DEVICE] = "device", [VALUE_COMMAND] = "command", [VALUE_WORDS] = "words"};
    (void)printf("kind=%s named=%s list='%s' ;;\n", v->kind == VALUE_OTHER ? "''" : kinds[v->kind],
                 v->is_named ? "yes" : "''", v->words);
}

/* Prints the function that lists the options of a command. */
static void print_options(const command *commands, size_t n)
{
    size_t n_rows;
    const option_row *rows = option_rows(&n_rows);
    (void)printf("# Prints the options of the command $1.\n_cltool_options() {\n  case $1 in\n");
    for (size_t i = 0; i < n; i++) {
        (void)printf("    %s) echo '", commands[i].name);
        for (size_t k = 0; k < n_rows; k++)
            if (rows[k].groups & (commands[i].groups | OPTIONS_ALL))
                (void)printf(" --%s", rows[k].name);
        (void)printf("' ;;\n");
    }
    (void)printf("  esac\n}\n\n");
}

static void print_takes(const command *commands, size_t n)
{
    size_t n_rows;
    const option_row *rows = option_rows(&n_rows);
    (void)printf("# Sets kind, named and list for the values of the option $2 of the command $1; "
                 "fails where it takes none.\n"
                 "_cltool_takes() {\n  case \"$1 $2\" in\n");
    for (size_t k = 0; k < n_rows; k++) {
        if (!option_takes_value(&rows[k])) continue;
        const value_completion v = value_completion_of(rows[k].metavar);
        bool is_first = true;
        for (size_t i = 0; i < n; i++) {
            if (!(rows[k].groups & commands[i].groups)) continue;
            (void)printf("%s'%s --%s'", is_first ? "    " : " | ", commands[i].name, rows[k].name);
            if (rows[k].letter) (void)printf(" | '%s -%c'", commands[i].name, rows[k].letter);
            is_first = false;
        }
        if (is_first) continue;
        (void)printf(") ");
        print_completion(&v);
    }
    (void)printf("    *) return 1 ;;\n  esac\n}\n\n");
}

static void print_arguments(const command *commands, size_t n)
{
    (void)printf("# Sets kind, named and list for the argument number $2, from 0, of the command "
                 "$1.\n_cltool_argument() {\n  kind='' named='' list=''\n  case \"$1 $2\" in\n");
    for (size_t i = 0; i < n; i++) {
        value_completion items[2];
        const size_t n_items = argument_completions(commands[i].arguments, items);
        for (size_t k = 0; k < n_items; k++) {
            (void)printf(k + 1 == n_items ? "    '%s '*) " : "    '%s 0') ", commands[i].name);
            print_completion(&items[k]);
        }
    }
    (void)printf("  esac\n}\n\n");
}

void completion_bash(const command *commands, size_t n)
{
    (void)printf("# Completion of cltool for bash, as 'cltool completion bash' prints it.\n\n");
    (void)printf("_cltool_commands='");
    for (size_t i = 0; i < n; i++) (void)printf("%s%s", i > 0 ? " " : "", commands[i].name);
    (void)printf("'\n\n");
    print_options(commands, n);
    print_takes(commands, n);
    print_arguments(commands, n);
    (void)fputs(functions, stdout);
}
