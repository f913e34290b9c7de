/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures a model on a device with one batch size.
 */
#ifndef CLTOOL_BENCH_RUN_H
#define CLTOOL_BENCH_RUN_H

#include "bench_result.h"
#include "inputs.h"

/* Measures latency, throughput, memory and the time of the first run of the engine's session, with
 * inputs that have `batch` rows. model: the name of results. *out_result holds what was measured
 * also after a failure; bench_results_free frees it. */
int bench_measure(const options *o, engine *e, const char *model, const input_set *inputs,
                  size_t batch, bench_result *out_result);
/* Measures the device time of n results of one device and model, in a separate context with
 * profiling. No other context is to be open, so that the weights are on the device only once. */
int bench_measure_device_times(const options *o, clg_model *model, const input_set *inputs,
                               bench_result *results, size_t n);

#endif
