/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the corpora of the fuzz targets: make_corpus FOLDER. Files are made by the project's own
 * writers from small graphs and values; they have the same bytes each time.
 */
#ifndef CLG_TESTS_FUZZ_CORPUS_H
#define CLG_TESTS_FUZZ_CORPUS_H

#include "support/fixtures/onnx_writer.h"

/* Writes FOLDER/TARGET/NAME, where a file of damaged content is welcome too. */
void corpus_file(const char *target, const char *name, const void *data, size_t size_bytes);
void corpus_text(const char *target, const char *name, const char *text);
/* As corpus_file, and frees the bytes. */
void corpus_bytes(const char *target, const char *name, ow_bytes bytes);

void corpus_models(void); /* onnx and run: corpus_models.c, corpus_functions.c */
void corpus_functions(void);
void corpus_values(void);     /* npy, npz and proto */
void corpus_pictures(void);   /* image */
void corpus_cache(void);      /* cache, helper, tuning and records */
void corpus_tokenizers(void); /* tokenizer */

#endif
