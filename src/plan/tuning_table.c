/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the tuning table: a map from problems (one line of text that describes a lowered node)
 * to the names of the implementations measured to be fastest; parses and prints its text format,
 * and formats a node's problem.
 */
#include "plan/tuning_table.h"

#include "base/hash.h"
#include "base/hash_map.h"
#include "base/threads.h"

#include <string.h>

#define HEADER "clgraph choices 1\n"
#define MAX_TEXT ((size_t)4 << 20) /* bytes */

typedef struct entry {
    const char *problem, *impl;
} entry;

struct tuning_table {
    refcount refs;
    arena memory;
    hash_map index; /* problem -> index of its entry */
    entry *entries;
    size_t count, capacity;
};

/* ---- the table ------------------------------------------------------------------------------- */

/* Adds or replaces the entry of a problem. */
static clg_status set(tuning_table *t, const char *problem, size_t n_problem, const char *impl,
                      size_t n_impl)
{
    size_t at = hash_map_get(&t->index, problem, n_problem);
    const char *kept = arena_strndup(&t->memory, impl, n_impl);
    if (!kept) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (at == HASH_MAP_NONE) {
        CLG_TRY(MEMORY_RESERVE(t->entries, t->capacity, t->count + 1));
        at = t->count;
        t->entries[at].problem = arena_strndup(&t->memory, problem, n_problem);
        if (!t->entries[at].problem) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        CLG_TRY(hash_map_set(&t->index, problem, n_problem, at));
        t->count++;
    }
    t->entries[at].impl = kept;
    return CLG_OK;
}

/* Adds the entries of a text in the table's format. */
static clg_status read_lines(tuning_table *t, const char *lines)
{
    if (strlen(lines) > MAX_TEXT)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "the text of choices is too long");
    if (strncmp(lines, HEADER, strlen(HEADER)) != 0)
        return error_set(
            CLG_ERROR_INVALID_ARGUMENT,
            "this is not a list of choices: its first line is not 'clgraph choices 1'");
    lines += strlen(HEADER);
    for (int number = 2; *lines; number++) {
        const char *end = strchr(lines, '\n'), *tab = strchr(lines, '\t');
        if (!end) end = lines + strlen(lines);
        if (!tab || tab >= end || tab == lines || tab + 1 == end)
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "line %d of the choices is not an implementation, a tab and a problem",
                             number);
        CLG_TRY(set(t, tab + 1, (size_t)(end - tab - 1), lines, (size_t)(tab - lines)));
        lines = *end ? end + 1 : end;
    }
    return CLG_OK;
}

clg_status tuning_table_add(const tuning_table *old, const char *lines, tuning_table **out_table)
{
    *out_table = NULL;
    tuning_table *t = memory_zalloc(1, sizeof *t);
    if (!t) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&t->refs);
    clg_status status = CLG_OK;
    for (size_t i = 0; old && i < old->count && status == CLG_OK; i++) {
        const entry *e = &old->entries[i];
        status = set(t, e->problem, strlen(e->problem), e->impl, strlen(e->impl));
    }
    if (status == CLG_OK) status = read_lines(t, lines);
    if (status == CLG_OK)
        *out_table = t;
    else
        tuning_table_free(t);
    return status;
}

tuning_table *tuning_table_retain(tuning_table *t)
{
    if (t) refcount_retain(&t->refs);
    return t;
}

void tuning_table_free(tuning_table *t)
{
    if (!t || !refcount_release(&t->refs)) return;
    hash_map_deinit(&t->index);
    memory_free(t->entries);
    arena_deinit(&t->memory);
    memory_free(t);
}

const char *tuning_table_find(const tuning_table *t, const char *problem)
{
    const size_t at = t ? hash_map_get_string(&t->index, problem) : HASH_MAP_NONE;
    return at == HASH_MAP_NONE ? NULL : t->entries[at].impl;
}

void tuning_table_text(const tuning_table *t, strbuf *out)
{
    strbuf_append(out, HEADER);
    for (size_t i = 0; t && i < t->count; i++)
        strbuf_printf(out, "%s\t%s\n", t->entries[i].impl, t->entries[i].problem);
}

/* ---- a problem ------------------------------------------------------------------------------- */

static uint64_t hash_attribute(const graph_attribute *a, uint64_t seed)
{
    const uint64_t named = hash_bytes(a->name, strlen(a->name), seed);
    switch (a->type) {
    case ATTRIBUTE_FLOAT: return hash_bytes(&a->as.f, sizeof a->as.f, named);
    case ATTRIBUTE_INT: return hash_bytes(&a->as.i, sizeof a->as.i, named);
    case ATTRIBUTE_STRING: return hash_bytes(a->as.s, a->count, named);
    case ATTRIBUTE_FLOATS: return hash_bytes(a->as.floats, a->count * sizeof(float), named);
    case ATTRIBUTE_INTS: return hash_bytes(a->as.ints, a->count * sizeof(int64_t), named);
    default: return named; /* other types do not influence kernels */
    }
}

/* Appends dtype and shape; suffix s: strided, c: constant; "-": absent. */
static void append_operand(const lower_operand *o, strbuf *out)
{
    if (o->dtype == CLG_DTYPE_NONE) {
        strbuf_append(out, " -");
        return;
    }
    strbuf_printf(out, " %s[", dtype_name(o->dtype));
    for (int i = 0; i < o->dims.rank; i++)
        strbuf_printf(out, "%s%lld", i ? "," : "", (long long)o->dims.dims[i]);
    strbuf_append(out, o->dense ? "]" : "]s");
    if (o->constant) strbuf_append(out, "c");
}

void tuning_problem(const lower_context *c, strbuf *out)
{
    uint64_t attributes = 0; /* summed, so that the order of attributes does not matter */
    for (size_t i = 0; i < c->node->n_attributes; i++)
        attributes += hash_attribute(&c->node->attributes[i], 0);
    strbuf_printf(out, "%s %s", c->row->name, lower_is_simd(c) ? "simd" : "simt");
    for (size_t i = 0; i < c->n_inputs; i++) append_operand(&c->inputs[i], out);
    strbuf_append(out, " >");
    for (size_t i = 0; i < c->n_outputs; i++) append_operand(&c->outputs[i], out);
    strbuf_printf(out, " %016llx", (unsigned long long)attributes);
}
