/* SPDX-License-Identifier: Apache-2.0
 *
 * The result files of cltool predict, one for each output that -o names: whole files, or .npy files
 * that are shared with other processes or runs.
 */
#ifndef CLTOOL_TARGETS_H
#define CLTOOL_TARGETS_H

#include "row_table.h"
#include "shared_files.h"

#include <clgraph/stream.h>

/* An output of the model and the file that it is written to. */
typedef struct target {
    const clg_port *port;
    const char *path;       /* as given; "-": standard output */
    const char *file;       /* which is written: the path, or a temporary file */
    clg_npy_writer *writer; /* NULL: not opened yet, or complete */
    bool is_table;          /* a .csv or .jsonl file */
    row_table *table;       /* as writer */
    clg_dtype dtype;
    size_t rank;
    int64_t dims[CLG_MAX_RANK]; /* dims[0]: the rows written so far */
} target;

typedef struct target_list {
    target *items;
    size_t count;
    shared_files *shared; /* borrowed */
    int64_t n_rows;       /* of each file */
    int64_t first_row;    /* of this run, in a shared file */
    row_source source;    /* of tables; set before the first rows */
    label_list labels;
} target_list;

/* Reads -o, and adds the files to `shared`. */
int targets_read(const options *o, const clg_model *model, shared_files *shared,
                 target_list *out_list);
void targets_free(target_list *list);
/* Appends rows of an output to its file, which it opens before the first ones. */
int targets_write(target_list *list, const clg_stream_tensor *from);
/* Waits until the rows written so far are stored. */
int targets_flush(const target_list *list);
/* Completes whole files, and closes shared ones. Makes those of no rows. */
int targets_commit(target_list *list);
/* Sets the shapes to those of whole shared files. That of a file to which this run has written
 * nothing is read from it, if it has its name, or is the model's. */
void targets_look(target_list *list);

#endif
