/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements ranks.h.
 */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARTS INT32_MAX

/* What a launcher sets for each process. The first row counts whose variable of the rank is set,
 * and the one that it needs. */
static const struct launcher {
    const char *rank, *size, *local;
    const char *needs;  /* NULL: none */
    const char *job[3]; /* together they differ from job to job, and are equal in one */
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     NULL,
     {"PMIX_NAMESPACE"}},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALRANKID", {"PMI_JOBID", "SLURM_JOB_ID"}},
    /* srun --mpi=pmi2 */
    {"PMI_RANK", "PMI_SIZE", "SLURM_LOCALID", NULL, {"PMI_JOBID", "SLURM_JOB_ID"}},
    /* A batch script has SLURM_PROCID too, and is one process: only srun makes steps. */
    {"SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_NUM_TASKS",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
    {"SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_ID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
};
#define N_LAUNCHERS (sizeof launchers / sizeof launchers[0])

/* Returns an environment variable, NULL where it is not set or empty. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && text[0] != '\0' ? text : NULL;
}

static int wrong(int code)
{
    if (code != CODE_DONE) fail_hint("--shard none ignores the variables of mpirun and Slurm");
    return code;
}

/* Reads a variable that must be a whole number of at least min. */
static int number(const char *name, const char *because, size_t min, size_t *out_number)
{
    const char *text = variable(name);
    if (!text) return wrong(fail_usage("%s needs %s, which is not set", because, name));
    return wrong(option_size(name, text, min, out_number));
}

/* Returns what names the job, "" where nothing does; free(). */
static char *job_name(const struct launcher *l)
{
    char *job = must_copy("");
    for (size_t i = 0; i < sizeof l->job / sizeof l->job[0] && l->job[i]; i++) {
        const char *text = variable(l->job[i]);
        if (!text) continue;
        char *longer = must_printf("%s%s%s", job, job[0] ? "." : "", text);
        free(job);
        job = longer;
    }
    return job;
}

static int check_parts(const char *name, size_t n_parts)
{
    if (n_parts <= MAX_PARTS) return CODE_DONE;
    return fail_usage("%s: %zu processes are too many, at most %d are possible", name, n_parts,
                      MAX_PARTS);
}

static int read_rank(const struct launcher *l, shard *out_shard)
{
    shard s = {.is_rank = true};
    int code = number(l->rank, l->rank, 0, &s.part);
    if (code == CODE_DONE) code = number(l->size, l->rank, 1, &s.n_parts);
    if (code == CODE_DONE) code = wrong(check_parts(l->size, s.n_parts));
    if (code != CODE_DONE) return code;
    if (s.part >= s.n_parts)
        return wrong(fail_usage("%s=%zu is not below %s=%zu", l->rank, s.part, l->size, s.n_parts));
    s.local = s.part;
    if (variable(l->local)) code = number(l->local, l->rank, 0, &s.local);
    if (code != CODE_DONE || s.n_parts == 1) return code;
    s.job = job_name(l);
    s.name = must_printf("rank %zu of %zu", s.part, s.n_parts);
    s.from = l->rank;
    *out_shard = s;
    return CODE_DONE;
}

/* Reads the variables of a task of a Slurm job array. */
static int read_array(shard *out_shard)
{
    static const char id_name[] = "SLURM_ARRAY_TASK_ID", option[] = "--shard array";
    size_t id, min, max, n, step = 1;
    int code = number(id_name, option, 0, &id);
    if (code == CODE_DONE) code = number("SLURM_ARRAY_TASK_MIN", option, 0, &min);
    if (code == CODE_DONE) code = number("SLURM_ARRAY_TASK_MAX", option, 0, &max);
    if (code == CODE_DONE) code = number("SLURM_ARRAY_TASK_COUNT", option, 1, &n);
    if (code == CODE_DONE && variable("SLURM_ARRAY_TASK_STEP"))
        code = number("SLURM_ARRAY_TASK_STEP", option, 1, &step);
    if (code != CODE_DONE) return code;
    if (id < min || id > max || (id - min) % step != 0)
        return wrong(fail_usage("%s=%zu is not one of %zu to %zu by steps of %zu", id_name, id, min,
                                max, step));
    if ((max - min) / step != n - 1)
        return wrong(fail_usage("SLURM_ARRAY_TASK_COUNT=%zu: from %zu to %zu by steps of %zu there "
                                "are %zu; arrays with gaps do not divide rows",
                                n, min, max, step, (max - min) / step + 1));
    *out_shard = (shard){.part = (id - min) / step, .n_parts = n};
    return wrong(check_parts("SLURM_ARRAY_TASK_COUNT", n));
}

/* Reads "I/N", where I counts from 1. */
static int read_option(const char *given, shard *out_shard)
{
    size_t part, parts;
    char *text = must_copy(given), *slash = strchr(text, '/');
    if (slash) *slash = '\0';
    int code = slash ? option_size("--shard", text, 1, &part)
                     : fail_usage("--shard takes I/N, not '%s'", text);
    if (code == CODE_DONE) code = option_size("--shard", slash + 1, 1, &parts);
    free(text);
    if (code != CODE_DONE) return code;
    if (part > parts) return fail_usage("--shard %s: parts are 1 to %zu", given, parts);
    *out_shard = (shard){.part = part - 1, .n_parts = parts};
    return check_parts("--shard", parts);
}

int ranks_read(const options *o, shard *out_shard)
{
    *out_shard = (shard){.n_parts = 1};
    if (o->shard && strcmp(o->shard, "none") == 0) return CODE_DONE;
    if (o->shard && strcmp(o->shard, "array") == 0) return read_array(out_shard);
    if (o->shard) return read_option(o->shard, out_shard);
    for (size_t i = 0; i < N_LAUNCHERS; i++) {
        const struct launcher *l = &launchers[i];
        if (variable(l->rank) && (!l->needs || variable(l->needs))) return read_rank(l, out_shard);
    }
    return CODE_DONE;
}

void ranks_free(shard *s)
{
    free(s->job);
    free(s->name);
    *s = (shard){0};
}

void ranks_rows(const shard *s, int64_t n_rows, int64_t block, int64_t *out_first, int64_t *out_n)
{
    const int64_t part = (int64_t)s->part, parts = (int64_t)s->n_parts;
    const int64_t n_blocks = n_rows / block + (n_rows % block > 0);
    const int64_t size = n_blocks / parts, larger = n_blocks % parts;
    const int64_t first = part * size + (part < larger ? part : larger);
    const int64_t end = first + size + (part < larger);
    /* only the last block is shorter */
    *out_first = first < n_blocks ? first * block : n_rows;
    *out_n = (end < n_blocks ? end * block : n_rows) - *out_first;
}
