/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of `cltool bench`: figures of one model on one device with one batch size, and what they
 * were measured with; as a table of text, as Markdown, CSV and JSON.
 */
#ifndef CLTOOL_BENCH_RESULT_H
#define CLTOOL_BENCH_RESULT_H

#include "engine.h"
#include "output.h"
#include "stats.h"

/* Results of one device with one model and batch size. */
typedef struct bench_result {
    char *device, *selector; /* ids and selectors, joined by commas for several devices */
    const char *model;       /* borrowed: a path, or the title of a model of the suite */
    size_t batch, runs;
    double load_ms, first_run_ms;
    const char *precision;
    time_stats latency, device_time;
    bool has_device_time;
    double elapsed_ms, throughput, flops; /* throughput: rows per second; flops: of one run */
    uint64_t peak_rss_bytes, device_bytes, steps; /* steps: kernels and CLBlast calls of one run */
    uint64_t weight_bytes, slab_bytes, live_bytes, io_bytes;
    uint64_t digest;
    double peak_gflops; /* of the device in the session's precision; 0: not measured */
    char *left_out;     /* why there are no figures; NULL: there are */
} bench_result;

/* A device as a report names it: no ids, which may be those of one machine. */
typedef struct bench_device {
    char *selector, *name, *platform, *driver, *opencl;
    uint64_t memory_bytes;
    clg_measurement peaks;
    bool is_measured;
} bench_device;

typedef struct bench_results {
    bench_result *items;
    size_t count;
    bench_device *devices;
    size_t n_devices;
    bool names_models; /* tables have a column of models even where all are the same */
} bench_results;       /* all zeros is valid and empty */

bench_result *bench_results_add(bench_results *r, bench_result one); /* takes its strings */
/* Adds a device; returns it, valid until the next is added. */
bench_device *bench_results_add_device(bench_results *r, const clg_device_info *device);
/* Measures the device's peaks. */
int bench_device_measure(bench_device *device, clg_context *context);
/* Returns the measured peak of a precision in GFLOP/s; 0: not measured. */
double bench_device_peak(const bench_device *device, const char *precision);
void bench_results_free(bench_results *r);

/* Return GFLOP/s of the median run, and its share of the peak; 0: unknown. */
double bench_result_gflops(const bench_result *r);
double bench_result_share(const bench_result *r);

json_t *bench_latency_json(const time_stats *t);
json_t *bench_result_json(const bench_result *r);
/* Returns {"version", "commit", "devices": [...]}. */
json_t *bench_environment_json(const bench_results *r);

/* Prints the version and each device, "device 0:0, NAME (PLATFORM), ...", in lines. */
void bench_print_environment(const bench_results *r);
/* Prints all results as a table, then a line for each that was left out. */
void bench_print_table(const bench_results *r);

/* Checks that a path ends in .md, .csv or .json, and may be written. */
int bench_file_check(const char *path, bool force);
/* Writes all results with version and devices in the format of the path's ending. document: that of
 * --json, for .json. */
int bench_file_write(const char *path, const bench_results *r, const json_t *document);

#endif
