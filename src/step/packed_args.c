/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which kernel launches pass their scalar arguments packed in one struct, for drivers whose
 * launches take longer with each argument, and marks such kernels (kernel_ref.packed). See decision
 * 33.
 */
#include "step/kernel_source.h"
#include "step/step.h"

#include <stdio.h>
#include <string.h>

/* With fewer scalars, packing costs more time than it saves. */
#define MIN_SCALARS 4

/* Writes one letter for each kernel parameter (as in kernel_ref.packed) and counts the scalars.
 * Returns false for kernels with local memory or a random key, which are never packed. */
static bool write_signature(const step *s, char *out, uint32_t *out_n_scalars)
{
    static const char *const letters[] = {[ARG_BUFFER] = "bl",
                                          [ARG_INT] = "i",
                                          [ARG_LONG] = "l",
                                          [ARG_FLOAT] = "f",
                                          [ARG_FAULT] = "bi"};
    *out_n_scalars = 0;
    for (uint32_t i = 0; i < s->n_args; i++) {
        const arg_kind kind = s->args[i].kind;
        if (kind == ARG_LOCAL || kind == ARG_KEY) return false;
        for (const char *at = letters[kind]; *at; at++) {
            *out++ = *at;
            *out_n_scalars += *at != 'b';
        }
    }
    *out = '\0';
    return true;
}

/* Returns whether the step's work-groups have one work-item. */
static bool has_groups_of_one(const step *s)
{
    for (uint32_t i = 0; i < s->n_dims; i++)
        if (s->local[i] != 1) return false;
    return s->n_dims > 0;
}

/* Returns the end of a kernel's body, which closes at the first column, or on the line that opens
 * it; NULL if there is none. */
static const char *end_of_body(const char *kernel)
{
    const char *end = strstr(kernel, "\n}\n"), *open = strchr(kernel, '{');
    const char *line = open ? strchr(open, '\n') : NULL;
    return line && line[-1] == '}' ? line : end;
}

/* Returns whether `entry` can be called as a plain function: whether it is defined in the text, and
 * no definition of it (there may be one per #if branch) uses local memory. */
static bool may_be_called(const char *text, const char *entry)
{
    char head[128];
    (void)snprintf(head, sizeof head, "__kernel void %s(", entry);
    const char *form = text ? strstr(text, head) : NULL;
    bool fine = form != NULL;
    for (; form && fine; form = strstr(form + 1, head)) {
        const char *end = end_of_body(form), *local = strstr(form, "__local");
        fine = end && !(local && local < end);
    }
    return fine;
}

/* Sets *out_callable: whether the kernel can be called as a plain function; the answer is kept in
 * b->texts. Returns false when memory runs out. */
static bool is_packable(step_builder *b, const kernel_ref *k, bool *out_callable)
{
    const void *key[] = {k->source, k->entry, k->body};
    const char *known = b->texts ? step_texts_find(b->texts, key, sizeof key) : NULL;
    if (!known) {
        const kernel_source *file = k->body ? NULL : kernel_source_find(k->source);
        known = may_be_called(k->body ? k->body : file ? file->text : NULL, k->entry) ? "y" : "n";
        if (b->texts) known = step_texts_keep_as(b->texts, key, sizeof key, known);
    }
    *out_callable = known && *known == 'y';
    return known != NULL;
}

/* Marks the kernel of a step if its arguments should be packed. Returns false when memory runs
 * out. */
static bool join(step_builder *b, step *s)
{
    char letters[2 * STEP_MAX_ARGS + 1];
    uint32_t n;
    bool callable;
    if (s->kind != STEP_KERNEL || !has_groups_of_one(s) || !write_signature(s, letters, &n) ||
        n < MIN_SCALARS)
        return true;
    if (!is_packable(b, &s->kernel, &callable)) return false;
    if (!callable) return true;
    s->kernel.packed =
        b->texts ? step_texts_keep(b->texts, letters) : arena_strdup(b->memory, letters);
    return s->kernel.packed != NULL;
}

clg_status step_builder_pack_args(step_builder *b)
{
    bool fine = true;
    for (candidate *c = b->candidates; c && fine; c = c->next) {
        for (step *s = c->steps; s && fine; s = s->next) fine = join(b, s);
        for (uint32_t i = 0; i < c->n_packings && fine; i++)
            for (step *s = c->packings[i].steps; s && fine; s = s->next) fine = join(b, s);
    }
    return fine ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}
