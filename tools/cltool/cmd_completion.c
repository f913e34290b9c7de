/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool completion: prints the completion script of a shell.
 */
#include "cltool.h"

#include "completion.h"

int cmd_completion(const options *o)
{
    static const struct {
        const char *shell;
        void (*print)(const command *commands, size_t n);
    } shells[] = {{"bash", completion_bash},
                  {"zsh", completion_zsh},
                  {"fish", completion_fish},
                  {NULL, NULL}};
    size_t i, n;
    const command *commands = commands_all(&n);
    if (o->json) return fail_usage("'cltool completion' prints no JSON");
    const int code =
        option_word("'cltool completion'", o->arguments[0], &shells->shell, sizeof *shells, &i);
    if (code == CODE_DONE) shells[i].print(commands, n);
    return code;
}
