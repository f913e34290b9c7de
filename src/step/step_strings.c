/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the collection of kernel texts, which keeps each text once, and copies steps, which
 * refer to these texts.
 */
#include "step/step.h"

#include <string.h>

const char *step_texts_keep(step_texts *t, const char *string)
{
    if (arena_owns(&t->memory, string)) return string;
    const size_t n = strlen(string), known = hash_map_get(&t->index, string, n);
    if (known != HASH_MAP_NONE) return (const char *)(uintptr_t)known;
    const char *copy = arena_strndup(&t->memory, string, n);
    if (!copy || hash_map_set(&t->index, string, n, (size_t)(uintptr_t)copy) != CLG_OK) return NULL;
    return copy;
}

const char *step_texts_find(const step_texts *t, const void *key, size_t key_bytes)
{
    const size_t known = hash_map_get(&t->generated, key, key_bytes);
    return known == HASH_MAP_NONE ? NULL : (const char *)(uintptr_t)known;
}

const char *step_texts_keep_as(step_texts *t, const void *key, size_t key_bytes, const char *string)
{
    const char *kept = step_texts_keep(t, string);
    if (!kept || hash_map_set(&t->generated, key, key_bytes, (size_t)(uintptr_t)kept) != CLG_OK)
        return NULL;
    return kept;
}

void step_texts_deinit(step_texts *t)
{
    hash_map_deinit(&t->index);
    hash_map_deinit(&t->generated);
    arena_deinit(&t->memory);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Replaces a string by a kept or copied one; NULL stays. Returns false when memory runs out. */
static bool keep(const char **string, arena *memory, step_texts *texts)
{
    if (!*string) return true;
    *string = texts ? step_texts_keep(texts, *string) : arena_strdup(memory, *string);
    return *string != NULL;
}

step *step_clone(const step *s, arena *memory, step_texts *texts)
{
    step *copy = arena_alloc(memory, 1, sizeof *copy);
    if (!copy) return NULL;
    *copy = *s;
    copy->next = NULL;
    copy->args = arena_alloc(memory, s->n_args ? s->n_args : 1, sizeof *copy->args);
    if (!copy->args) return NULL;
    if (s->n_args) memcpy(copy->args, s->args, s->n_args * sizeof *copy->args);
    const char **strings[] = {&copy->label,          &copy->kernel.source, &copy->kernel.entry,
                              &copy->kernel.prelude, &copy->kernel.body,   &copy->kernel.packed};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (!keep(strings[i], memory, texts)) return NULL;
    return copy;
}
