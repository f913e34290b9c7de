/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls fuzz targets with files, without libFuzzer: replay CORPUS [TARGET...]. CORPUS has a folder
 * for each target. Every target must have files there; without TARGET, all are replayed. `run` must
 * launch kernels.
 */
#include "fuzz.h"

#include "base/files.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    fuzz_target *call;
} targets[] = {
#define ROW(name) {#name, fuzz_##name},
    FUZZ_TARGETS(ROW)
#undef ROW
};

/* Calls the target with a copy of the file in an allocation of exactly its size, so that the
 * address sanitizer detects reads beyond the end. */
static void replay_file(fuzz_target *call, const char *folder, const char *name)
{
    char *path, *data;
    size_t n;
    fuzz_require(file_join(folder, name, &path) == CLG_OK);
    fuzz_require(file_read(path, (uint64_t)1 << 20, &data, &n) == CLG_OK);
    uint8_t *copy = malloc(n ? n : 1);
    fuzz_require(copy);
    if (n > 0) memcpy(copy, data, n);
    call(copy, n);
    free(copy);
    memory_free(data);
    memory_free(path);
}

/* Returns the number of files of a target's corpus. */
static size_t replay(const char *corpus, const char *name, fuzz_target *call)
{
    char *folder;
    file_entry *files = NULL;
    size_t n = 0;
    fuzz_require(file_join(corpus, name, &folder) == CLG_OK);
    if (file_list(folder, &files, &n) != CLG_OK) n = 0;
    for (size_t i = 0; i < n; i++) replay_file(call, folder, files[i].name);
    file_list_free(files, n);
    memory_free(folder);
    return n;
}

int main(int argc, char **argv)
{
    int status = 0, n_replayed = 0;
    if (argc < 2) return 2;
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        int wanted = argc == 2;
        for (int i = 2; i < argc; i++) wanted |= strcmp(argv[i], targets[t].name) == 0;
        if (!wanted) continue;
        const size_t n = replay(argv[1], targets[t].name, targets[t].call);
        (void)printf("%-9s %zu files\n", targets[t].name, n);
        (void)fflush(stdout);
        if (n == 0) status = 1;
        if (targets[t].call == fuzz_run && fuzz_run_launches() == 0) {
            (void)fprintf(stderr, "run: no kernel was launched\n");
            status = 1;
        }
        n_replayed++;
    }
    return n_replayed > 0 ? status : 2;
}
