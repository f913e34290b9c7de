/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of the rows this process computes: by --shard, or as a rank of the job that mpirun, a
 * process manager or Slurm started, by the environment variables that they set. MPI itself is not
 * used.
 */
#ifndef CLTOOL_RANKS_H
#define CLTOOL_RANKS_H

#include "options.h"

typedef struct shard {
    size_t part, n_parts; /* part: from 0 */
    bool is_rank;         /* of a job whose processes write files together */
    /* of ranks: */
    size_t local;     /* the rank on this machine, which chooses the device */
    char *job;        /* what names the job, "" where nothing does */
    char *name;       /* "rank 1 of 4", from 0 */
    const char *from; /* the variable that says so */
} shard;

/* Reads --shard, else the environment. Returns CODE_USAGE and names the variable for one that makes
 * no sense. */
int ranks_read(const options *o, shard *out_shard);
void ranks_free(shard *s);
/* Computes the rows of a part out of n_rows rows: parts are consecutive, and consist of whole
 * blocks of rows, of which only the last may be shorter. Their sizes differ by at most one block.
 */
void ranks_rows(const shard *s, int64_t n_rows, int64_t block, int64_t *out_first, int64_t *out_n);

#endif
