/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures times of runs, from host inputs to host outputs, on one session or several concurrent
 * ones.
 */
#ifndef CLTOOL_MEASURE_H
#define CLTOOL_MEASURE_H

#include "engine.h"
#include "inputs.h"
#include "stats.h"

/* Sets of inputs with the same shapes and different values; consecutive runs use them in turn. */
#define N_VARIATIONS 2
typedef struct variations {
    input_set sets[N_VARIATIONS]; /* the first has the given values */
} variations;
int variations_make(const input_set *given, variations *out_variations);
void variations_free(variations *v);

/* Sets the inputs, runs the session once and fetches the outputs. */
clg_status measure_run(clg_session *session, const input_set *inputs, const clg_model *model);
/* As measure_run, but records the error, and measures the time in milliseconds. out_ms may be NULL.
 */
int measure_once(clg_session *session, const input_set *inputs, const clg_model *model,
                 double *out_ms);

typedef struct load {
    size_t warmup, runs; /* per session; runs 0: as many as take two seconds, at least 10 */
    size_t concurrency;  /* number of concurrent sessions */
} load;

/* Runs the session and concurrency - 1 clones of it concurrently. *out_times are the times of all
 * runs except warm-up runs; *out_elapsed_ms is the time of everything, warm-up runs included. */
int measure_load(clg_session *session, const variations *inputs, const clg_model *model,
                 const load *how, times *out_times, double *out_elapsed_ms);

/* Fetches all outputs of the last run, in the order of the model; outputs_free frees them. */
int outputs_fetch(clg_session *session, const clg_model *model, clg_value ***out_values);
void outputs_free(clg_value **values, const clg_model *model);
digest outputs_digest(clg_value *const *values, const clg_model *model);

#endif
