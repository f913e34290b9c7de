/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz targets: one function per format that the library or cltool reads. A target takes any bytes,
 * must not crash, leak or read outside of memory, and calls abort() where a result contradicts
 * itself. libFuzzer calls it through entry.c; replay.c calls it with the files of a corpus.
 * See decision 54.
 */
#ifndef CLG_TESTS_FUZZ_H
#define CLG_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* X(name) for each target: fuzz_<name>.c, corpus/<name>. */
#define FUZZ_TARGETS(X)                                                                            \
    X(onnx)                                                                                        \
    X(run)                                                                                         \
    X(npy)                                                                                         \
    X(npz)                                                                                         \
    X(proto)                                                                                       \
    X(csv)                                                                                         \
    X(idx) X(image) X(cache) X(tuning) X(records) X(helper) X(selector) X(tokenizer) X(decoder)

typedef void fuzz_target(const uint8_t *data, size_t size_bytes);

#define FUZZ_DECLARE(name) fuzz_target fuzz_##name;
FUZZ_TARGETS(FUZZ_DECLARE)
#undef FUZZ_DECLARE

/* Returns in how many of its calls fuzz_run launched a kernel. */
size_t fuzz_run_launches(void);

/* ---- support.c ------------------------------------------------------------------------------- */

/* Writes the bytes to a file of this name in a temporary folder, which is removed at exit; returns
 * its path, valid until the next call with another name. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size_bytes);
/* Copies the bytes to an allocation of size_bytes + 1 with a NUL at the end, freed with free(). */
char *fuzz_text(const uint8_t *data, size_t size_bytes);
/* Ends the program with a message unless `holds`. */
#define fuzz_require(holds) ((holds) ? (void)0 : fuzz_fail(#holds, __FILE__, __LINE__))
void fuzz_fail(const char *condition, const char *file, int line);

/* ---- mutators, in builds with libFuzzer ------------------------------------------------------ */

/* Mutate `data` in place, at most max_bytes, and return the new size: as libFuzzer's
 * LLVMFuzzerCustomMutator. The first keeps the lengths of nested protobuf messages right, the
 * others the checksums of cache entries and of ZIP files. */
typedef size_t fuzz_mutator(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed);
fuzz_mutator fuzz_mutate_protobuf, fuzz_mutate_cache, fuzz_mutate_zip;
/* libFuzzer's own mutation of bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size_bytes, size_t max_bytes);

#endif
