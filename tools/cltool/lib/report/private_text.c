/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes private parts of texts. See private_text.h.
 */
#include "private_text.h"

#include "text_buffer.h"

#include <stdlib.h>
#include <string.h>

/* Folders that are the same on many machines. */
static const char *const system_folders[] = {"/dev/", "/etc/",   "/usr/", "/opt/rocm",
                                             "/lib/", "/lib64/", "/sys/", "/proc/"};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_quote(char c) { return c == '\'' || c == '"'; }

/* Returns whether an absolute path starts at text[i]: of POSIX, of a home folder, or of Windows. */
static bool starts_path(const char *text, size_t i)
{
    const char c = text[i], before = i > 0 ? text[i - 1] : ' ', after = c ? text[i + 1] : '\0';
    if (is_word(before) || before == '.' || before == '-' || before == '>') return false;
    if (c == '/') return is_word(after) || (after && strchr(".~-", after));
    if (c == '~') return after == '/';
    if (c == '\\') return after == '\\';
    return is_word(c) && after == ':' && (text[i + 2] == '\\' || text[i + 2] == '/');
}

/* Returns the length of the path that starts at text[i]: up to the quote that opened it, or to a
 * character that separates words. */
static size_t path_length(const char *text, size_t i)
{
    const char before = i > 0 ? text[i - 1] : ' ';
    const bool is_drive = text[i] != '/' && text[i + 1] == ':';
    size_t n = is_drive ? 2 : 0;
    while (text[i + n]) {
        const char c = text[i + n];
        if (is_quote(before) ? c == before || c == '\n' : strchr(" \t\r\n'\",;:()<>|", c) != NULL)
            break;
        n++;
    }
    return n;
}

static bool is_separator(char c) { return c == '/' || c == '\\'; }

/* Returns whether a path is in a folder that is the same on many machines. */
static bool is_system(const char *path, size_t n)
{
    if (path[0] != '/') {
        static const char windows[] = "Windows", programs[] = "Program Files";
        return n > 3 && path[1] == ':' &&
               (strncmp(path + 3, windows, sizeof windows - 1) == 0 ||
                strncmp(path + 3, programs, sizeof programs - 1) == 0);
    }
    for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++)
        if (strncmp(path, system_folders[i], strlen(system_folders[i])) == 0) return true;
    return false;
}

static void add_path(text_buffer *b, const char *path, size_t n)
{
    while (n > 0 && is_separator(path[n - 1])) n--;
    size_t last = n;
    while (last > 0 && !is_separator(path[last - 1])) last--;
    if (is_system(path, n) && last < n)
        text_buffer_add_bytes(b, path + last, n - last);
    else
        text_buffer_add(b, "<path>");
}

/* Returns the length of the name if it is the whole word at text[i], else 0. */
static size_t name_length(const char *text, size_t i, const char *name)
{
    const size_t n = strlen(name);
    if (n < 2 || strncmp(text + i, name, n) != 0) return 0;
    return (i > 0 && is_word(text[i - 1])) || is_word(text[i + n]) ? 0 : n;
}

static void add_without_names(text_buffer *b, const char *text, const private_names *names)
{
    for (size_t i = 0; text[i];) {
        const size_t host = name_length(text, i, names->host);
        const size_t user = name_length(text, i, names->user);
        if (host > 0 || user > 0)
            text_buffer_add(b, host > 0 ? "<host>" : "<user>");
        else
            text_buffer_add_bytes(b, text + i, 1);
        i += host > 0 ? host : user > 0 ? user : 1;
    }
}

char *private_text(const char *text, const private_names *names)
{
    text_buffer paths = {0}, b = {0};
    for (size_t i = 0; text[i];) {
        if (starts_path(text, i)) {
            const size_t n = path_length(text, i);
            add_path(&paths, text + i, n);
            i += n;
        } else {
            text_buffer_add_bytes(&paths, text + i++, 1);
        }
    }
    char *without_paths = text_buffer_take(&paths);
    add_without_names(&b, without_paths, names);
    free(without_paths);
    return text_buffer_take(&b);
}

void private_json(json_t *document, const private_names *names)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_string(document)) {
        char *text = private_text(json_string_value(document), names);
        (void)json_string_set(document, text);
        free(text);
    }
    if (json_is_object(document)) {
        json_object_foreach(document, key, value) private_json(value, names);
    }
    json_array_foreach(document, i, value) private_json(value, names);
}
