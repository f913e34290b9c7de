/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes file names of tensor names, and handles paths, folders and small files.
 */
#include "names.h"

#include "digest.h"
#include "host.h"
#include "interrupt.h"
#include "output.h"

#include <clgraph/inspect.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_NAME_BYTES 180
#define MAX_TEXT_BYTES ((size_t)256 << 20)

static bool is_reserved(const char *name)
{
    static const char *const words[] = {
        "con",  "prn",  "aux",  "nul",  "com1", "com2", "com3", "com4", "com5", "com6", "com7",
        "com8", "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"};
    size_t n = strcspn(name, ".");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == n && strncasecmp(words[i], name, n) == 0) return true;
    }
    return false;
}

static bool is_safe(const char *name, size_t i)
{
    unsigned char c = (unsigned char)name[i];
    if (c <= ' ' || c >= 0x7F) return false;
    if (i == 0 && (c == '.' || c == '-' || c == '~' || is_reserved(name))) return false;
    return strchr("/\\:*?\"<>|%", c) == NULL;
}

char *name_to_file(const char *name)
{
    if (name[0] == '\0') return must_copy("%");
    char *file = must_alloc(3 * strlen(name) + 1, 1), *to = file;
    for (size_t i = 0; name[i]; i++) {
        if (is_safe(name, i)) {
            *to++ = name[i];
        } else {
            to += snprintf(to, 4, "%%%02X", (unsigned char)name[i]);
        }
    }
    if (strlen(file) > MAX_NAME_BYTES) {
        digest d = digest_start();
        digest_add(&d, name, strlen(name));
        (void)snprintf(file + MAX_NAME_BYTES - 20, 20, "%%~%016llx", (unsigned long long)d.state);
    }
    return file;
}

char *path_join(const char *folder, const char *file)
{
    size_t n = strlen(folder);
    return must_printf("%s%s%s", folder, n > 0 && host_is_separator(folder[n - 1]) ? "" : "/",
                       file);
}

const char *path_base(const char *path)
{
    const char *base = path;
    for (; *path; path++) {
        if (host_is_separator(*path)) base = path + 1;
    }
    return base;
}

char *path_folder(const char *path)
{
    size_t n = (size_t)(path_base(path) - path);
    if (n == 0) return NULL;
    char *folder = must_copy(path);
    folder[n == 1 || folder[n - 2] == ':' ? n : n - 1] = '\0'; /* a root keeps its separator */
    return folder;
}

bool path_exists(const char *path) { return host_exists(path); }

bool path_is_folder(const char *path) { return host_is_folder(path); }

bool path_ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcasecmp(path + n - m, ending) == 0;
}

/* Makes a folder and its parents; returns 0 or an errno. */
static int make_folders(const char *path)
{
    int failed = host_make_folder(path);
    char *above = failed == ENOENT ? path_folder(path) : NULL;
    if (above && strlen(above) < strlen(path)) {
        failed = make_folders(above);
        if (failed == 0) failed = host_make_folder(path);
    }
    free(above);
    if (failed != 0 && host_is_folder(path)) return 0;
    return failed == EEXIST ? ENOTDIR : failed;
}

int folder_make(const char *path)
{
    int failed = make_folders(path);
    if (failed == 0) return CODE_DONE;
    return fail(CODE_WORK, CLG_ERROR_IO, "the folder '%s' cannot be made: %s", path,
                strerror(failed));
}

int folder_may_be_made(const char *path)
{
    char *at = must_copy(path);
    while (at && !host_exists(at)) {
        char *above = path_folder(at);
        const bool is_shorter = above && strlen(above) < strlen(at);
        free(at);
        at = is_shorter ? above : NULL;
        if (!is_shorter) free(above);
    }
    const char *existing = at ? at : ".";
    int code = CODE_DONE;
    if (!host_is_folder(existing))
        code = fail(CODE_WORK, CLG_ERROR_IO, "the folder '%s' cannot be made: '%s' is a file", path,
                    existing);
    else if (!host_may_write(existing))
        code = fail(CODE_WORK, CLG_ERROR_IO, "no files can be made in the folder '%s': %s",
                    existing, strerror(errno));
    free(at);
    return code;
}

typedef struct listing {
    char **names;
    size_t count, capacity;
} listing;

static void list_name(void *user, const char *name)
{
    listing *list = user;
    if (name[0] == '.') return;
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 64;
        list->names = must_resize(list->names, list->capacity, sizeof *list->names);
    }
    list->names[list->count++] = must_copy(name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int folder_list(const char *folder, char ***out_names, size_t *out_n)
{
    listing list = {0};
    int failed = host_list(folder, list_name, &list);
    if (failed != 0) return failed;
    if (list.count > 1) qsort(list.names, list.count, sizeof *list.names, by_name);
    *out_names = list.names;
    *out_n = list.count;
    return 0;
}

int folder_must_be_one(const char *path)
{
    static const char *const endings[] = {".npy", ".npz", ".pb", ".csv", ".json"};
    if (!path || path_is_folder(path)) return CODE_DONE;
    bool is_file = path_exists(path);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        is_file |= path_ends_in(path, endings[i]);
    if (!is_file) return CODE_DONE;
    (void)fail_usage(
        "-o takes a folder, in which each output is written to NAME.npy, not the file '%s'", path);
    fail_hint("-o DIR; 'cltool predict' writes outputs to files: -o NAME=FILE.npy");
    return CODE_USAGE;
}

int file_must_be_npy(const char *path)
{
    const bool is_folder = path_is_folder(path);
    if (!is_folder && path_ends_in(path, ".npy")) return CODE_DONE;
    (void)fail_usage(
        "-o takes a file that ends in .npy, not %s'%s'%s", is_folder ? "the folder " : "", path,
        !is_folder && path_ends_in(path, ".csv") ? ": .csv is read, and not written" : "");
    return CODE_USAGE;
}

int file_may_be_written(const char *path, bool force)
{
    if (force || !path_exists(path)) return CODE_DONE;
    (void)fail_usage("'%s' exists", path);
    fail_hint("--force overwrites it");
    return CODE_USAGE;
}

int output_write(const char *path, const char *data, size_t size_bytes)
{
    interrupt_begin(NULL);
    const clg_status status = clg_file_write(path, data, size_bytes);
    interrupt_end(NULL);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

int output_fail(const char *path)
{
    return fail(CODE_WORK, CLG_ERROR_IO, "'%s' cannot be written: %s", printable(path),
                strerror(errno));
}

int file_read_text(const char *path, char **out_text)
{
    *out_text = NULL;
    FILE *stream = path_is_folder(path) ? NULL : host_open(path, "rb");
    if (!stream) {
        return fail_file("'%s' cannot be read: %s", path,
                         path_is_folder(path) ? "it is a folder" : strerror(errno));
    }
    size_t n = 0, capacity = 1 << 16;
    char *text = must_alloc(capacity, 1);
    for (;;) {
        size_t got = fread(text + n, 1, capacity - 1 - n, stream);
        n += got;
        if (got == 0 || n > MAX_TEXT_BYTES) break;
        if (n == capacity - 1) text = must_resize(text, capacity *= 2, 1);
    }
    text[n] = '\0';
    bool is_bad = ferror(stream) != 0;
    (void)fclose(stream);
    if (!is_bad && n <= MAX_TEXT_BYTES) {
        *out_text = text;
        return CODE_DONE;
    }
    free(text);
    if (is_bad) return fail_file("'%s' cannot be read", path);
    return fail_file("'%s' is larger than the %zu bytes that are read of such a file", path,
                     MAX_TEXT_BYTES);
}
