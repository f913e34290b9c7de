/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements ranks.h.
 */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

/* What a launcher sets for each process. The first row counts whose variable of the rank is set. */
static const struct launcher {
    const char *rank, *size, *local;
    const char *needs; /* the row counts only where this is set, too; NULL: always */
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL},
    /* A batch script has SLURM_PROCID too, and is one process: only srun makes steps. */
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
};
#define N_LAUNCHERS (sizeof launchers / sizeof launchers[0])

/* Variables that differ from job to job. */
static const char *const job_names[] = {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID"};
#define N_JOB_NAMES (sizeof job_names / sizeof job_names[0])

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

static int read_rank(const struct launcher *l, shard *out_shard)
{
    shard s = {.is_rank = true, .job = "", .from = l->rank};
    int code = number(l->rank, l->rank, 0, &s.part);
    if (code == CODE_DONE) code = number(l->size, l->rank, 1, &s.n_parts);
    if (code != CODE_DONE) return code;
    if (s.n_parts > INT32_MAX)
        return wrong(fail_usage("%s=%zu: there are no such jobs", l->size, s.n_parts));
    if (s.part >= s.n_parts)
        return wrong(fail_usage("%s=%zu is not below %s=%zu", l->rank, s.part, l->size, s.n_parts));
    s.local = s.part;
    if (variable(l->local)) code = number(l->local, l->rank, 0, &s.local);
    for (size_t i = 0; i < N_JOB_NAMES && s.job[0] == '\0'; i++) {
        const char *text = variable(job_names[i]);
        if (text) s.job = text;
    }
    if (code == CODE_DONE && s.n_parts > 1) *out_shard = s;
    return code;
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
    *out_shard = (shard){.part = (id - min) / step, .n_parts = n, .from = id_name};
    return CODE_DONE;
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
    if (part > parts || parts > INT32_MAX)
        return fail_usage("--shard %s: parts are 1 to %zu", given, parts);
    *out_shard = (shard){.part = part - 1, .n_parts = parts, .from = "--shard"};
    return CODE_DONE;
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

void ranks_rows(const shard *s, int64_t n_rows, int64_t *out_first, int64_t *out_n)
{
    const int64_t part = (int64_t)s->part, parts = (int64_t)s->n_parts;
    const int64_t size = n_rows / parts, larger = n_rows % parts;
    *out_first = part * size + (part < larger ? part : larger);
    *out_n = size + (part < larger);
}
