/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets the variables of the layer that crashes the compiler, and reads its log and /proc. See
 * crashing_driver.h.
 */
#include "support/fakes/crashing_driver.h"
#include "support/fixtures/ocl_platforms.h"

#include "support/fakes/wrong_driver.h"
#include "support/scratch.h"
#include "support/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int cd_helper_lines, cd_crash_lines, cd_here_lines;
char cd_last_line[2048];
uint32_t cd_limit_s = 5;

static void listen(void *user, clg_log_level level, const char *message)
{
    (void)user;
    cd_here_lines += strstr(message, "about to be compiled in this process") != NULL;
    if (level > CLG_LOG_WARNING) return;
    cd_helper_lines += strstr(message, "compile helper") != NULL;
    if (!strstr(message, "the compiler of driver")) return;
    cd_crash_lines++;
    (void)snprintf(cd_last_line, sizeof cd_last_line, "%s", message);
}

int cd_begin(void **state)
{
    if (wd_begin(state) != 0) return -1;
    wd_set_or_clear("OPENCL_LAYERS", CLG_TEST_BUILD_DIR "/tests/layers/opencl_crashing.so");
    clg_set_log(listen, NULL, CLG_LOG_INFO);
    return 0;
}

const char *cd_log(void) { return scratch_path("crashes"); }

long cd_n_crashes(void)
{
    struct stat st;
    return stat(cd_log(), &st) == 0 ? (long)st.st_size : 0;
}

void cd_dies(const char *in, const char *at, const char *by, const char *times)
{
    (void)remove(cd_log());
    wd_set_or_clear("CLG_CRASH_IN", in);
    wd_set_or_clear("CLG_CRASH_AT", at);
    wd_set_or_clear("CLG_CRASH_BY", by);
    wd_set_or_clear("CLG_CRASH_TIMES", times);
    wd_set_or_clear("CLG_CRASH_LOG", cd_log());
    cd_helper_lines = cd_crash_lines = cd_here_lines = 0;
    cd_last_line[0] = '\0';
}

clg_context *cd_context(const char *store, const char *helper)
{
    clg_context_options options = CLG_CONTEXT_OPTIONS_INIT;
    clg_context *context;
    options.profiling = true;
    options.cache_dir = scratch_path(store);
    options.selftest = CLG_SELFTEST_ON;
    options.compile_helper = helper;
    options.compile_limit_s = cd_limit_s;
    options.compile_limit_mib = 1024;
    assert_ok(clg_context_create(ocl_platforms_test_device(), &options, &context));
    return context;
}

int cd_each_helper(pid_t parent, void (*visit)(pid_t pid))
{
    int n = 0;
    DIR *processes = opendir("/proc");
    assert_non_null(processes);
    for (struct dirent *d; (d = readdir(processes)) != NULL;) {
        char path[300], name[64] = "";
        long above = 0;
        (void)snprintf(path, sizeof path, "/proc/%s/stat", d->d_name);
        FILE *f = d->d_name[0] >= '1' && d->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (!f) continue;
        const int found = fscanf(f, "%*d (%63[^)]) %*c %ld", name, &above);
        (void)fclose(f);
        if (found != 2 || strncmp(name, "clgraph-compile", 15) != 0 || above != (long)parent)
            continue;
        n++;
        if (visit) visit((pid_t)atol(d->d_name));
    }
    (void)closedir(processes);
    return n;
}
