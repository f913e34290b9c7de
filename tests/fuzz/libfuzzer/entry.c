/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that libFuzzer calls, for the target FUZZ_TARGET and, where FUZZ_MUTATOR is
 * defined, its mutator.
 */
#include "fuzz.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    JOIN(fuzz_, FUZZ_TARGET)(data, size_bytes);
    return 0;
}

#ifdef FUZZ_MUTATOR
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed)
{
    return JOIN(fuzz_mutate_, FUZZ_MUTATOR)(data, size_bytes, max_bytes, seed);
}
#endif
