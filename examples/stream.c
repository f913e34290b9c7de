/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams rows through a model with two callbacks: one generates them, the other one sums the
 * results. Reading, computing and writing run concurrently, and memory use does not depend on the
 * number of rows.
 *
 *     stream [ROWS]
 *
 * Exit status: 0 success, 3 no OpenCL device, 1 other errors.
 */
#include <clgraph/stream.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_FEATURES = 16 };

/* State of both callbacks, which run on two threads and use different members. */
typedef struct job {
    uint64_t n_rows, n_read;
    uint64_t n_written;
    double sum;
} job;

static float feature(uint64_t row, int k) { return (float)((row + (uint64_t)k) % 10); }

/* Builds the model y = the mean of each row of x: [rows, 16]. */
static clg_status build(clg_model **out_model)
{
    clg_builder *b;
    clg_status s = clg_builder_create(13, &b);
    if (s != CLG_OK) return s;
    s = clg_builder_input(b, "x", CLG_FLOAT32, 2, (const int64_t[]){-1, N_FEATURES}, NULL);
    if (s == CLG_OK)
        s = clg_builder_node(b, NULL, "ReduceMean", "mean", 1, (const char *const[]){"x"}, 1,
                             (const char *const[]){"y"});
    if (s == CLG_OK) s = clg_builder_attribute_ints(b, "axes", 1, (const int64_t[]){1});
    if (s == CLG_OK) s = clg_builder_output(b, "y");
    if (s == CLG_OK) s = clg_builder_build(b, out_model);
    clg_builder_free(b);
    return s;
}

/* The read callback: fills in the remaining rows, up to the capacity of the batch; 0 rows end the
 * stream. */
static clg_status read_rows(void *user, clg_stream_batch *batch)
{
    job *j = user;
    float *x = batch->tensors[0].data;
    uint64_t left = j->n_rows - j->n_read;
    if (batch->n_rows > left) batch->n_rows = (size_t)left;
    for (size_t i = 0; i < batch->n_rows; i++)
        for (int k = 0; k < N_FEATURES; k++) *x++ = feature(j->n_read + i, k);
    j->n_read += batch->n_rows;
    return CLG_OK;
}

/* The write callback: sums the results. Batches arrive in the order in which they were read. */
static clg_status write_rows(void *user, clg_stream_batch *batch)
{
    job *j = user;
    const float *y = batch->tensors[0].data;
    for (size_t i = 0; i < batch->n_rows; i++) j->sum += (double)y[i];
    j->n_written += batch->n_rows;
    return CLG_OK;
}

static clg_status run(clg_context *context, job *j, clg_stream_stats *out_stats)
{
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_stream *stream = NULL;
    clg_stream_options options = CLG_STREAM_OPTIONS_INIT;
    options.batch = 4096;
    clg_status s = build(&model);
    if (s == CLG_OK) s = clg_session_create(context, model, NULL, &session);
    if (s == CLG_OK) s = clg_stream_create(&session, 1, &options, &stream);
    if (s == CLG_OK) s = clg_stream_run(stream, read_rows, write_rows, j);
    if (s == CLG_OK) s = clg_stream_get_stats(stream, out_stats);
    clg_stream_free(stream);
    clg_session_free(session);
    clg_model_free(model);
    return s;
}

int main(int argc, char **argv)
{
    job j = {.n_rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000};
    clg_context *context = NULL;
    clg_stream_stats stats = CLG_STREAM_STATS_INIT;
    clg_status status = clg_context_create(NULL, NULL, &context);
    if (status == CLG_OK) status = run(context, &j, &stats);
    if (status != CLG_OK) {
        fprintf(stderr, "stream: error: %s\n", clg_last_error());
        if (clg_last_hint()[0]) fprintf(stderr, "hint: %s\n", clg_last_hint());
        clg_context_free(context);
        return status == CLG_ERROR_NO_OPENCL || status == CLG_ERROR_NO_DEVICE ? 3 : 1;
    }
    double want = 0;
    for (uint64_t row = 0; row < j.n_rows; row++)
        for (int k = 0; k < N_FEATURES; k++) want += (double)feature(row, k) / N_FEATURES;
    double difference = fabs(j.sum - want) / (want > 0 ? want : 1);
    printf("%llu rows in %.3f s on %s, idle %.0f %% of the time; difference from the host %.1e\n",
           (unsigned long long)j.n_written, stats.seconds, clg_context_device(context)->name,
           100 * stats.idle_share, difference);
    clg_context_free(context);
    return j.n_written == j.n_rows && difference < 1e-6 ? 0 : 1;
}
