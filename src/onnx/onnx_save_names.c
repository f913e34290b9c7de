/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the names of values in a saved file. In the graph, a subgraph's name for a value of an
 * enclosing graph is the subgraph's own: inlining a function makes it differ from the value's name.
 * In a file there is one name. Where a value of the subgraph has that name too, it gets another.
 */
#include "onnx/onnx_save_internal.h"

#include <string.h>

/* Adds the names that stand for values of enclosing graphs, and that the subgraph itself knows
 * under other names, to `taken`. */
static clg_status name_outer(const graph *g, const save_scope *outer, const char **names,
                             hash_map *taken)
{
    for (size_t i = 0; i < g->n_values; i++) {
        const value *v = &g->values[i];
        if (!v->is_outer) continue;
        names[i] = outer->names[v->outer];
        if (strcmp(names[i], v->name) != 0) CLG_TRY(hash_map_set_string(taken, names[i], i));
    }
    return CLG_OK;
}

/* Sets *name to a name that no value of the subgraph has. */
static clg_status rename_value(onnx_saver *s, const graph *g, hash_map *taken, const char **name)
{
    const char *made = NULL;
    for (size_t i = 1;; i++) {
        made = arena_printf(&s->memory, "%s#%zu", *name, i);
        if (!made) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        if (graph_find_value(g, made) == VALUE_NONE &&
            hash_map_get_string(taken, made) == HASH_MAP_NONE)
            break;
    }
    *name = made;
    return hash_map_set_string(taken, made, 0);
}

static clg_status name_own(onnx_saver *s, const graph *g, const char **names, hash_map *taken)
{
    for (size_t i = 0; i < g->n_values; i++) {
        if (g->values[i].is_outer) continue;
        names[i] = g->values[i].name;
        if (hash_map_get_string(taken, names[i]) != HASH_MAP_NONE)
            CLG_TRY(rename_value(s, g, taken, &names[i]));
    }
    return CLG_OK;
}

const save_scope *save_scope_create(onnx_saver *s, const graph *g, const save_scope *outer)
{
    hash_map taken = {0};
    save_scope *scope = arena_alloc(&s->memory, 1, sizeof *scope);
    const char **names = arena_alloc(&s->memory, g->n_values + 1, sizeof *names);
    clg_status status = scope && names ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK && outer) status = name_outer(g, outer, names, &taken);
    if (status == CLG_OK) status = name_own(s, g, names, &taken);
    hash_map_deinit(&taken);
    wire_fail(&s->w, status);
    if (status != CLG_OK) return NULL;
    *scope = (save_scope){.graph = g,
                          .names = names,
                          .opsets = outer ? outer->opsets : g->opsets,
                          .n_opsets = outer ? outer->n_opsets : g->n_opsets};
    return scope;
}

int64_t save_opset(const save_scope *scope, const char *domain)
{
    for (size_t i = 0; i < scope->n_opsets; i++)
        if (strcmp(scope->opsets[i].domain, domain) == 0) return scope->opsets[i].version;
    return 0;
}
