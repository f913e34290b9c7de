/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, paths, small files.
 */
#include "names.h"

#include "digest.h"
#include "interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAME_BYTES 180
#define MAX_TEXT_BYTES ((size_t)256 << 20)

/* ---- names of tensors ------------------------------------------------------------------------- */

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

/* ---- paths ------------------------------------------------------------------------------------ */

char *path_join(const char *folder, const char *file)
{
    size_t n = strlen(folder);
    return must_printf("%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", file);
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool path_exists(const char *path) { return access(path, F_OK) == 0; }

bool path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool path_ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcasecmp(path + n - m, ending) == 0;
}

int folder_make(const char *path)
{
    char *copy = must_copy(path);
    int failed = 0;
    for (char *slash = copy; failed == 0 && slash;) {
        slash = strchr(slash + 1, '/');
        if (slash) *slash = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST) failed = errno;
        if (slash) *slash = '/';
    }
    free(copy);
    if (failed == 0 && !path_is_folder(path)) failed = ENOTDIR;
    if (failed == 0) return CODE_DONE;
    return fail(CODE_WORK, CLG_ERROR_IO, "the folder '%s' cannot be made: %s", path,
                strerror(failed));
}

/* ---- files ------------------------------------------------------------------------------------ */

int file_may_be_written(const char *path, bool force)
{
    if (force || !path_exists(path)) return CODE_DONE;
    (void)fail_usage("'%s' exists", path);
    fail_hint("--force overwrites it");
    return CODE_USAGE;
}

static int write_all(int fd, const char *data, size_t size_bytes)
{
    while (size_bytes > 0) {
        ssize_t n = write(fd, data, size_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return errno;
        data += n;
        size_bytes -= (size_t)n;
    }
    return 0;
}

int file_write(const char *path, const char *data, size_t size_bytes)
{
    char *aside = must_printf("%s.tmp.%ld", path, (long)getpid());
    interrupt_begin(NULL);
    int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int failed = fd < 0 ? errno : write_all(fd, data, size_bytes);
    if (fd >= 0 && close(fd) != 0 && failed == 0) failed = errno;
    if (failed == 0 && rename(aside, path) != 0) failed = errno;
    if (failed != 0 && fd >= 0) (void)unlink(aside);
    interrupt_end(NULL);
    free(aside);
    if (failed == 0) return CODE_DONE;
    return fail(CODE_WORK, CLG_ERROR_IO, "'%s' cannot be written: %s", path, strerror(failed));
}

int file_read_text(const char *path, char **out_text)
{
    *out_text = NULL;
    FILE *stream = path_is_folder(path) ? NULL : fopen(path, "rb");
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
