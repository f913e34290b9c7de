/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches the sources of groups' kernels by the properties that determine them, so that planning for
 * a new shape generates no source.
 */
#include "ops/pointwise/pointwise.h"

#define KEY_MAX                                                                                    \
    (8 + POINTWISE_MAX_INPUTS * 2 + POINTWISE_MAX_INSTRUCTIONS * (4 + POINTWISE_MAX_OPERANDS) +    \
     POINTWISE_MAX_OUTPUTS + POINTWISE_MAX_PATTERNS)

typedef struct text_key {
    uint32_t words[KEY_MAX];
    size_t count;
} text_key;

static void add(text_key *k, size_t word) { k->words[k->count++] = (uint32_t)word; }

/* Writes the key of the cache: all fields that pointwise_text and pointwise_label read. They are
 * written one by one, since the bytes of a struct include padding. */
static void make_key(const pointwise_group *g, const pointwise_layout *l, bool label, text_key *k)
{
    k->count = 0;
    add(k, label);
    add(k, g->n_inputs);
    add(k, g->n_instructions);
    add(k, g->n_outputs);
    add(k, g->n_scalars);
    add(k, l->mode);
    add(k, (size_t)l->rank);
    add(k, l->n_patterns);
    for (size_t i = 0; i < g->n_inputs; i++) {
        add(k, g->inputs[i]);
        add(k, l->pattern_of[i]);
    }
    for (size_t i = 0; i < g->n_instructions; i++) {
        const pointwise_instruction *at = &g->instructions[i];
        add(k, (size_t)(at->def - pointwise_defs));
        for (size_t o = 0; o < POINTWISE_MAX_OPERANDS; o++) add(k, at->operands[o]);
        add(k, at->dtype);
        add(k, at->first_scalar);
    }
    for (size_t i = 0; i < g->n_outputs; i++) add(k, g->outputs[i]);
    for (size_t p = 0; p < l->n_patterns; p++) add(k, l->patterns[p]);
}

static const char *kept_text(lower_context *c, const pointwise_group *g, const pointwise_layout *l,
                             bool label)
{
    text_key key;
    make_key(g, l, label, &key);
    const size_t key_bytes = key.count * sizeof key.words[0];
    const char *string = c->texts ? step_texts_find(c->texts, key.words, key_bytes) : NULL;
    if (string) return string;
    strbuf fresh;
    strbuf_init(&fresh, 0);
    if (label) {
        strbuf_append(&fresh, "pointwise ");
        pointwise_label(g, &fresh);
    } else {
        pointwise_text(g, l, &fresh);
    }
    if (fresh.status == CLG_OK)
        string = c->texts ? step_texts_keep_as(c->texts, key.words, key_bytes, strbuf_data(&fresh))
                          : arena_strdup(c->memory, strbuf_data(&fresh));
    strbuf_deinit(&fresh);
    return string;
}

clg_status pointwise_kept_texts(lower_context *c, const pointwise_group *g,
                                const pointwise_layout *layout, const char **out_text,
                                const char **out_label)
{
    *out_text = kept_text(c, g, layout, false);
    *out_label = kept_text(c, g, layout, true);
    return *out_text && *out_label ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}
