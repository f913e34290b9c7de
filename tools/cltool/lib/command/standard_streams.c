/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements standard_streams.h. Values go through temporary files, since all readers and writers
 * of values take a path with an ending.
 */
#include "standard_streams.h"

#include "host.h"
#include "interrupt.h"
#include "names.h"
#include "output.h"
#include "stats.h"

#include <clgraph/inspect.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 20)
#define MAX_TEXT_BYTES ((size_t)64 << 20)

static char *folder;     /* of the temporary files; NULL: none yet */
static char *input_file; /* what standard input held; NULL: not read */
static char *output_file;
static FILE *output; /* the standard output that was claimed */

bool is_standard(const char *path) { return path && strcmp(path, "-") == 0; }

static int temporary_path(const char *name, char **out_path)
{
    if (!folder) folder = host_temporary_folder();
    if (!folder)
        return fail(CODE_WORK, CLG_ERROR_IO, "a temporary folder cannot be made: %s",
                    strerror(errno));
    *out_path = path_join(folder, name);
    return CODE_DONE;
}

void standard_streams_end(void)
{
    if (input_file) (void)host_remove(input_file);
    if (output_file) (void)host_remove(output_file);
    if (folder) (void)host_remove_folder(folder);
}

/* ---- input ----------------------------------------------------------------------------------- */

/* Returns the ending for a file that begins with n bytes; NULL when it is none of ours. */
static const char *ending_of(const unsigned char *bytes, size_t n)
{
    if (n >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0) return "npy";
    if (n >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0))
        return "npz";
    for (size_t i = 0; i < n && i < 512; i++)
        if (bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r') return NULL;
    return n > 0 ? "csv" : NULL;
}

/* Copies standard input to the file, after the n bytes of `block`, which has BLOCK_BYTES. */
static int copy_input(const char *path, unsigned char *block, size_t n)
{
    uint64_t total = 0;
    FILE *to = host_open(path, "wb");
    if (!to) return output_fail(path);
    int code = CODE_DONE;
    for (; n > 0 && code == CODE_DONE; n = fread(block, 1, BLOCK_BYTES, stdin)) {
        total += n;
        if (total > STANDARD_INPUT_BYTES)
            code = fail_file("standard input has more than the %" PRIu64 " bytes that are read",
                             STANDARD_INPUT_BYTES);
        else if (fwrite(block, 1, n, to) != n)
            code = output_fail(path);
    }
    if (code == CODE_DONE && ferror(stdin))
        code = fail_file("standard input cannot be read: %s", strerror(errno));
    if (fclose(to) != 0 && code == CODE_DONE) code = output_fail(path);
    return code;
}

int standard_input(const char **out_path)
{
    *out_path = input_file;
    if (input_file) return CODE_DONE;
    if (host_is_terminal(stdin)) return fail_usage("standard input is a terminal, not a file");
    unsigned char *block = must_alloc(BLOCK_BYTES, 1);
    const size_t n = fread(block, 1, BLOCK_BYTES, stdin);
    const char *ending = ending_of(block, n);
    int code = CODE_DONE;
    if (n == 0) {
        code = fail_file("standard input is empty");
    } else if (!ending) {
        code = fail_file("standard input is neither .npy nor .npz nor .csv");
    } else {
        char *name = must_printf("standard-input.%s", ending);
        code = temporary_path(name, &input_file);
        free(name);
    }
    if (code == CODE_DONE) code = copy_input(input_file, block, n);
    free(block);
    *out_path = input_file;
    return code;
}

int standard_input_text(char **out_text, size_t *out_bytes)
{
    size_t capacity = BLOCK_BYTES, n = 0, got;
    char *text = must_alloc(capacity, 1);
    *out_text = NULL;
    *out_bytes = 0;
    if (host_is_terminal(stdin)) output_note("the text is read from the terminal, to Ctrl-D");
    while (n <= MAX_TEXT_BYTES && (got = fread(text + n, 1, capacity - n, stdin)) > 0) {
        n += got;
        if (n == capacity) text = must_resize(text, capacity *= 2, 1);
    }
    if (ferror(stdin) || n > MAX_TEXT_BYTES) {
        free(text);
        return ferror(stdin)
                   ? fail_file("standard input cannot be read: %s", strerror(errno))
                   : fail_file("standard input has more than %zu bytes of text", MAX_TEXT_BYTES);
    }
    *out_text = text;
    *out_bytes = n;
    return CODE_DONE;
}

/* ---- output ---------------------------------------------------------------------------------- */

int standard_output_claim(bool is_text)
{
    if (!is_text && host_is_terminal(stdout)) {
        (void)fail_usage("standard output is a terminal: it shows no binary data");
        fail_hint("'| COMMAND' or '> FILE' takes them");
        return CODE_USAGE;
    }
    output = host_claim_stdout();
    return output ? CODE_DONE
                  : fail(CODE_WORK, CLG_ERROR_IO, "standard output cannot be used: %s",
                         strerror(errno));
}

int standard_output_write(const void *data, size_t size_bytes)
{
    if (fwrite(data, 1, size_bytes, output) == size_bytes && fflush(output) == 0) return CODE_DONE;
    return output_fail("standard output");
}

FILE *standard_output_stream(void) { return output; }

int standard_output_file(const char *ending, const char **out_path)
{
    char *name = must_printf("standard-output%s", ending);
    const int code = temporary_path(name, &output_file);
    free(name);
    *out_path = output_file;
    return code;
}

int standard_output_copy(void)
{
    FILE *from = host_open(output_file, "rb");
    if (!from) return fail_file("'%s' cannot be read: %s", output_file, strerror(errno));
    char *block = must_alloc(BLOCK_BYTES, 1);
    int code = CODE_DONE;
    for (size_t n; code == CODE_DONE && (n = fread(block, 1, BLOCK_BYTES, from)) > 0;)
        code = standard_output_write(block, n);
    free(block);
    (void)fclose(from);
    return code;
}

static int check_numbers(const clg_value *value)
{
    if (clg_value_get_kind(value) == CLG_VALUE_TENSOR && dtype_is_numeric(clg_value_dtype(value)))
        return CODE_DONE;
    return fail_usage("-o - takes tensors of numbers");
}

/* Writes a line of numbers for each step of the first axis, with commas between. */
int standard_output_csv(const clg_value *value)
{
    const int code = check_numbers(value);
    if (code != CODE_DONE) return code;
    const size_t rank = clg_value_rank(value);
    const int64_t n = clg_value_n_elements(value);
    const int64_t n_rows = rank == 0 ? 1 : clg_value_dims(value)[0];
    const int64_t n_columns = n_rows > 0 && n / n_rows > 0 ? n / n_rows : 1;
    for (int64_t i = 0; i < n; i++) {
        const double x = clg_value_get_double(value, i);
        const char end = (i + 1) % n_columns == 0 ? '\n' : ',';
        /* as many digits as tell any two numbers of the dtype apart */
        const int digits = clg_value_dtype(value) == CLG_FLOAT64         ? 17
                           : clg_dtype_size(clg_value_dtype(value)) <= 4 ? 9
                                                                         : 0;
        const int written = digits > 0 ? fprintf(output, "%.*g%c", digits, x, end)
                                       : fprintf(output, "%.0f%c", x, end);
        if (written < 0) return output_fail("standard output");
    }
    return fflush(output) == 0 ? CODE_DONE : output_fail("standard output");
}

int standard_output_npy(clg_value *value)
{
    const char *path;
    int code = check_numbers(value);
    if (code == CODE_DONE) code = standard_output_file(".npy", &path);
    if (code != CODE_DONE) return code;
    interrupt_begin(NULL);
    const clg_status status = clg_value_save(value, path);
    interrupt_end(NULL);
    return status == CLG_OK ? standard_output_copy() : fail_status(status, STAGE_WORK, NULL);
}

int standard_output_npz(const char *const *names, clg_value *const *values, size_t n)
{
    const char *path;
    int code = CODE_DONE;
    for (size_t i = 0; i < n && code == CODE_DONE; i++) code = check_numbers(values[i]);
    if (code == CODE_DONE) code = standard_output_file(".npz", &path);
    if (code != CODE_DONE) return code;
    interrupt_begin(NULL);
    const clg_status status = clg_npz_save(path, names, values, n);
    interrupt_end(NULL);
    return status == CLG_OK ? standard_output_copy() : fail_status(status, STAGE_WORK, NULL);
}
