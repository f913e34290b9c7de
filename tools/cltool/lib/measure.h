/* SPDX-License-Identifier: Apache-2.0
 *
 * Times runs: from host inputs to host outputs, on one session or several at the same time.
 */
#ifndef CLTOOL_MEASURE_H
#define CLTOOL_MEASURE_H

#include "engine.h"
#include "inputs.h"
#include "stats.h"

/* Variations of the same inputs, so that consecutive runs have different ones. */
#define N_VARIATIONS 2
typedef struct variations {
    input_set sets[N_VARIATIONS]; /* the first is as given */
} variations;
int variations_make(const input_set *given, variations *out_variations);
void variations_free(variations *v);

/* Does one run: sets the inputs, runs, fetches the outputs. */
clg_status measure_run(clg_session *session, const input_set *inputs, const clg_model *model);
/* As measure_run, recording errors; *out_ms may be NULL. */
int measure_once(clg_session *session, const input_set *inputs, const clg_model *model,
                 double *out_ms);

typedef struct load {
    size_t warmup, runs; /* runs 0: as many as fit in two seconds, at least 10 */
    size_t concurrency;  /* concurrent sessions */
} load;

/* Measures the times of all runs of all sessions, and the total time. */
int measure_load(clg_session *session, const variations *inputs, const clg_model *model,
                 const load *how, times *out_times, double *out_elapsed_ms);

/* Fetches the outputs of the last run, one per output of the model; freed by outputs_free. */
int outputs_fetch(clg_session *session, const clg_model *model, clg_value ***out_values);
void outputs_free(clg_value **values, const clg_model *model);
digest outputs_digest(clg_value *const *values, const clg_model *model);

#endif
