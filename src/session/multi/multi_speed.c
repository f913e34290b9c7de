/* SPDX-License-Identifier: Apache-2.0
 *
 * Learns from runs how many rows a second each device computes while the others work too, and
 * divides the rows accordingly. Another split costs planning, and on some devices compiling, so one
 * is kept until the measured speeds promise a gain that is worth it.
 */
#include "session/multi/multi.h"
#include "session/multi/split.h"

#define KEPT                                                                                       \
    0.9              /* the share of the old speed in the new one, where that is lower: a run may
                               have waited for something else */
#define MOST_IDLE 64 /* runs without rows, after which a speed is forgotten, and tried again */
#define RUNS_PER_SPLIT 2   /* measured, before a split may change */
#define WORTH_A_SPLIT 1.05 /* the time of this split over that of the best one */

/* Sets m->speeds: measured ones, and guesses scaled to them; 0 for lost devices. */
static void collect_speeds(multi_session *m)
{
    double measured = 0, guessed = 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        const multi_part *part = &m->parts[i];
        if (part->rows_per_s <= 0) continue;
        measured += part->rows_per_s;
        guessed += part->guess;
    }
    const double scale = measured > 0 ? measured / guessed : 1;
    for (size_t i = 0; i < m->n_parts; i++) {
        const multi_part *part = &m->parts[i];
        const double speed = part->rows_per_s > 0 ? part->rows_per_s : part->guess * scale;
        m->speeds[i] = part->is_lost ? 0 : speed;
    }
}

/* Returns whether the current split is for so many rows and for the devices that are there. */
static bool fits(const multi_session *m, int64_t n_rows)
{
    if (m->split_of != n_rows) return false;
    for (size_t i = 0; i < m->n_parts; i++)
        if (m->parts[i].is_lost && m->split[i] > 0) return false;
    return true;
}

void multi_split(multi_session *m, int64_t n_rows)
{
    collect_speeds(m);
    split_rows(n_rows, m->speeds, m->n_parts, m->next_split);
    if (fits(m, n_rows)) {
        const double now = split_seconds(m->split, m->speeds, m->n_parts),
                     best = split_seconds(m->next_split, m->speeds, m->n_parts);
        if (m->n_measured < RUNS_PER_SPLIT || now <= best * WORTH_A_SPLIT) return;
    }
    for (size_t i = 0; i < m->n_parts; i++) m->split[i] = m->next_split[i];
    m->split_of = n_rows;
    m->n_measured = 0;
}

void multi_split_again(multi_session *m, int64_t n_rows)
{
    collect_speeds(m);
    split_rows(n_rows, m->speeds, m->n_parts, m->next_split);
}

void multi_forget_sizes(multi_session *m)
{
    for (size_t i = 0; i < m->n_parts; i++) m->parts[i].warm_rows = 0;
    m->n_measured = 0;
}

/* Returns whether each part computed its share and nothing else. */
static bool is_plain(const multi_session *m)
{
    for (size_t i = 0; i < m->n_parts; i++)
        if (m->parts[i].rows != (uint64_t)m->split[i]) return false;
    return true;
}

/* A device that gets no rows is not measured, and would never get any again. */
static void forget_old_speed(multi_part *part)
{
    if (++part->n_idle < MOST_IDLE) return;
    part->n_idle = 0;
    part->rows_per_s = 0;
}

void multi_learn(multi_session *m)
{
    bool all = true;
    if (!is_plain(m)) return;
    for (size_t i = 0; i < m->n_parts; i++) {
        multi_part *part = &m->parts[i];
        if (m->split[i] == 0) {
            forget_old_speed(part);
            continue;
        }
        part->n_idle = 0;
        const bool is_warm = part->warm_rows == m->split[i];
        part->warm_rows = m->split[i];
        all = all && is_warm;
        if (!is_warm || part->busy_s <= 0) continue;
        const double speed = (double)m->split[i] / part->busy_s;
        part->rows_per_s =
            part->rows_per_s > speed ? KEPT * part->rows_per_s + (1 - KEPT) * speed : speed;
    }
    m->n_measured += all;
}
