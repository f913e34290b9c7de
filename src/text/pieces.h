/* SPDX-License-Identifier: Apache-2.0
 *
 * A text in pieces: what the steps of a tokenizer pass on. A piece is a range of the text that is
 * still to be split, or a token that is known.
 */
#ifndef CLG_TEXT_PIECES_H
#define CLG_TEXT_PIECES_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct piece {
    size_t start, end; /* of its text, in bytes; of a token they need not be */
    int32_t id;        /* of its token, -1: text */
    bool is_first;     /* it has the first character of the input */
} piece;

typedef struct piece_list {
    strbuf text;
    piece *items;
    size_t count, capacity;
    bool keeps_empty; /* pieces_add adds those without text too */
} piece_list;

/* max_bytes: of the text. */
void pieces_init(piece_list *l, size_t max_bytes);
void pieces_clear(piece_list *l); /* keeps the memory */
void pieces_deinit(piece_list *l);
static inline void pieces_swap(piece_list *a, piece_list *b)
{
    const piece_list moved = *a;
    *a = *b;
    *b = moved;
}
/* Adds a piece whose text is in the list; an empty text adds nothing, unless keeps_empty. */
clg_status pieces_add(piece_list *l, piece p);
/* Copies a piece of another list with its text, a token without: tokens may overlap. */
clg_status pieces_copy(piece_list *l, const piece_list *from, const piece *p);
/* Ends a piece that starts at byte `start` of the text. */
static inline clg_status pieces_end(piece_list *l, size_t start, bool is_first)
{
    CLG_TRY(l->text.status);
    return pieces_add(l, (piece){start, l->text.size_bytes, -1, is_first});
}

#endif
