/* SPDX-License-Identifier: Apache-2.0
 *
 * What `cltool profile` measured: times of steps, and their sums by operator and by kernel.
 */
#ifndef CLTOOL_PROFILE_ROWS_H
#define CLTOOL_PROFILE_ROWS_H

#include "stats.h"

/* A step and its times in all runs; the strings are borrowed from the session. */
typedef struct step_row {
    const char *node, *op_type, *kernel, *impl, *impls;
    double flops, bytes;
    times us;
    double median_us;
    double start_us, last_us; /* of the last run, since its first step's start */
} step_row;

/* Steps of one operator or one kernel. */
typedef struct group_row {
    const char *name;
    size_t n_steps;
    double us, flops, bytes;
} group_row;

typedef struct profile_rows {
    clg_measurement peaks;
    step_row *steps;
    size_t n_steps, n_runs;
    group_row *operators, *kernels; /* the slowest first */
    size_t n_operators, n_kernels;
    times host_ms, device_ms;
    double last_host_ms; /* of the last run */
    double total_us;     /* medians of all steps */
} profile_rows;

/* Sets medians, total and groups of the steps. */
void profile_sum_up(profile_rows *p);
void profile_rows_free(profile_rows *p);

/* Returns the share of the total. */
double profile_share(const profile_rows *p, double us);
/* Returns amount / us in billions per second; 0 when no time was measured. */
double profile_rate(double amount, double us);
/* Returns the fraction of the device's peak that a step reaches: the larger one of its fractions of
 * the peak FLOP rate and of the peak memory bandwidth. */
double profile_of_peak(const profile_rows *p, double flops, double bytes, double us);

#endif
