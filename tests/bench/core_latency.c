/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how long a cache line takes from one core to another and back: two threads write it
 * alternately. Prints the shortest of several means, in nanoseconds: about 50 to 100 where the
 * cores share a last-level cache, 300 and more where they do not, as on processors of several
 * chips. On a virtual machine it may change within seconds, and with it the time of convolutional
 * networks, of which one core reads what another one wrote.
 *
 *     core_latency [ROUNDS]    means, of 2000 round trips each (default 20)
 */
#include "base/clock.h"
#include "base/threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIPS = 2000, STOP = -1 };

static _Alignas(128) atomic_int line; /* even: this thread's; odd: the other one's */

static void *answer(void *unused)
{
    (void)unused;
    for (;;) {
        const int now = atomic_load(&line);
        if (now == STOP) return NULL;
        if (now % 2 == 1) atomic_store(&line, now + 1);
    }
}

static uint64_t measure_ns(void)
{
    const uint64_t start_ns = time_now_ns();
    atomic_store(&line, 0);
    for (int i = 0; i < TRIPS; i++) {
        atomic_store(&line, 2 * i + 1);
        while (atomic_load(&line) == 2 * i + 1) continue;
    }
    return time_now_ns() - start_ns;
}

int main(int argc, char **argv)
{
    const long n_rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20;
    thread other;
    uint64_t shortest_ns = UINT64_MAX;
    if (n_rounds < 1 || thread_start(&other, answer, NULL) != CLG_OK) return 1;
    for (long i = 0; i < n_rounds; i++) {
        const uint64_t ns = measure_ns();
        if (ns < shortest_ns) shortest_ns = ns;
    }
    atomic_store(&line, STOP);
    thread_join(other);
    printf("%.0f\n", (double)shortest_ns / TRIPS);
    return 0;
}
