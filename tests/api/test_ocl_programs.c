/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests OpenCL programs and their cache: a program is built once, cached, and loaded from the
 * cache; invalid entries are rejected; and a second start compiles nothing.
 *
 * Started as `test_ocl_programs child LOCAL FILE`, this program is one such start on PoCL: it runs
 * a kernel with the local size LOCAL, and writes to FILE what was compiled.
 */
#include "support/unit.h"

#include "support/fixtures/ocl_platforms.h"
#include "support/scratch.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/threads.h"
#include "ocl/cache/cache_entry.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 64 };
#define PRELUDE "#define P_T 1\n#define P_VEC 1\n#define P_FMA 0\n"

static const char *program_path; /* argv[0] */

static ocl_counters counters_of(ocl_context *ocl)
{
    ocl_counters counters;
    ocl_context_counters(ocl, &counters);
    return counters;
}

/* Runs one program and checks its result. */
static void run(ocl_context *ocl, const char *name, size_t local)
{
    float y[N];
    ocl_queue *q;
    for (int i = 0; i < N; i++) y[i] = (float)i;
    assert_ok(ocl_queue_create(ocl, &q));
    assert_ok(ocl_platforms_axpy(ocl, q, name, 2.0f, N, local, y));
    for (int i = 0; i < N; i++) assert_true(y[i] == 2.0f * (float)i + (float)strlen(name));
    ocl_queue_free(q);
}

/* ---- in one context -------------------------------------------------------------------------- */

static void check_once(ocl_context *ocl, void *user)
{
    (void)user;
    for (int i = 0; i < 3; i++) run(ocl, "once", 8);
    assert_int_equal(counters_of(ocl).programs_compiled, 1);
    assert_int_equal(counters_of(ocl).programs_loaded, 0);
    assert_int_equal(counters_of(ocl).kernels_launched, 3);
}

TEST(programs__are_built_once)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = ""}, check_once, NULL);
}

static void *build_in_thread(void *argument)
{
    ocl_kernel *k;
    const kernel_ref ref = {.source = "threads",
                            .entry = "f",
                            .prelude = PRELUDE,
                            .body = "__kernel void f(__global int *y) { y[0] = 1; }"};
    if (ocl_kernel_create(argument, &ref, &k) != CLG_OK) return NULL;
    ocl_kernel_free(k);
    return argument;
}

static void check_threads(ocl_context *ocl, void *user)
{
    (void)user;
    pthread_t threads[6];
    const size_t n_threads = ocl_context_caps(ocl)->family == PLATFORM_OCLGRIND
                                 ? 1 /* its reference counts are not atomic */
                                 : 6;
    for (size_t i = 0; i < n_threads; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, build_in_thread, ocl), 0);
    for (size_t i = 0; i < n_threads; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, ocl);
    }
    assert_int_equal(counters_of(ocl).programs_compiled, 1);
    run(ocl, "after the threads", 8);
}

TEST(programs__threads_share_one_build)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = ""}, check_threads, NULL);
}

static void check_refusal(ocl_context *ocl, void *user)
{
    (void)user;
    ocl_kernel *k;
    const kernel_ref wrong = {.source = "wrong",
                              .entry = "f",
                              .prelude = PRELUDE,
                              .body = "__kernel void f(__global int *y) { y[0] = not_declared; }"};
    for (int i = 0; i < 2; i++) {
        assert_error(ocl_kernel_create(ocl, &wrong, &k), CLG_ERROR_KERNEL_BUILD,
                     "kernel 'wrong' does not compile");
        assert_non_null(strstr(error_text(), "not_declared"));
        assert_null(k);
    }
    const kernel_ref absent = {.source = "no_such_file", .entry = "f"};
    assert_error(ocl_kernel_create(ocl, &absent, &k), CLG_ERROR_INTERNAL, "no_such_file");
    assert_int_equal(counters_of(ocl).programs_compiled, 0);
    run(ocl, "after the refusal", 8);
}

TEST(programs__refusal_has_the_build_log)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = ""}, check_refusal, NULL);
}

typedef struct progress {
    size_t n_calls, last_done, stop_after;
} progress;

static bool watch(void *user, const char *what, size_t done, size_t total)
{
    progress *p = user;
    assert_string_equal(what, "compiling kernels");
    assert_true(done > p->last_done && done <= total);
    p->last_done = done;
    return ++p->n_calls != p->stop_after;
}

static void check_batch(ocl_context *ocl, void *user)
{
    (void)user;
    enum { N_REFS = 3 };
    char preludes[N_REFS][128];
    kernel_ref refs[N_REFS];
    const kernel_ref *pointers[N_REFS];
    for (size_t i = 0; i < N_REFS; i++) {
        (void)snprintf(preludes[i], sizeof preludes[i], PRELUDE "#define P_I %zu\n", i);
        refs[i] = (kernel_ref){.source = "batch",
                               .entry = "f",
                               .prelude = preludes[i],
                               .body = "__kernel void f(__global int *y) { y[0] = P_I; }"};
        pointers[i] = &refs[i];
    }
    progress all = {0}, some = {.stop_after = 1};
    assert_error(ocl_programs_build(ocl, pointers, N_REFS, watch, &some), CLG_ERROR_CANCELLED,
                 "cancelled");
    assert_ok(ocl_programs_build(ocl, pointers, N_REFS, watch, &all));
    assert_int_equal(all.last_done, N_REFS);
    assert_int_equal(counters_of(ocl).programs_compiled, N_REFS);
    assert_ok(ocl_programs_build(ocl, pointers, N_REFS, NULL, NULL));
    assert_int_equal(counters_of(ocl).programs_compiled, N_REFS);
    assert_ok(ocl_programs_build(ocl, NULL, 0, NULL, NULL));
    run(ocl, "after the batch", 8);
}

TEST(programs__batch_reports_and_stops)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = ""}, check_batch, NULL);
}

/* What was compiled, as the process-wide callback tells it. */
typedef struct compiled {
    size_t n_starts, n_ends;
    bool is_known; /* all names are those of the kernel or its program */
} compiled;

static void count_compiled(void *user, const char *kernel, bool has_ended)
{
    compiled *c = user;
    c->n_starts += !has_ended;
    c->n_ends += has_ended;
    c->is_known = c->is_known && (strcmp(kernel, "told") == 0 || strcmp(kernel, "f") == 0);
}

static void check_told(ocl_context *ocl, void *user)
{
    const kernel_ref ref = {.source = "told",
                            .entry = "f",
                            .prelude = PRELUDE,
                            .body = "__kernel void f(__global int *y) { y[0] = 17; }"};
    const kernel_ref *refs[] = {&ref};
    compiled c = {.is_known = true};
    (void)user;
    clg_set_compile_callback(count_compiled, &c);
    assert_ok(ocl_programs_build(ocl, refs, 1, NULL, NULL));
    assert_true(c.n_starts > 0 && c.is_known);
    assert_int_equal(c.n_starts, c.n_ends);
    const size_t n = c.n_starts;
    assert_ok(ocl_programs_build(ocl, refs, 1, NULL, NULL)); /* built before */
    clg_set_compile_callback(NULL, NULL);
    run(ocl, "not told", 8);
    assert_int_equal(c.n_starts, n);
}

TEST(programs__compile_callback_sees_starts_and_ends)
{
    (void)ocl_platforms_each(&(ocl_context_options){.cache_dir = ""}, check_told, NULL);
}

/* ---- through the cache on disk --------------------------------------------------------------- */

static void run_and_store(ocl_context *ocl, void *user)
{
    (void)user;
    run(ocl, "stored", 8);
    ocl_programs_save(ocl);
}

static void expect_loaded(ocl_context *ocl, void *user)
{
    (void)user;
    run(ocl, "stored", 8);
    assert_int_equal(counters_of(ocl).programs_compiled, 0);
    assert_int_equal(counters_of(ocl).programs_loaded, 1);
}

static void expect_compiled(ocl_context *ocl, void *user)
{
    (void)user;
    run(ocl, "stored", 8);
    assert_int_equal(counters_of(ocl).programs_compiled, 1);
    assert_int_equal(counters_of(ocl).programs_loaded, 0);
}

TEST(programs__second_start_compiles_nothing)
{
    const ocl_context_options options = {.cache_dir = scratch_path("second start")};
    (void)ocl_platforms_each(&options, run_and_store, NULL);
    (void)ocl_platforms_each(&options, expect_loaded, NULL);
}

/* Calls `change` for each cache entry of the program "stored". */
static void each_entry(const char *folder, void (*change)(const char *path))
{
    ocl_cache_entry *entries;
    size_t n, n_changed = 0;
    assert_ok(ocl_cache_list(folder, &entries, &n));
    for (size_t i = 0; i < n; i++) {
        char *path;
        if (!strstr(entries[i].what, "program stored")) continue;
        assert_ok(file_join(folder, entries[i].name, &path));
        change(path);
        memory_free(path);
        n_changed++;
    }
    ocl_cache_list_free(entries, n);
    assert_true(n_changed > 0);
}

static void truncate_file(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size / 2), 0);
}

static void flip_a_bit(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -20, SEEK_END), 0);
    const int c = fgetc(file);
    assert_int_equal(fseek(file, -20, SEEK_END), 0);
    assert_int_equal(fputc(c ^ 4, file), c ^ 4);
    assert_int_equal(fclose(file), 0);
}

TEST(programs__damaged_entries_are_compiled_again_and_replaced)
{
    const char *folder = scratch_path("damaged programs");
    const ocl_context_options options = {.cache_dir = folder};
    void (*const damages[])(const char *) = {truncate_file, flip_a_bit};
    (void)ocl_platforms_each(&options, run_and_store, NULL);
    for (size_t i = 0; i < 2; i++) {
        each_entry(folder, damages[i]);
        (void)ocl_platforms_each(&options, expect_compiled, NULL); /* stores the program again */
        (void)ocl_platforms_each(&options, expect_loaded, NULL);
    }
}

/* Replaces an entry by a well-formed one with an invalid binary. */
static void replace_binary(const char *path)
{
    static const char payload[] = "\0\0\0\0\0\0\0\0this is no program binary";
    char *data, *made;
    size_t n;
    cache_entry entry;
    assert_ok(file_read(path, SIZE_MAX, &data, &n));
    assert_true(cache_entry_read(data, n, &entry));
    if (strncmp(entry.what, "Oclgrind", 8) != 0) { /* PoCL and rusticl abort the process */
        print_message("not tried on '%.*s'\n", (int)entry.what_bytes, entry.what);
        memory_free(data);
        return;
    }
    made = cache_entry_make(entry.key, "replaced: program stored", payload, sizeof payload - 1, &n);
    assert_non_null(made);
    assert_ok(file_replace(path, made, n));
    memory_free(made);
    memory_free(data);
}

static void expect_compiled_on_oclgrind(ocl_context *ocl, void *user)
{
    if (ocl_context_caps(ocl)->family == PLATFORM_OCLGRIND)
        expect_compiled(ocl, user);
    else
        expect_loaded(ocl, user);
}

TEST(programs__binary_that_the_driver_refuses_is_compiled_again)
{
    const char *folder = scratch_path("refused programs");
    const ocl_context_options options = {.cache_dir = folder};
    (void)ocl_platforms_each(&options, run_and_store, NULL);
    each_entry(folder, replace_binary);
    (void)ocl_platforms_each(&options, expect_compiled_on_oclgrind, NULL);
    (void)ocl_platforms_each(&options, expect_loaded, NULL);
}

TEST(programs__unusable_store_changes_no_result)
{
    const ocl_context_options options = {.cache_dir = scratch_file("a plain file", "", 0)};
    (void)ocl_platforms_each(&options, run_and_store, NULL);
    (void)ocl_platforms_each(&options, expect_compiled, NULL);
}

static size_t n_stored(const char *folder)
{
    ocl_cache_entry *entries;
    size_t n, n_programs = 0;
    assert_ok(ocl_cache_list(folder, &entries, &n));
    for (size_t i = 0; i < n; i++) n_programs += strstr(entries[i].what, ": program ") != NULL;
    ocl_cache_list_free(entries, n);
    return n_programs;
}

TEST(programs__are_stored_when_a_run_brings_nothing_new)
{
    ocl_context *ocl;
    const ocl_context_options options = {.cache_dir = scratch_path("settled")};
    assert_ok(ocl_context_create(0, &options, &ocl));
    run(ocl, "first", 8);
    (void)error_set(CLG_ERROR_DATA, "the caller's error");
    ocl_programs_save_when_settled(ocl);
    assert_int_equal(n_stored(options.cache_dir), 0);
    run(ocl, "first", 8);
    ocl_programs_save_when_settled(ocl);
    assert_int_equal(n_stored(options.cache_dir), 1);
    ocl_programs_save_when_settled(ocl);
    assert_string_equal(error_text(), "the caller's error");

    /* A program that was never launched is stored as well, when the context is freed. */
    const kernel_ref ref = {
        .source = "idle", .entry = "f", .prelude = PRELUDE, .body = "__kernel void f(void) { }"};
    ocl_kernel *k;
    assert_ok(ocl_kernel_create(ocl, &ref, &k));
    ocl_kernel_free(k);
    ocl_context_free(ocl);
    assert_int_equal(n_stored(options.cache_dir), 2);
}

TEST(facts__are_recalled_by_name_and_device)
{
    ocl_context *ocl;
    char *data;
    size_t n;
    const ocl_context_options options = {.cache_dir = scratch_path("facts")};
    for (int start = 0; start < 2; start++) {
        assert_ok(ocl_context_create(0, &options, &ocl));
        assert_false(ocl_context_recall(ocl, "another", &data, &n));
        if (start == 0) {
            assert_false(ocl_context_recall(ocl, "tuning 1", &data, &n));
            ocl_context_remember(ocl, "tuning 1", "what was measured", "fast", 4);
        }
        assert_true(ocl_context_recall(ocl, "tuning 1", &data, &n));
        assert_int_equal(n, 4);
        assert_memory_equal(data, "fast", 4);
        memory_free(data);
        ocl_context_free(ocl);
    }
}

/* ---- starts of PoCL with a separate, empty cache --------------------------------------------- */

static size_t count_objects(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char below[2048];
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(below, sizeof below, "%s/%s", folder, entry->d_name);
        n += count_objects(below) + (strstr(entry->d_name, ".so") != NULL);
    }
    if (dir) (void)closedir(dir);
    return n;
}

static int child(size_t local, const char *result)
{
    ocl_context *ocl;
    const char *driver_cache = getenv("POCL_CACHE_DIR");
    assert_ok(ocl_context_create(0, &(ocl_context_options){.cache_dir = NULL}, &ocl));
    run(ocl, "warmed", 8); /* makes the driver unpack the cached programs */
    const size_t n_before = count_objects(driver_cache);
    run(ocl, "warmed", local);
    const size_t n_after = count_objects(driver_cache);
    ocl_programs_save(ocl);
    char line[128];
    (void)snprintf(line, sizeof line, "%d %d %zu", (int)counters_of(ocl).programs_compiled,
                   (int)counters_of(ocl).programs_loaded, n_after - n_before);
    ocl_context_free(ocl);
    return file_replace(result, line, strlen(line)) == CLG_OK ? 0 : 1;
}

typedef struct start {
    int compiled, loaded;
    size_t n_specialised; /* compiled by the driver at a launch with another local size */
} start;

/* Starts this program in a new process, with an empty driver cache; returns what it compiled. */
static start restart(size_t local)
{
    static int n_starts;
    char name[64], local_text[16];
    (void)snprintf(name, sizeof name, "pocl %d", n_starts++);
    (void)snprintf(local_text, sizeof local_text, "%zu", local);
    const char *driver_cache = scratch_path(name), *result = scratch_path("result");
    assert_int_equal(mkdir(driver_cache, 0700), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setenv("POCL_CACHE_DIR", driver_cache, 1);
        (void)setenv("CLG_CACHE_DIR", scratch_path("starts"), 1);
        (void)execl(program_path, program_path, "child", local_text, result, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    char *line;
    size_t n;
    start s;
    assert_ok(file_read(result, 4096, &line, &n));
    assert_int_equal(sscanf(line, "%d %d %zu", &s.compiled, &s.loaded, &s.n_specialised), 3);
    memory_free(line);
    return s;
}

TEST(programs__warm_start_needs_nothing_of_the_drivers_cache)
{
    start s = restart(8);
    assert_int_equal(s.compiled + s.loaded, 1);
    assert_int_equal(s.compiled, 1);
    s = restart(8);
    assert_int_equal(s.compiled, 0);
    assert_int_equal(s.loaded, 1);
    assert_int_equal(s.n_specialised, 0);
    /* A new local size is compiled once, and is then in the cache. */
    s = restart(16);
    assert_int_equal(s.compiled, 0);
    assert_int_equal(s.n_specialised, 1);
    s = restart(16);
    assert_int_equal(s.compiled, 0);
    assert_int_equal(s.n_specialised, 0);
    s = restart(8);
    assert_int_equal(s.n_specialised, 0);
}

int main(int argc, char **argv)
{
    program_path = argv[0];
    if (argc == 4 && strcmp(argv[1], "child") == 0) {
        ocl_platforms_show_pocl();
        return child((size_t)strtoul(argv[2], NULL, 10), argv[3]);
    }
    ocl_platforms_show_all();
    return test_run_all();
}
