/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc/self. See process_use.h.
 */
#include "support/process_use.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t process_use_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%*u %llu", &pages) != 1) pages = 0;
    (void)fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

size_t process_use_peak_bytes(void)
{
    char line[256];
    unsigned long long kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f) && kilobytes == 0)
        if (strncmp(line, "VmHWM:", 6) == 0) kilobytes = strtoull(line + 6, NULL, 10);
    (void)fclose(f);
    return (size_t)kilobytes * 1024;
}

static size_t count_entries(const char *path)
{
    size_t n = 0;
    DIR *folder = opendir(path);
    if (!folder) return 0;
    for (const struct dirent *e = readdir(folder); e; e = readdir(folder)) n += e->d_name[0] != '.';
    (void)closedir(folder);
    return n;
}

size_t process_use_descriptors(void) { return count_entries("/proc/self/fd"); }

size_t process_use_threads(void) { return count_entries("/proc/self/task"); }

/* Adds the children of one thread: those that it started. */
static size_t children_of(const char *thread)
{
    char path[512];
    size_t n = 0;
    int pid;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/children", thread);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    while (fscanf(f, "%d", &pid) == 1) n++;
    (void)fclose(f);
    return n;
}

size_t process_use_children(void)
{
    size_t n = 0;
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return 0;
    for (const struct dirent *e = readdir(folder); e; e = readdir(folder))
        if (e->d_name[0] != '.') n += children_of(e->d_name);
    (void)closedir(folder);
    return n;
}
