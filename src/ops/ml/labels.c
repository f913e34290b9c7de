/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads class labels from a node's attributes. See labels.h.
 */
#include "ops/ml/labels.h"

#include <string.h>

/* Returns a list attribute; NULL if it is absent or empty. */
static const graph_attribute *list_of(const node *n, const char *name)
{
    const graph_attribute *a = node_attribute(n, name);
    return a && a->count > 0 ? a : NULL;
}

static const graph_attribute *words_of(const node *n) { return list_of(n, "classlabels_strings"); }

static const graph_attribute *numbers_of(const node *n)
{
    const graph_attribute *a = list_of(n, "classlabels_int64s");
    return a ? a : list_of(n, "classlabels_ints");
}

size_t labels_count(const node *n)
{
    const graph_attribute *a = words_of(n) ? words_of(n) : numbers_of(n);
    return a ? a->count : 0;
}

clg_status labels_check(const node *n)
{
    char shown[NODE_TEXT_BYTES];
    if ((words_of(n) != NULL) != (numbers_of(n) != NULL)) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_MODEL,
                     "%s: it must have labels that are numbers or strings, and not both",
                     node_text(n, shown));
}

clg_dtype labels_dtype(const node *n) { return words_of(n) ? CLG_STRING : CLG_INT64; }

clg_status labels_of(const node *n, tensor **out_labels)
{
    const graph_attribute *words = words_of(n), *numbers = numbers_of(n);
    const shape dims = {.rank = 1, .dims = {(int64_t)labels_count(n)}};
    tensor *t;
    clg_status status = CLG_OK;
    CLG_TRY(tensor_create(labels_dtype(n), &dims, &t));
    for (size_t i = 0; words && i < words->count && status == CLG_OK; i++)
        status =
            tensor_set_string(t, (int64_t)i, words->as.strings[i], strlen(words->as.strings[i]));
    for (size_t i = 0; !words && numbers && i < numbers->count; i++)
        tensor_set_int(t, (int64_t)i, numbers->as.ints[i]);
    if (status == CLG_OK)
        *out_labels = t;
    else
        tensor_free(t);
    return status;
}
