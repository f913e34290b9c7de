/* SPDX-License-Identifier: Apache-2.0
 *
 * Result files that several processes write together, or that a later process completes. The rows
 * go to FILE.KEY.part, each at its place; what process R has written is in its record,
 * FILE.KEY.part.R. KEY is the hash of the run's description, so that files of different runs are
 * never mixed up. The process that finds all records complete gives the files their names. See
 * decision 65.
 */
#ifndef CLTOOL_SHARED_FILES_H
#define CLTOOL_SHARED_FILES_H

#include "description.h"

#include <clgraph/inspect.h>

/* What a process has written. */
typedef struct shared_record {
    int64_t done, total; /* rows */
    int64_t n_failed;    /* rows of `done` whose input could not be loaded */
    size_t batch;
} shared_record;

typedef struct shared_files {
    bool is_on;          /* false: the process writes whole files by itself */
    size_t rank, size;   /* of the processes that write the files */
    const char *who;     /* "rank 1 of 4", "the run" */
    const char *job;     /* in the record, so that records of earlier jobs do not count */
    json_t *description; /* of the run */
    char key[DESCRIPTION_KEY_BYTES];
    const char **paths; /* of the files, under their final names; borrowed */
    size_t n_paths;
    bool was_found;      /* a record that --resume continues with */
    shared_record state; /* of this process */
} shared_files;

/* Decides whether files are shared: for a rank of a job, and with --resume. */
void shared_start(const options *o, const shard *s, shared_files *out_files);
/* Adds a file; before shared_find. Returns CODE_USAGE if it exists and may not be overwritten, or
 * is not a regular file: its name could not be given to another one. */
int shared_add(shared_files *f, const options *o, const char *path);
/* Describes the run, whose files have n_rows rows, and looks for what an earlier run of this
 * process has left (--resume), which is then in `state`. Returns CODE_USAGE and names the
 * difference for files that were begun with another description. *out_complete: the files are
 * there already. */
int shared_find(shared_files *f, const options *o, const char *model_path, const input_set *inputs,
                const shard *s, int64_t n_rows, bool *out_complete);
/* Returns the name of the file under which rows of a file are written; free(). */
char *shared_part(const shared_files *f, const char *path);
/* Writes the record of this process. The rows that it counts must be flushed. */
int shared_save(const shared_files *f);
/* Names the files, which have n_rows rows, if all processes are complete. *out_named: they are, and
 * *out_n_failed of the rows could not be loaded. */
int shared_finish(const shared_files *f, int64_t n_rows, bool *out_named, int64_t *out_n_failed);
void shared_free(shared_files *f);

#endif
