/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the launch guard for PoCL before version 4 against a small model of that driver. The driver
 * keeps a list of loaded kernels, from which it drops unused ones beyond 128. It finds a kernel by
 * kernel, local size and width when a command starts, but only by kernel and local size when the
 * command ends. If it finds the wrong entry, the entry's count of running commands falls below zero
 * and the driver ends the process. Threads start and end commands at random.
 */
#include "support/unit.h"

#include "ocl/queue/launch_guard.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { N_THREADS = 4, DRIVER_ENTRIES = 128, DRIVER_ROOM = 1024 };

/* ---- the driver ------------------------------------------------------------------------------ */

typedef struct entry {
    uint64_t kernel, width;
    int n_running;
} entry;

static struct {
    pthread_mutex_t lock;
    entry list[DRIVER_ROOM]; /* most recently used first */
    size_t n;
    atomic_bool died;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void to_front(size_t at)
{
    const entry e = driver.list[at];
    memmove(driver.list + 1, driver.list, at * sizeof e);
    driver.list[0] = e;
}

static void make_room(void)
{
    if (driver.n < DRIVER_ENTRIES) return;
    for (size_t at = driver.n; at-- > 1;)
        if (driver.list[at].n_running == 0) {
            memmove(driver.list + at, driver.list + at + 1, (driver.n - at - 1) * sizeof(entry));
            driver.n--;
            return;
        }
}

/* Simulates the start of a command. `running`: the count of running commands of a new entry, which
 * is 0 for a kernel compiled only to read its binary. */
static void driver_start(uint64_t kernel, uint64_t width, int running)
{
    pthread_mutex_lock(&driver.lock);
    size_t at = 0;
    while (at < driver.n && !(driver.list[at].kernel == kernel && width <= driver.list[at].width))
        at++;
    if (at < driver.n) {
        to_front(at);
        driver.list[0].n_running++;
    } else if (driver.n == DRIVER_ROOM) {
        driver.died = true;
    } else {
        make_room();
        driver.list[driver.n] = (entry){kernel, width, running};
        to_front(driver.n++);
    }
    pthread_mutex_unlock(&driver.lock);
}

static void driver_end(uint64_t kernel)
{
    pthread_mutex_lock(&driver.lock);
    size_t at = 0;
    while (at < driver.n && driver.list[at].kernel != kernel) at++;
    if (at == driver.n || driver.list[at].n_running == 0)
        driver.died = true;
    else
        driver.list[at].n_running--;
    pthread_mutex_unlock(&driver.lock);
}

/* Makes the guard forget the launches of earlier tests. */
static void restart(void)
{
    assert_int_equal(launch_guard_enter(NULL), GUARD_ALONE);
    launch_guard_leave(GUARD_ALONE, false);
}

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct load {
    bool guarded;
    unsigned n_kernels, n_widths; /* numbers of kernels and widths to choose from at random */
    int n_runs;
    bool foreign;  /* some runs launch kernels that are unknown to the guard */
    bool binaries; /* some runs read a binary at their end */
} load;

typedef struct worker {
    const load *what;
    uint64_t random;
    guard_place place;
    int n_shared, n_alone;
} worker;

static atomic_int n_inside_alone, n_inside;
static atomic_bool not_alone; /* an exclusive queue was admitted together with another one */

static unsigned random_below(worker *w, unsigned n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->random >> 33) % n;
}

static launch_form form_of(uint64_t kernel, uint64_t width)
{
    return (launch_form){.kernel = {kernel, 7}, .local = {1, 1, 1}, .extent = {width, 1}};
}

static void leave(worker *w)
{
    if (w->place == GUARD_OUTSIDE) return;
    if (w->place == GUARD_ALONE) atomic_fetch_sub(&n_inside_alone, 1);
    atomic_fetch_sub(&n_inside, 1);
    launch_guard_leave(w->place, true);
    w->place = GUARD_OUTSIDE;
}

static void enter(worker *w, const launch_form *f)
{
    if (!w->what->guarded || w->place == GUARD_ALONE) return;
    if (w->place == GUARD_SHARED && f && launch_guard_knows(f)) return;
    leave(w);
    w->place = launch_guard_enter(f);
    w->n_shared += w->place == GUARD_SHARED;
    w->n_alone += w->place == GUARD_ALONE;
    const int others = atomic_fetch_add(&n_inside, 1);
    const int alone = w->place == GUARD_ALONE ? atomic_fetch_add(&n_inside_alone, 1)
                                              : atomic_load(&n_inside_alone);
    if (alone || (w->place == GUARD_ALONE && others)) atomic_store(&not_alone, true);
}

static void launch(worker *w)
{
    const bool foreign = w->what->foreign && random_below(w, 16) == 0;
    const uint64_t kernel = random_below(w, w->what->n_kernels) + (foreign ? 1000000 : 0);
    const uint64_t width = 1 + random_below(w, w->what->n_widths);
    const launch_form f = form_of(kernel, width);
    enter(w, foreign ? NULL : &f);
    driver_start(kernel, width, 1);
    if (w->place == GUARD_ALONE) launch_guard_learn(foreign ? NULL : &f);
    if (random_below(w, 2)) sched_yield();
    driver_end(kernel);
}

static void *work(void *argument)
{
    worker *w = argument;
    for (int run = 0; run < w->what->n_runs && !driver.died; run++) {
        const unsigned n = 1 + random_below(w, 6);
        for (unsigned i = 0; i < n; i++) launch(w);
        leave(w);
        if (w->what->binaries && random_below(w, 64) == 0) {
            enter(w, NULL);
            driver_start(random_below(w, w->what->n_kernels), w->what->n_widths + 1, 0);
            launch_guard_learn(NULL);
            launch_guard_reduce_capacity(1);
            leave(w);
        }
    }
    return NULL;
}

/* Runs the load on all threads; returns the percentage of admissions that were shared. */
static int run_load(const load *what)
{
    pthread_t threads[N_THREADS];
    worker workers[N_THREADS];
    int n_shared = 0, n_alone = 0;
    driver.n = 0;
    driver.died = false;
    restart();
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.what = what, .random = (uint64_t)i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        n_shared += workers[i].n_shared;
        n_alone += workers[i].n_alone;
    }
    assert_false(atomic_load(&not_alone));
    return n_shared + n_alone == 0 ? 0 : 100 * n_shared / (n_shared + n_alone);
}

TEST(launch_guard__the_driver_dies_without_it)
{
    static const load what = {.n_kernels = 3, .n_widths = 1000, .n_runs = 200};
    for (int i = 0; i < 1000 && !driver.died; i++) (void)run_load(&what);
    assert_true(driver.died);
}

TEST(launch_guard__known_launches_share)
{
    static const load what = {.guarded = true, .n_kernels = 24, .n_widths = 50, .n_runs = 20000};
    const int shared = run_load(&what);
    assert_false(driver.died);
    assert_true(shared > 90);
}

TEST(launch_guard__more_kernels_than_the_driver_keeps)
{
    static const load what = {.guarded = true, .n_kernels = 300, .n_widths = 50, .n_runs = 5000};
    (void)run_load(&what);
    assert_false(driver.died);
}

TEST(launch_guard__launches_of_other_libraries)
{
    static const load what = {
        .guarded = true, .n_kernels = 12, .n_widths = 50, .n_runs = 5000, .foreign = true};
    (void)run_load(&what);
    assert_false(driver.died);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static atomic_int n_rounds;
static atomic_bool stop;

static void *keep_sharing(void *argument)
{
    (void)argument;
    const launch_form f = form_of(1, 1);
    while (!atomic_load(&stop)) {
        guard_place place = launch_guard_enter(&f);
        atomic_fetch_add(&n_rounds, 1);
        sched_yield();
        launch_guard_leave(place, true);
    }
    return NULL;
}

/* Checks that a queue that waits to be alone is admitted before later arrivals, however many there
 * are. */
TEST(launch_guard__nobody_starves)
{
    pthread_t threads[N_THREADS];
    const launch_form f = form_of(1, 1);
    restart();
    assert_int_equal(launch_guard_enter(&f), GUARD_ALONE);
    launch_guard_learn(&f);
    launch_guard_leave(GUARD_ALONE, true);
    atomic_store(&stop, false);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_sharing, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        guard_place place = launch_guard_enter(NULL);
        const int before = atomic_load(&n_rounds);
        assert_int_equal(place, GUARD_ALONE);
        sched_yield();
        assert_int_equal(atomic_load(&n_rounds), before);
        launch_guard_leave(place, true);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static atomic_int n_met;

static void *meet(void *argument)
{
    (void)argument;
    const launch_form f = form_of(1, 5);
    guard_place place = launch_guard_enter(&f);
    atomic_fetch_add(&n_met, 1);
    while (atomic_load(&n_met) < N_THREADS) sched_yield(); /* until all threads are inside */
    launch_guard_leave(place, true);
    return place == GUARD_SHARED ? argument : NULL;
}

TEST(launch_guard__what_it_knows)
{
    const launch_form narrow = form_of(1, 5), wide = form_of(1, 6), other = form_of(2, 5);
    launch_form deep = narrow, local = narrow;
    pthread_t threads[N_THREADS];
    void *shared;
    deep.extent[1] = 2;
    local.local[2] = 2;
    restart();
    assert_int_equal(launch_guard_enter(&narrow), GUARD_ALONE);
    launch_guard_learn(&narrow);
    launch_guard_leave(GUARD_ALONE, true);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, meet, &shared), 0);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &shared), 0);
        assert_non_null(shared);
    }
    assert_int_equal(launch_guard_enter(&narrow), GUARD_SHARED);
    assert_true(launch_guard_knows(&narrow));
    assert_false(launch_guard_knows(&wide));
    assert_false(launch_guard_knows(&other));
    assert_false(launch_guard_knows(&deep));
    assert_false(launch_guard_knows(&local));
    launch_guard_leave(GUARD_SHARED, true);

    /* After launches that may not have run, the guard forgets all launches. */
    const uint64_t epoch = launch_guard_epoch();
    assert_int_equal(launch_guard_enter(&wide), GUARD_ALONE);
    launch_guard_learn(&wide);
    launch_guard_leave(GUARD_ALONE, false);
    assert_true(launch_guard_epoch() > epoch);
    assert_int_equal(launch_guard_enter(&narrow), GUARD_ALONE);
    launch_guard_leave(GUARD_ALONE, true);
}

/* Checks that reading binaries reduces the guard's capacity. This is the last test, since the
 * capacity cannot be restored. */
TEST(launch_guard__binaries_take_room)
{
    static const load what = {
        .guarded = true, .n_kernels = 80, .n_widths = 50, .n_runs = 5000, .binaries = true};
    for (int i = 0; i < 4; i++) {
        (void)run_load(&what);
        assert_false(driver.died);
    }
    const launch_form f = form_of(1, 5);
    launch_guard_reduce_capacity(1000);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(launch_guard_enter(&f), GUARD_ALONE);
        launch_guard_learn(&f);
        launch_guard_leave(GUARD_ALONE, true);
    }
}
