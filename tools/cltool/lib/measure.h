/* SPDX-License-Identifier: Apache-2.0
 *
 * Times runs: from host inputs to host outputs, on one session or several at the same time.
 */
#ifndef CLTOOL_MEASURE_H
#define CLTOOL_MEASURE_H

#include "engine.h"
#include "inputs.h"
#include "stats.h"

/* Inputs of the same shapes with different values, which consecutive runs use in turn. */
#define N_VARIATIONS 2
typedef struct variations {
    input_set sets[N_VARIATIONS]; /* the first has the given values */
} variations;
int variations_make(const input_set *given, variations *out_variations);
void variations_free(variations *v);

/* Runs the session once: sets the inputs, runs, fetches the outputs. */
clg_status measure_run(clg_session *session, const input_set *inputs, const clg_model *model);
/* As measure_run, and records errors and measures the time. out_ms may be NULL. */
int measure_once(clg_session *session, const input_set *inputs, const clg_model *model,
                 double *out_ms);

typedef struct load {
    size_t warmup, runs; /* runs 0: as many as fit in two seconds, at least 10 */
    size_t concurrency;  /* number of concurrent sessions */
} load;

/* Runs `concurrency` sessions at once; measures the times of all runs, and the elapsed time. */
int measure_load(clg_session *session, const variations *inputs, const clg_model *model,
                 const load *how, times *out_times, double *out_elapsed_ms);

/* Fetches the outputs of the last run, one per output of the model; freed by outputs_free. */
int outputs_fetch(clg_session *session, const clg_model *model, clg_value ***out_values);
void outputs_free(clg_value **values, const clg_model *model);
digest outputs_digest(clg_value *const *values, const clg_model *model);

#endif
