/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps, for each node of a graph, what planning it gave last time: the facts of its inputs and
 * outputs, and its lowering. A plan for other shapes, such as the next step of a growing cache,
 * then infers and lowers only the nodes whose inputs differ, and of those with equal operators,
 * attributes and inputs - the layers of a decoder - only the first. Everything else - lifetimes,
 * memory, order - is planned anew. See decision 81.
 *
 * What one segment adds is in a block, with references from the entries that are in it and from all
 * segments that use its steps.
 */
#include "base/hash_map.h"
#include "base/strbuf.h"
#include "plan/state.h"

#include <string.h>

/* A segment uses so many blocks at most: what is in others is planned anew, which gathers the
 * entries in its own block. */
#define MAX_BLOCKS 16

/* Graphs of more nodes have no memo, of one or two kilobytes a node. */
#define MAX_NODES 16384

/* Of the nodes that are like each other, so many that were inferred last are looked at: a layer has
 * several, such as the products of scores and of values, whose inputs differ. */
#define MAX_NEWEST 8

/* Tensors that are not the same one are compared up to this size. */
#define MAX_COMPARED_BYTES ((size_t)1 << 16)

typedef struct memo_block {
    refcount refs;
    arena memory;
    tensor **held; /* references to the tensors in facts */
    size_t n_held, held_capacity;
    size_t held_bytes; /* of those that are not weights */
} memo_block;

/* How an input is stored. */
typedef struct memo_layout {
    bool dense, weight;
    int64_t strides[CLG_MAX_RANK]; /* unless dense */
} memo_layout;

typedef struct memo_entry {
    memo_block *block;          /* a reference; NULL: nothing is kept */
    const value_fact *facts;    /* of the inputs, then of the outputs */
    const memo_layout *layouts; /* of the inputs */
    node_lowering *lowering;    /* for these layouts; NULL: none */
} memo_entry;

/* The nodes of one kind that were inferred last; `next` is where the following one goes. */
typedef struct memo_newest {
    node_id nodes[MAX_NEWEST];
    uint32_t count, next;
} memo_newest;

struct plan_memo {
    memo_entry *entries; /* by node */
    size_t n_entries;
    node_id *first_like; /* by node: the first one with an equal operator and attributes */
    memo_newest *newest; /* by such a first one */
    /* of the last root segment: its blocks as placed, its slabs, and its live_bytes */
    plan_block *placed;
    size_t n_placed, placed_capacity;
    size_t *slab_bytes;
    size_t n_slabs, slabs_capacity, live_bytes;
};

/* ---- blocks ---------------------------------------------------------------------------------- */

void memo_block_free(memo_block *block)
{
    if (!block || !refcount_release(&block->refs)) return;
    for (size_t i = 0; i < block->n_held; i++) tensor_free(block->held[i]);
    memory_free(block->held);
    arena_deinit(&block->memory);
    memory_free(block);
}

size_t memo_block_size_bytes(const memo_block *block)
{
    return block ? sizeof *block + block->memory.size_bytes + block->held_bytes : 0;
}

/* Adds a reference to a block to the segment being planned. */
static clg_status add_block(plan_segment *segment, memo_block *block)
{
    CLG_TRY(MEMORY_RESERVE(segment->blocks, segment->blocks_capacity, segment->n_blocks + 1));
    refcount_retain(&block->refs);
    segment->blocks[segment->n_blocks++] = block;
    return CLG_OK;
}

/* Lets the segment being planned use a block. *out_may: it does. */
static clg_status use_block(plan_segment *segment, memo_block *block, bool *out_may)
{
    *out_may = true;
    for (size_t i = 0; i < segment->n_blocks; i++)
        if (segment->blocks[i] == block) return CLG_OK;
    *out_may = segment->n_blocks < MAX_BLOCKS;
    return *out_may ? add_block(segment, block) : CLG_OK;
}

/* Finds the block of the segment being planned, or creates it. */
static clg_status own_block(plan_state *s, memo_block **out_block)
{
    *out_block = s->block;
    if (s->block) return CLG_OK;
    memo_block *block = memory_zalloc(1, sizeof *block);
    if (!block) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    refcount_init(&block->refs);
    const clg_status status = add_block(s->segment, block);
    memo_block_free(block); /* the segment has it */
    if (status == CLG_OK) *out_block = s->block = block;
    return status;
}

/* ---- the memo -------------------------------------------------------------------------------- */

/* Appends which inputs and outputs a node has. */
static void append_presence(const node *n, strbuf *t)
{
    for (size_t i = 0; i < n->n_inputs; i++)
        strbuf_append_bytes(t, n->inputs[i] == VALUE_NONE ? "-" : "i", 1);
    for (size_t i = 0; i < n->n_outputs; i++)
        strbuf_append_bytes(t, n->outputs[i] == VALUE_NONE ? "-" : "o", 1);
}

/* Finds the first node that is like node i, and adds it to `seen` if it is that. */
static clg_status find_like(plan_memo *m, const graph *g, node_id i, hash_map *seen)
{
    const node *n = &g->nodes[i];
    strbuf key;
    m->first_like[i] = i;
    if (!node_has_key(n)) return CLG_OK;
    strbuf_init(&key, 0);
    node_append_key(n, &key);
    append_presence(n, &key);
    clg_status status = key.status;
    const size_t first =
        status == CLG_OK ? hash_map_get(seen, strbuf_data(&key), key.size_bytes) : HASH_MAP_NONE;
    if (first != HASH_MAP_NONE)
        m->first_like[i] = (node_id)first;
    else if (status == CLG_OK)
        status = hash_map_set(seen, strbuf_data(&key), key.size_bytes, i);
    strbuf_deinit(&key);
    return status;
}

static clg_status memo_init(plan_memo *m, const graph *g)
{
    hash_map seen = {0};
    m->n_entries = g->n_nodes;
    m->entries = memory_zalloc(g->n_nodes + 1, sizeof *m->entries);
    m->first_like = memory_zalloc(g->n_nodes + 1, sizeof *m->first_like);
    m->newest = memory_zalloc(g->n_nodes + 1, sizeof *m->newest);
    if (!m->entries || !m->first_like || !m->newest) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    clg_status status = CLG_OK;
    for (node_id i = 0; i < g->n_nodes && status == CLG_OK; i++) status = find_like(m, g, i, &seen);
    hash_map_deinit(&seen);
    return status;
}

clg_status plan_memo_create(const graph *g, plan_memo **out_memo)
{
    *out_memo = NULL;
    if (g->n_nodes > MAX_NODES) return CLG_OK;
    plan_memo *m = memory_zalloc(1, sizeof *m);
    if (!m) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    const clg_status status = memo_init(m, g);
    if (status == CLG_OK)
        *out_memo = m;
    else
        plan_memo_free(m);
    return status;
}

static void forget(memo_entry *e)
{
    memo_block_free(e->block);
    *e = (memo_entry){0};
}

void plan_memo_clear(plan_memo *m)
{
    if (!m) return;
    for (size_t i = 0; m->entries && i < m->n_entries; i++) forget(&m->entries[i]);
    m->n_placed = 0;
}

void plan_memo_free(plan_memo *m)
{
    if (!m) return;
    plan_memo_clear(m);
    memory_free(m->entries);
    memory_free(m->first_like);
    memory_free(m->newest);
    memory_free(m->placed);
    memory_free(m->slab_bytes);
    memory_free(m);
}

/* Returns the entry of a node of the main graph; NULL if there is no memo for it. */
static memo_entry *entry_of(const plan_state *s, const node *n)
{
    plan_memo *m = s->context->memo;
    if (!m || s->n_scopes != 1) return NULL;
    const node_id id = state_main_node(s);
    return id < m->n_entries && n == &s->context->graph->nodes[id] ? &m->entries[id] : NULL;
}

/* Returns the nodes like that of entry e that were inferred last; often its own is one. */
static memo_newest *newest_of(const plan_state *s, const memo_entry *e)
{
    const plan_memo *m = s->context->memo;
    return &m->newest[m->first_like[e - m->entries]];
}

/* ---- facts ----------------------------------------------------------------------------------- */

static bool is_same(const value_fact *a, const value_fact *b)
{
    if (a->known && a->known == b->known) return true; /* which has the dtype and the shape */
    if (a->kind != b->kind || a->dtype != b->dtype || !shape_equal(&a->dims, &b->dims))
        return false;
    if (a->known == b->known) return true;
    return a->known && b->known && a->known->size_bytes <= MAX_COMPARED_BYTES &&
           tensor_equal(a->known, b->known);
}

static bool has_facts(const plan_state *s, const memo_entry *e, const node *n)
{
    if (!e->block) return false;
    for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i] != VALUE_NONE && !is_same(&e->facts[i], &s->values[n->inputs[i]].fact))
            return false;
    return true;
}

/* Returns the entry with facts for the inputs of node n, whose own entry is e: e, or that of a node
 * like it; NULL without one. */
static const memo_entry *find_facts(const plan_state *s, const memo_entry *e, const node *n)
{
    const memo_newest *newest = newest_of(s, e);
    if (has_facts(s, e, n)) return e;
    for (uint32_t i = 0; i < newest->count; i++) {
        const memo_entry *like = &s->context->memo->entries[newest->nodes[i]];
        if (like != e && has_facts(s, like, n)) return like;
    }
    return NULL;
}

/* Lets entry e have the facts of `like`, an entry for the same inputs. */
static void take_facts(memo_entry *e, const memo_entry *like)
{
    refcount_retain(&like->block->refs);
    forget(e);
    e->block = like->block;
    e->facts = like->facts;
}

clg_status memo_recall(plan_state *s, const node *n, bool *out_found, bool *out_all_known)
{
    memo_entry *e = entry_of(s, n);
    *out_found = false;
    if (!e) return CLG_OK;
    const memo_entry *found = find_facts(s, e, n);
    if (!found) return CLG_OK;
    CLG_TRY(use_block(s->segment, found->block, out_found));
    if (!*out_found) return CLG_OK;
    if (found != e) take_facts(e, found);
    *out_all_known = true;
    for (size_t i = 0; i < n->n_outputs; i++) {
        if (n->outputs[i] == VALUE_NONE) continue;
        plan_value *v = &s->values[n->outputs[i]];
        v->fact = e->facts[n->n_inputs + i];
        shape_strides(&v->fact.dims, v->strides);
        if (v->fact.known)
            CLG_TRY(state_hold(s, tensor_retain((tensor *)v->fact.known)));
        else
            *out_all_known = false;
    }
    return CLG_OK;
}

/* Copies the fact of a value; the block keeps a reference to its tensor. */
static clg_status copy_fact(memo_block *block, const plan_value *from, value_fact *to)
{
    const tensor *known = from->fact.known;
    if (known) {
        CLG_TRY(MEMORY_RESERVE(block->held, block->held_capacity, block->n_held + 1));
        block->held[block->n_held++] = tensor_retain((tensor *)known);
        if (!from->weight) block->held_bytes += sizeof *known + known->size_bytes;
    }
    *to = from->fact;
    return CLG_OK;
}

/* Returns whether the contents of a value are too large to be kept: those of a run, such as an
 * image or a text, which the next run would not find again. Weights are in memory anyway. */
static bool is_large(const plan_value *v)
{
    const tensor *known = v->weight ? NULL : v->fact.known;
    return known && (known->dtype == CLG_STRING || known->size_bytes > MAX_COMPARED_BYTES);
}

/* Returns whether all inputs and outputs of the node are tensors that the memo keeps. */
static bool are_kept(const plan_state *s, const node *n)
{
    for (size_t i = 0; i < n->n_inputs + n->n_outputs; i++) {
        const value_id v = i < n->n_inputs ? n->inputs[i] : n->outputs[i - n->n_inputs];
        if (v != VALUE_NONE &&
            (s->values[v].fact.kind != CLG_VALUE_TENSOR || is_large(&s->values[v])))
            return false;
    }
    return true;
}

/* Adds a node to those that were inferred last, unless it is one. */
static void note_newest(memo_newest *newest, node_id id)
{
    for (uint32_t i = 0; i < newest->count; i++)
        if (newest->nodes[i] == id) return;
    newest->nodes[newest->next] = id;
    newest->next = (newest->next + 1) % MAX_NEWEST;
    if (newest->count < MAX_NEWEST) newest->count++;
}

clg_status memo_keep_facts(plan_state *s, const node *n)
{
    memo_entry *e = entry_of(s, n);
    memo_block *block;
    const size_t n_facts = n->n_inputs + n->n_outputs;
    if (!e) return CLG_OK;
    forget(e);
    if (!are_kept(s, n)) return CLG_OK;
    CLG_TRY(own_block(s, &block));
    value_fact *facts = arena_alloc(&block->memory, n_facts + 1, sizeof *facts);
    if (!facts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n_facts; i++) {
        const value_id v = i < n->n_inputs ? n->inputs[i] : n->outputs[i - n->n_inputs];
        if (v != VALUE_NONE) CLG_TRY(copy_fact(block, &s->values[v], &facts[i]));
    }
    refcount_retain(&block->refs);
    *e = (memo_entry){.block = block, .facts = facts};
    note_newest(newest_of(s, e), state_main_node(s));
    return CLG_OK;
}

/* ---- lowerings ------------------------------------------------------------------------------- */

static bool has_layouts(const plan_state *s, const memo_entry *e, const node *n)
{
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE) continue;
        const plan_value *v = &s->values[n->inputs[i]];
        const memo_layout *l = &e->layouts[i];
        if (v->dense != l->dense || v->weight != l->weight) return false;
        for (int d = 0; !v->dense && d < v->fact.dims.rank; d++)
            if (v->strides[d] != l->strides[d]) return false;
    }
    return true;
}

static bool has_lowering(const plan_state *s, const memo_entry *e, const node *n, uint32_t in_place)
{
    return e->lowering && e->lowering->in_place == in_place && has_layouts(s, e, n);
}

/* Returns whether a lowering is the same for all nodes with equal inputs: its random numbers are
 * not the node's own. */
static bool is_common(const node_lowering *l)
{
    for (const step *what = l->views ? NULL : l->choice.impl->steps; what; what = what->next)
        if (what->draws) return false;
    return true;
}

/* Returns the entry of a node like that of entry e, with the same facts and with a lowering that e
 * may have, too; NULL without one. */
static const memo_entry *find_lowering(const plan_state *s, const memo_entry *e, const node *n,
                                       uint32_t in_place)
{
    const memo_newest *newest = newest_of(s, e);
    for (uint32_t i = 0; e->block && i < newest->count; i++) {
        const memo_entry *like = &s->context->memo->entries[newest->nodes[i]];
        if (like != e && like->facts == e->facts && has_lowering(s, like, n, in_place) &&
            is_common(like->lowering))
            return like;
    }
    return NULL;
}

clg_status memo_find(plan_state *s, const node *n, uint32_t in_place, node_lowering **out_found)
{
    memo_entry *e = entry_of(s, n);
    *out_found = NULL;
    if (!e) return CLG_OK;
    if (has_lowering(s, e, n, in_place)) {
        *out_found = e->lowering;
        return CLG_OK;
    }
    const memo_entry *like = find_lowering(s, e, n, in_place);
    if (!like) return CLG_OK;
    node_lowering *own = arena_alloc(&e->block->memory, 1, sizeof *own);
    if (!own) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *own = *like->lowering;
    for (size_t i = 0; i < CANDIDATE_MAX_PACKINGS; i++) own->packed[i] = PLAN_APART;
    e->layouts = like->layouts;
    e->lowering = *out_found = own;
    return CLG_OK;
}

/* Copies a list of steps. */
static clg_status copy_steps(const plan_state *s, memo_block *block, const step *from, step **link)
{
    *link = NULL;
    for (; from; from = from->next) {
        step *copy = step_clone(from, &block->memory, s->context->texts);
        if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        *link = copy;
        link = &copy->next;
    }
    return CLG_OK;
}

static clg_status copy_candidate(const plan_state *s, memo_block *block, const candidate *from,
                                 const candidate **out_copy)
{
    candidate *copy = arena_alloc(&block->memory, 1, sizeof *copy);
    if (!copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *copy = *from;
    copy->next = NULL;
    copy->last_step = NULL;
    copy->refusal_text = NULL;
    copy->variant = step_texts_keep(s->context->texts, from->variant);
    if (!copy->variant) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    CLG_TRY(copy_steps(s, block, from->steps, &copy->steps));
    for (uint32_t i = 0; i < from->n_packings; i++) {
        copy->packings[i].recipe = arena_strdup(&block->memory, from->packings[i].recipe);
        if (!copy->packings[i].recipe) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        CLG_TRY(copy_steps(s, block, from->packings[i].steps, &copy->packings[i].steps));
    }
    *out_copy = copy;
    return CLG_OK;
}

static void *copy_array(memo_block *block, const void *from, size_t n, size_t item_bytes)
{
    void *copy = arena_alloc(&block->memory, n + 1, item_bytes);
    if (copy && n) memcpy(copy, from, n * item_bytes);
    return copy;
}

/* Copies the result of lowering to the block. */
static clg_status copy_lowering(const plan_state *s, memo_block *block, const lower_context *lc,
                                const plan_choice *choice, node_lowering **out_copy)
{
    node_lowering *l = arena_alloc(&block->memory, 1, sizeof *l);
    if (!l) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    *l = (node_lowering){.choice = *choice, .in_place = lc->in_place, .is_kept = true};
    for (size_t i = 0; i < CANDIDATE_MAX_PACKINGS; i++) l->packed[i] = PLAN_APART;
    *out_copy = l;
    if (lc->is_view) {
        l->views = copy_array(block, lc->views, lc->n_outputs, sizeof *lc->views);
        return l->views ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    }
    l->joins = copy_array(block, lc->joins, lc->n_inputs, sizeof *lc->joins);
    if (!l->joins) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    return copy_candidate(s, block, choice->impl, &l->choice.impl);
}

static clg_status copy_layouts(const plan_state *s, memo_block *block, const node *n,
                               const memo_layout **out_copy)
{
    memo_layout *layouts = arena_alloc(&block->memory, n->n_inputs + 1, sizeof *layouts);
    if (!layouts) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n->n_inputs; i++) {
        if (n->inputs[i] == VALUE_NONE) continue;
        const plan_value *v = &s->values[n->inputs[i]];
        layouts[i] = (memo_layout){.dense = v->dense, .weight = v->weight};
        memcpy(layouts[i].strides, v->strides, sizeof layouts[i].strides);
    }
    *out_copy = layouts;
    return CLG_OK;
}

clg_status memo_keep(plan_state *s, const lower_context *lc, const plan_choice *choice,
                     node_lowering **out_kept)
{
    memo_entry *e = entry_of(s, lc->node);
    node_lowering *kept;
    const memo_layout *layouts;
    *out_kept = NULL;
    if (!e || !e->block) return CLG_OK;
    if (e->block != s->block) CLG_TRY(memo_keep_facts(s, lc->node)); /* to one block */
    if (!e->block) return CLG_OK;
    CLG_TRY(copy_layouts(s, e->block, lc->node, &layouts));
    CLG_TRY(copy_lowering(s, e->block, lc, choice, &kept));
    e->layouts = layouts;
    e->lowering = *out_kept = kept;
    return CLG_OK;
}

/* ---- slabs ----------------------------------------------------------------------------------- */

static bool are_placed(const plan_memo *m, const plan_block *blocks, size_t n_blocks)
{
    if (m->n_placed != n_blocks || n_blocks == 0) return false;
    for (size_t i = 0; i < n_blocks; i++) {
        const plan_block *a = &m->placed[i], *b = &blocks[i];
        if (a->size_bytes != b->size_bytes || a->first_step != b->first_step ||
            a->last_step != b->last_step)
            return false;
    }
    return true;
}

/* Records a placement. */
static clg_status keep_placement(plan_memo *m, const plan_state *s, const plan_block *blocks,
                                 size_t n_blocks)
{
    m->n_placed = 0; /* remains so when this fails half-way */
    CLG_TRY(MEMORY_RESERVE(m->placed, m->placed_capacity, n_blocks + 1));
    CLG_TRY(MEMORY_RESERVE(m->slab_bytes, m->slabs_capacity, s->n_slabs + 1));
    if (s->n_slabs) memcpy(m->slab_bytes, s->slab_bytes, s->n_slabs * sizeof *s->slab_bytes);
    if (n_blocks) memcpy(m->placed, blocks, n_blocks * sizeof *blocks);
    m->n_placed = n_blocks;
    m->n_slabs = s->n_slabs;
    m->live_bytes = s->segment->live_bytes;
    return CLG_OK;
}

clg_status memo_place_blocks(plan_state *s, plan_block *blocks, size_t n_blocks, size_t align_bytes)
{
    plan_memo *m = s->segment->depth == 0 && s->n_slabs == 0 ? s->context->memo : NULL;
    if (m && are_placed(m, blocks, n_blocks)) {
        size_t *slab_bytes = memory_resize(s->slab_bytes, (m->n_slabs + 1) * sizeof *slab_bytes);
        if (!slab_bytes) return CLG_ERROR_OUT_OF_HOST_MEMORY;
        if (m->n_slabs) memcpy(slab_bytes, m->slab_bytes, m->n_slabs * sizeof *slab_bytes);
        s->slab_bytes = slab_bytes;
        memcpy(blocks, m->placed, n_blocks * sizeof *blocks);
        s->n_slabs = m->n_slabs;
        s->segment->live_bytes = m->live_bytes;
        return CLG_OK;
    }
    CLG_TRY(plan_place_blocks(blocks, n_blocks, align_bytes,
                              (size_t)s->context->caps->max_alloc_bytes, &s->slab_bytes,
                              &s->n_slabs, &s->segment->live_bytes));
    return m ? keep_placement(m, s, blocks, n_blocks) : CLG_OK;
}
