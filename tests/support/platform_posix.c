/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements platform.h on POSIX systems.
 */
#include "support/platform.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_BYTES 2048

const char *const platform_null_device = "/dev/null";
const char *const platform_no_folder = "/proc/clgraph-cannot-be-made";
const bool platform_keeps_mapped_files = false;

bool platform_temporary_folder(char *path, size_t n_bytes)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(path, n_bytes, "%s/clgraph-test-XXXXXX", base && base[0] ? base : "/tmp");
    return mkdtemp(path) != NULL;
}

void platform_remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char below[PATH_BYTES];
        struct stat info;
        (void)snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (lstat(below, &info) == 0 && S_ISDIR(info.st_mode)) {
            platform_remove_tree(below);
        } else {
            (void)unlink(below);
        }
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

FILE *platform_open(const char *path, const char *mode) { return fopen(path, mode); }

bool platform_age(const char *path, int64_t seconds)
{
    struct stat info;
    if (stat(path, &info) != 0) return false;
    struct timespec times[2] = {info.st_atim, info.st_mtim};
    times[0].tv_sec -= seconds;
    times[1].tv_sec -= seconds;
    return utimensat(AT_FDCWD, path, times, 0) == 0;
}

bool platform_set_env(const char *name, const char *value)
{
    return (value ? setenv(name, value, 1) : unsetenv(name)) == 0;
}

bool platform_run_apart(int n, int (*body)(const char *user, int i), const char *user)
{
    pid_t *children = calloc((size_t)n, sizeof *children);
    bool all_done = children != NULL;
    for (int i = 0; i < n && children; i++) {
        children[i] = fork();
        if (children[i] == 0) _exit(body(user, i));
    }
    for (int i = 0; i < n && children; i++) {
        int result = -1;
        all_done = children[i] > 0 && waitpid(children[i], &result, 0) == children[i] &&
                   WIFEXITED(result) && WEXITSTATUS(result) == 0 && all_done;
    }
    free(children);
    return all_done;
}
