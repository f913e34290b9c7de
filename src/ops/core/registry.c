/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks up the entries of the operator table, by a hash table of all entries in static memory,
 * filled at the first look-up. The entries of one operator name are in one probe sequence.
 */
#include "base/hash.h"
#include "ops/core/op.h"

#include <string.h>

#define INDEX_SIZE 4096u /* power of two, at least twice the number of entries, as a test checks */

static mutex index_lock = MUTEX_INIT;
static const op_row *index_rows[INDEX_SIZE];
static bool index_filled;

static size_t first_slot(const char *name) { return (size_t)hash_string(name) & (INDEX_SIZE - 1); }

static void fill_index(void)
{
    size_t n_filled = 0;
    for (size_t f = 0; f < n_op_families; f++) {
        for (size_t i = 0; i < *op_families[f].n_rows && n_filled < INDEX_SIZE - 1;
             i++, n_filled++) {
            const op_row *row = &op_families[f].rows[i];
            size_t slot = first_slot(row->name);
            while (index_rows[slot]) slot = (slot + 1) & (INDEX_SIZE - 1);
            index_rows[slot] = row;
        }
    }
}

const op_row *ops_find(const char *domain, const char *op_type, int64_t version)
{
    mutex_lock(&index_lock);
    if (!index_filled) fill_index();
    index_filled = true;
    mutex_unlock(&index_lock);
    domain = domain_canonical(domain);
    for (size_t slot = first_slot(op_type); index_rows[slot];
         slot = (slot + 1) & (INDEX_SIZE - 1)) {
        const op_row *row = index_rows[slot];
        bool is_version = version >= row->since && (row->until == 0 || version <= row->until);
        if (is_version && strcmp(row->name, op_type) == 0 &&
            strcmp(row->domain ? row->domain : "", domain) == 0) {
            return row;
        }
    }
    return NULL;
}
