/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a file of measured choices, as `cltool tune` writes them, and adds it to itself: what is
 * printed is read again, as the same table.
 */
#include "fuzz.h"

#include "plan/tuning_table.h"

#include <stdlib.h>
#include <string.h>

static char *text_of(const tuning_table *t)
{
    strbuf b;
    char *text;
    strbuf_init(&b, 0);
    tuning_table_text(t, &b);
    fuzz_require(strbuf_take(&b, &text) == CLG_OK);
    return text;
}

void fuzz_tuning(const uint8_t *data, size_t size_bytes)
{
    char *lines = fuzz_text(data, size_bytes);
    tuning_table *once, *twice;
    if (tuning_table_add(NULL, lines, &once) == CLG_OK) {
        char *first = text_of(once);
        fuzz_require(tuning_table_add(once, first, &twice) == CLG_OK);
        char *second = text_of(twice);
        fuzz_require(strcmp(first, second) == 0);
        (void)tuning_table_find(twice, lines);
        memory_free(first);
        memory_free(second);
        tuning_table_free(tuning_table_retain(twice));
        tuning_table_free(twice);
        tuning_table_free(once);
    }
    free(lines);
}
