/* SPDX-License-Identifier: Apache-2.0
 *
 * "post_processor" of tokenizer.json: special tokens around those of a text.
 */
#ifndef CLG_TEXT_TEMPLATE_H
#define CLG_TEXT_TEMPLATE_H

#include "text/models/token_model.h"

enum { TEMPLATE_TEXT = -1 }; /* where the text's tokens are */

/* Reads the ids around a text, TEMPLATE_TEXT among them, from the member; ids are below n_ids. The
 * caller frees out_template->ids in any case. UNSUPPORTED_ATTRIBUTE names another type. */
clg_status template_read(const json_t *root, size_t n_ids, id_list *out_template);

#endif
