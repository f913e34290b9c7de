/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements train_reader.h: a ring of batches between two threads, guarded by one mutex.
 */
#include "train_reader.h"

#include "host.h"
#include "interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define POLL_NS 100000000L /* how often an interrupt is looked for */

struct train_reader {
    const train_data *data;
    bool validates;
    uint64_t next, end; /* the thread's; read by others before it starts and after it ends */
    pthread_t thread;
    double waited_ms;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    train_batch ready[TRAIN_READER_AHEAD]; /* a ring, from `first` on */
    size_t first, n_ready;
    bool is_stopped, is_ended;
    int code; /* of the end, with its message in `why` */
    failure_record why;
};

/* A dataset is read by one thread at a time, and several readers may share it. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* ---- the thread ------------------------------------------------------------------------------ */

static int gather_next(train_reader *r, train_batch *out_batch)
{
    (void)pthread_mutex_lock(&reading);
    const int code = train_data_gather(r->data, r->validates, r->next++, out_batch);
    (void)pthread_mutex_unlock(&reading);
    return code;
}

/* Waits for room in the ring; returns false when the reader is stopped. */
static bool wait_for_room(train_reader *r)
{
    (void)pthread_mutex_lock(&r->lock);
    while (r->n_ready == TRAIN_READER_AHEAD && !r->is_stopped)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    const bool goes_on = !r->is_stopped;
    (void)pthread_mutex_unlock(&r->lock);
    return goes_on;
}

static void put(train_reader *r, const train_batch *batch)
{
    (void)pthread_mutex_lock(&r->lock);
    r->ready[(r->first + r->n_ready++) % TRAIN_READER_AHEAD] = *batch;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static void *read_ahead(void *argument)
{
    train_reader *r = argument;
    int code = CODE_DONE;
    while (code == CODE_DONE && r->next < r->end && wait_for_room(r)) {
        train_batch batch;
        code = gather_next(r, &batch);
        if (code == CODE_DONE) put(r, &batch);
    }
    (void)pthread_mutex_lock(&r->lock);
    r->is_ended = true;
    r->code = code;
    if (code != CODE_DONE) failure_take(&r->why);
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the other side -------------------------------------------------------------------------- */

int train_reader_start(const train_data *data, bool validates, uint64_t first, uint64_t end,
                       train_reader **out_reader)
{
    train_reader *r = must_alloc(1, sizeof *r);
    *out_reader = NULL;
    r->data = data;
    r->validates = validates;
    r->next = first;
    r->end = end;
    const bool has_lock = pthread_mutex_init(&r->lock, NULL) == 0;
    const bool has_both = has_lock && pthread_cond_init(&r->changed, NULL) == 0;
    if (has_both && pthread_create(&r->thread, NULL, read_ahead, r) == 0) {
        *out_reader = r;
        return CODE_DONE;
    }
    if (has_both) (void)pthread_cond_destroy(&r->changed);
    if (has_lock) (void)pthread_mutex_destroy(&r->lock);
    free(r);
    return fail(CODE_WORK, CLG_ERROR_OUT_OF_HOST_MEMORY, "no thread can be started to read data");
}

/* Waits until a batch is ready, the thread ended, or Ctrl-C; r->lock is held. */
static void wait_for_batch(train_reader *r)
{
    while (r->n_ready == 0 && !r->is_ended && !interrupt_seen()) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_NS;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        (void)pthread_cond_timedwait(&r->changed, &r->lock, &until);
    }
}

int train_reader_take(train_reader *r, train_batch *out_batch)
{
    const double start = now_ms();
    int code = CODE_DONE;
    *out_batch = (train_batch){0};
    /* a signal must not end the program before the checkpoint is saved */
    interrupt_begin_computing();
    (void)pthread_mutex_lock(&r->lock);
    wait_for_batch(r);
    if (interrupt_seen()) {
        code = fail(CODE_INTERRUPTED, CLG_ERROR_CANCELLED, "interrupted");
    } else if (r->n_ready > 0) {
        *out_batch = r->ready[r->first];
        r->first = (r->first + 1) % TRAIN_READER_AHEAD;
        r->n_ready--;
        (void)pthread_cond_signal(&r->changed);
    } else if (r->code != CODE_DONE) {
        failure_put(&r->why);
        code = r->code;
    } else {
        code = fail(CODE_WORK, CLG_ERROR_INTERNAL, "there is no batch after the last");
    }
    (void)pthread_mutex_unlock(&r->lock);
    interrupt_end_computing();
    r->waited_ms += now_ms() - start;
    return code;
}

int train_reader_set(train_reader *r, clg_trainer *trainer, size_t *out_n)
{
    train_batch batch;
    int code = train_reader_take(r, &batch);
    *out_n = batch.n_rows;
    if (code == CODE_DONE) code = train_batch_set(r->data, &batch, trainer);
    train_batch_free(r->data, &batch);
    return code;
}

double train_reader_waited_ms(const train_reader *r) { return r ? r->waited_ms : 0; }

void train_reader_stop(train_reader *r)
{
    if (!r) return;
    (void)pthread_mutex_lock(&r->lock);
    r->is_stopped = true;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    for (; r->n_ready > 0; r->n_ready--) {
        train_batch_free(r->data, &r->ready[r->first]);
        r->first = (r->first + 1) % TRAIN_READER_AHEAD;
    }
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
