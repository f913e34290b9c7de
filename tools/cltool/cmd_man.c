/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool man: prints man pages in roff.
 */
#include "cltool.h"

#include "completion.h"

int cmd_man(const options *o)
{
    size_t i, n;
    const command *commands = commands_all(&n);
    if (o->json) return fail_usage("'cltool man' prints no JSON");
    if (o->n_arguments == 0) {
        manual_overview(commands, n);
        return CODE_DONE;
    }
    const int code = command_find(o->arguments[0], &i);
    if (code == CODE_DONE) manual_command(&commands[i]);
    return code;
}
