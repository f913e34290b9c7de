/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the corpora of the fuzz targets (see corpus.h), and with --dictionary FILE a dictionary of
 * libFuzzer's with the names of all operators, of their attributes, and of ONNX's domains.
 */
#include "corpus.h"
#include "fuzz.h"

#include "base/files.h"
#include "base/memory.h"
#include "ops/core/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *root;

void corpus_file(const char *target, const char *name, const void *data, size_t size_bytes)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", root, target);
    fuzz_require(file_make_folders(path) == CLG_OK);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    FILE *file = fopen(path, "wb");
    fuzz_require(file);
    fuzz_require(size_bytes == 0 || fwrite(data, 1, size_bytes, file) == size_bytes);
    fuzz_require(fclose(file) == 0);
}

void corpus_text(const char *target, const char *name, const char *text)
{
    corpus_file(target, name, text, strlen(text));
}

void corpus_bytes(const char *target, const char *name, ow_bytes bytes)
{
    corpus_file(target, name, bytes.data, bytes.n);
    ow_free(&bytes);
}

static void make_csv(void)
{
    corpus_text("csv", "plain.csv", "a,b\n1,2\n3,4\n");
    corpus_text("csv", "quoted.csv", "\"a, b\" , \"c\"\r\n\"1\", 2\r\n\r\n 3 ,\t4e-3 \n");
    corpus_text("csv", "special.csv", "a,b,c\nnan,-inf,0x1p3\n1,2,3");
    corpus_text("csv", "one_column.csv", "\n\r\nx\n1\n\n2\r\n\r\n3");
    corpus_text("csv", "empty.csv", "");
    corpus_text("csv", "blank.csv", "\n\r\n\n");
    corpus_text("csv", "few_cells.csv", "a,b,c\n1,2\n");
    corpus_text("csv", "many_cells.csv", "a\n1,2\n");
    corpus_text("csv", "word.csv", "a,b\n1,two\n");
    corpus_text("csv", "open_quote.csv", "\"a,b\n\"1,2\n");
    corpus_file("csv", "nul.csv", "a,b\n1\0,2\n", 10);
    char wide[1200];
    size_t n = 0;
    for (int line = 0; line < 2; line++)
        for (int i = 0; i < 100; i++)
            n += (size_t)snprintf(wide + n, sizeof wide - n, "%d%s", i, i < 99 ? "," : "\n");
    corpus_text("csv", "wide.csv", wide);
}

/* IDX files of two images, of numbers, and with headers that lie. */
static void make_idx(void)
{
    static const char bytes[] = "\0\0\10\3"
                                "\0\0\0\2"
                                "\0\0\0\2"
                                "\0\0\0\2"
                                "abcdefgh";
    static const char doubles[] = "\0\0\16\1"
                                  "\0\0\0\2"
                                  "\77\360\0\0\0\0\0\0"
                                  "\300\0\0\0\0\0\0\0";
    static const char no_rows[] = "\0\0\10\3"
                                  "\0\0\0\0"
                                  "\377\377\377\377"
                                  "\377\377\377\377";
    static const char no_elements[] = "\0\0\16\3"
                                      "\377\377\377\377"
                                      "\0\0\0\0"
                                      "\377\377\377\377";
    static const char huge[] = "\0\0\16\3"
                               "\377\377\377\377"
                               "\377\377\377\377"
                               "\377\377\377\377";
    static const char empty[] = "\0\0\14\2"
                                "\0\0\0\0"
                                "\0\0\0\5";
    static const char packed[] =
        "\037\213\010\000\000\000\000\000\002\003\143\140\340\140\146\140\140\140"
        "\202\143\343\264\377\214\114\314\054\000\034\323\060\341\030\000\000\000";
    corpus_file("idx", "bytes.idx", bytes, sizeof bytes - 1);
    corpus_file("idx", "cut.idx", bytes, sizeof bytes - 2);
    corpus_file("idx", "longer.idx", bytes, sizeof bytes);
    corpus_file("idx", "header.idx", bytes, 10);
    corpus_file("idx", "doubles.idx", doubles, sizeof doubles - 1);
    corpus_file("idx", "huge.idx", huge, sizeof huge - 1);
    corpus_file("idx", "empty.idx", empty, sizeof empty - 1);
    corpus_file("idx", "no_rows.idx", no_rows, sizeof no_rows - 1);
    corpus_file("idx", "no_elements.idx", no_elements, sizeof no_elements - 1);
    corpus_file("idx", "packed.gz", packed, sizeof packed - 1);
    corpus_file("idx", "packed_cut.gz", packed, sizeof packed - 5);
}

static void make_selectors(void)
{
    static const char *const texts[] = {
        "auto",
        "gpu",
        "cpu#0",
        "all",
        "id:0000:03:00.0",
        "nvidia",
        "amd",
        "intel",
        "pocl",
        "mesa",
        "0:0",
        "7:9",
        "rtx",
        "a,b",
        "auto,cpu",
        "auto#9",
        "",
        ",",
        "gpu ,\tcpu",
        "#1",
        "99999999999:0",
        "xyz\ncpu",
        "xyz\nabc",
        "intel#1",
        "commas, inc",
        "id:x",
        "apple#0",
        "GPU#00000000000000000000001",
        "\n",
        "oclgrind",
    };
    char text[256], name[32];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t n = strlen(texts[i]);
        text[0] = (char)(i * 5);
        memcpy(text + 1, texts[i], n);
        (void)snprintf(name, sizeof name, "selector_%02zu", i);
        corpus_file("selector", name, text, n + 1);
    }
    (void)memset(text, ',', sizeof text);
    corpus_file("selector", "too_many_parts", text, 100);
}

static void make_decoders(void)
{
    corpus_text(
        "decoder", "plain.json",
        "{\"model_type\": \"gpt2\", \"vocab_size\": 64, \"n_positions\": 128, \"n_layer\": 2, "
        "\"n_head\": 2, \"n_embd\": 16, \"eos_token_id\": [5, 6], \"bos_token_id\": null}");
    corpus_text("decoder", "generation.json",
                "{\"do_sample\": true, \"temperature\": 0.7, \"top_k\": 40, \"top_p\": 0.9, "
                "\"min_p\": 0.05, \"repetition_penalty\": 1.1, \"eos_token_id\": 2}");
    corpus_text(
        "decoder", "genai.json",
        "{\"model\": {\"type\": \"llama\", \"bos_token_id\": 1, \"eos_token_id\": 0, "
        "\"vocab_size\": 64, \"context_length\": 128, \"decoder\": {\"filename\": \"m.onnx\", "
        "\"head_size\": 8, \"num_hidden_layers\": 2, \"num_key_value_heads\": 2, \"inputs\": "
        "{\"input_ids\": \"ids\", \"past_key_names\": \"past.%d.k\"}, \"outputs\": "
        "{\"logits\": \"scores\", \"present_key_names\": \"new.%d.k\"}}}, "
        "\"search\": {\"do_sample\": false}}");
    corpus_text("decoder", "pipeline.json", "{\"model\": {\"decoder\": {\"pipeline\": [{}]}}}");
    corpus_text("decoder", "pattern.json",
                "{\"model\": {\"decoder\": {\"inputs\": {\"past_key_names\": \"%d%n\"}}}}");
    corpus_text("decoder", "cut.json", "{\"vocab_size\": 6");
    corpus_text("decoder", "list.json", "[[[[1]]]]");
}

static void write_entry(FILE *file, const char *word)
{
    if (word && *word) fuzz_require(fprintf(file, "\"%s\"\n", word) > 0);
}

static void make_dictionary(const char *path)
{
    FILE *file = fopen(path, "wb");
    fuzz_require(file);
    write_entry(file, "ai.onnx.ml");
    write_entry(file, "com.microsoft");
    write_entry(file, "weights.bin");
    for (size_t f = 0; f < n_op_families; f++)
        for (size_t r = 0; r < *op_families[f].n_rows; r++) {
            const op_row *row = &op_families[f].rows[r];
            write_entry(file, row->name);
            for (const op_attribute *a = row->attributes; a && a->name; a++)
                write_entry(file, a->name);
        }
    fuzz_require(fclose(file) == 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--dictionary") == 0) {
        make_dictionary(argv[2]);
        return 0;
    }
    if (argc != 2) {
        (void)fprintf(stderr, "usage: make_corpus FOLDER | --dictionary FILE\n");
        return 2;
    }
    root = argv[1];
    corpus_models();
    corpus_functions();
    corpus_values();
    corpus_pictures();
    corpus_cache();
    corpus_tokenizers();
    make_csv();
    make_idx();
    make_selectors();
    make_decoders();
    return 0;
}
