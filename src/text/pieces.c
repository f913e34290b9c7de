/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements pieces.h.
 */
#include "text/pieces.h"

#include "base/memory.h"

void pieces_init(piece_list *l, size_t max_bytes)
{
    *l = (piece_list){0};
    strbuf_init(&l->text, max_bytes);
}

void pieces_clear(piece_list *l)
{
    l->text.size_bytes = 0;
    l->text.status = CLG_OK;
    l->count = 0;
}

void pieces_deinit(piece_list *l)
{
    strbuf_deinit(&l->text);
    memory_free(l->items);
    *l = (piece_list){0};
}

clg_status pieces_add(piece_list *l, piece p)
{
    if (p.start == p.end && p.id < 0 && !l->keeps_empty) return CLG_OK;
    if (l->count == l->capacity) CLG_TRY(MEMORY_RESERVE(l->items, l->capacity, l->count + 1));
    l->items[l->count++] = p;
    return CLG_OK;
}

clg_status pieces_copy(piece_list *l, const piece_list *from, const piece *p)
{
    const size_t start = l->text.size_bytes;
    if (p->id < 0)
        strbuf_append_bytes(&l->text, strbuf_data(&from->text) + p->start, p->end - p->start);
    CLG_TRY(l->text.status);
    return pieces_add(l, (piece){start, l->text.size_bytes, p->id, p->is_first});
}
