/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the results of self-tests as the cache keeps them. What is printed can be read again.
 */
#include "fuzz.h"

#include "session/selftest/selftest_records.h"

#include <stdlib.h>

void fuzz_records(const uint8_t *data, size_t size_bytes)
{
    char *lines = fuzz_text(data, size_bytes), *printed;
    selftest_records read = {0}, again = {0};
    if (selftest_records_parse(&read, lines)) {
        strbuf b;
        strbuf_init(&b, 0);
        selftest_records_format(&read, &b);
        fuzz_require(strbuf_take(&b, &printed) == CLG_OK);
        fuzz_require(selftest_records_parse(&again, printed));
        fuzz_require(again.count == read.count);
        for (size_t i = 0; i < read.count; i++) {
            const selftest_record *r = selftest_records_find(&again, read.items[i].key);
            fuzz_require(r && r->passed == read.items[i].passed);
        }
        memory_free(printed);
    }
    selftest_records_deinit(&read);
    selftest_records_deinit(&again);
    free(lines);
}
