/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether runs have the kernel of spin_steps.c, by their times. What is faster depends on
 * what else the machine does: the thread that works may have to wait for the processor on which
 * another one spins. So a period begins with a few runs of each kind, in turn; the rest of it has
 * the kind that was faster.
 */
#include "ocl/queue/queue.h"

/* Runs in the rest of a period: at first, and at most. */
#define MIN_HOLD 56u
#define MAX_HOLD 1016u

/* Returns the mean of the two shortest times: what else the machine does only adds to a time. */
static uint64_t typical_ns(const uint64_t *time_ns)
{
    uint64_t first = UINT64_MAX, second = UINT64_MAX;
    for (uint32_t i = 0; i < SPIN_TRIAL_RUNS; i++) {
        if (time_ns[i] < first) {
            second = first;
            first = time_ns[i];
        } else if (time_ns[i] < second) {
            second = time_ns[i];
        }
    }
    return first + (second - first) / 2;
}

/* Chooses the kind of runs for the rest of the period: with the kernel if that saves a hundredth.
 * The rest is twice as long as the last one, unless the choice changes. */
static void choose(spin_trial *t)
{
    const uint64_t without_ns = typical_ns(t->time_ns[0]), with_ns = typical_ns(t->time_ns[1]);
    const bool is_faster = with_ns < without_ns - without_ns / 100;
    const bool is_same = t->n_hold > 0 && is_faster == t->is_faster;
    t->n_hold = !is_same ? MIN_HOLD : t->n_hold < MAX_HOLD / 2 ? 2 * t->n_hold : MAX_HOLD;
    t->is_faster = is_faster;
}

bool spin_trial_begin(spin_trial *t, uint64_t now_ns)
{
    if (!t->is_timed) t->since_ns = now_ns;
    t->is_timed = true;
    return t->n_runs < 2 * SPIN_TRIAL_RUNS ? t->n_runs % 2 == 1 : t->is_faster;
}

void spin_trial_end(spin_trial *t, uint64_t now_ns)
{
    if (!t->is_timed) return;
    t->is_timed = false;
    if (t->n_runs < 2 * SPIN_TRIAL_RUNS)
        t->time_ns[t->n_runs % 2][t->n_runs / 2] = now_ns - t->since_ns;
    t->n_runs++;
    if (t->n_runs == 2 * SPIN_TRIAL_RUNS) choose(t);
    if (t->n_runs == 2 * SPIN_TRIAL_RUNS + t->n_hold) t->n_runs = 0;
}
