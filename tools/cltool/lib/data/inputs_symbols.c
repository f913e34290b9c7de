/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the sizes of the symbolic dimensions of a model's inputs.
 */
#include "inputs_symbols.h"

#include "output.h"
#include "suggestion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

input_symbol *symbols_find(const input_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_symbols; i++) {
        if (strcmp(set->symbols[i].name, name) == 0) return &set->symbols[i];
    }
    return NULL;
}

bool symbols_is_free(const clg_port *port, int d)
{
    return d < port->rank && port->dims[d] < 0 && port->dim_names[d][0];
}

void symbols_collect(input_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const clg_port *port = set->items[i].port;
        for (int d = 0; d < port->rank; d++) {
            if (!symbols_is_free(port, d) || symbols_find(set, port->dim_names[d])) continue;
            set->symbols = must_resize(set->symbols, set->n_symbols + 1, sizeof *set->symbols);
            set->symbols[set->n_symbols++] = (input_symbol){.name = port->dim_names[d], .size = -1};
        }
    }
}

int symbols_read(const options *o, input_set *set)
{
    for (size_t i = 0; i < o->dims.count; i++) {
        char *name;
        const char *text;
        size_t size;
        if (!option_pair(o->dims.items[i], &name, &text)) {
            return fail_usage("--dim takes SYMBOL=N, not '%s'", o->dims.items[i]);
        }
        int code = option_size("--dim", text, 0, &size);
        input_symbol *symbol = symbols_find(set, name);
        if (code == CODE_DONE && !symbol) {
            code = fail_usage("--dim: no input of the model has a free dimension '%s'",
                              printable(name));
            char *known = must_copy("");
            for (size_t k = 0; k < set->n_symbols && k < 20; k++) {
                char *longer = must_printf("%s%s%s", known, k == 0 ? "" : ", ",
                                           printable(set->symbols[k].name));
                free(known);
                known = longer;
            }
            if (known[0]) fail_hint("free are: %s", known);
            free(known);
            suggestion s;
            suggestion_begin(&s, name);
            for (size_t k = 0; k < set->n_symbols; k++) suggestion_offer(&s, set->symbols[k].name);
            (void)suggestion_hint(&s);
        }
        free(name);
        if (code != CODE_DONE) return code;
        symbol->size = (int64_t)size;
        symbol->is_given = true;
    }
    return CODE_DONE;
}

int symbols_bind(input_set *set, const input_item *item)
{
    const clg_port *port = item->port;
    for (int d = 0; port->rank == (int)item->rank && d < port->rank; d++) {
        input_symbol *symbol =
            symbols_is_free(port, d) ? symbols_find(set, port->dim_names[d]) : NULL;
        if (!symbol || item->dims[d] < 0) continue;
        if (symbol->is_given && symbol->size != item->dims[d]) {
            return fail(CODE_USAGE, CLG_ERROR_SHAPE,
                        "input '%s' has shape %s, but --dim says %s=%" PRId64,
                        printable(port->name), dims_text(item->rank, item->dims),
                        printable(symbol->name), symbol->size);
        }
        if (symbol->size < 0) symbol->size = item->dims[d];
    }
    return CODE_DONE;
}
