/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests learning rates against their closed forms and, for PyTorch's recurrences, step by step.
 */
#include "support/unit.h"

#include "train/schedule.h"

#include <math.h>
#include <string.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-15 * (fabs(a) + fabs(b)); }

TEST(schedule__constant)
{
    clg_schedule_options s = CLG_SCHEDULE_OPTIONS_INIT;
    s.rate = 0.25;
    assert_ok(schedule_check(&s));
    for (uint64_t n = 0; n < 1000; n += 7) assert_true(schedule_rate(&s, n) == 0.25);
}

TEST(schedule__step_and_exponential_are_products)
{
    clg_schedule_options s = CLG_SCHEDULE_OPTIONS_INIT;
    s.rate = 0.5;
    s.gamma = 0.75;
    for (s.period = 1; s.period < 4; s.period++) {
        double rate = s.rate;
        s.kind = CLG_SCHEDULE_STEP;
        assert_ok(schedule_check(&s));
        for (uint64_t n = 0; n < 30; n++) {
            if (n > 0 && n % s.period == 0) rate *= s.gamma;
            assert_true(near(schedule_rate(&s, n), rate));
        }
    }
    s.kind = CLG_SCHEDULE_EXPONENTIAL;
    double rate = s.rate;
    for (uint64_t n = 0; n < 30; n++, rate *= s.gamma)
        assert_true(near(schedule_rate(&s, n), rate));
}

TEST(schedule__linear_and_cosine_reach_the_last_rate)
{
    clg_schedule_options s = CLG_SCHEDULE_OPTIONS_INIT;
    s.rate = 0.5;
    s.last_rate = 0.125;
    s.total_steps = 8;
    s.kind = CLG_SCHEDULE_LINEAR;
    assert_ok(schedule_check(&s));
    for (uint64_t n = 0; n <= 8; n++)
        assert_true(near(schedule_rate(&s, n), 0.5 - 0.046875 * (double)n));
    s.kind = CLG_SCHEDULE_COSINE;
    assert_ok(schedule_check(&s));
    assert_true(near(schedule_rate(&s, 0), 0.5));
    assert_true(near(schedule_rate(&s, 4), 0.3125));
    /* cos(pi / 4) is the root of 1 / 2 */
    assert_true(near(schedule_rate(&s, 2), 0.3125 + 0.1875 * sqrt(0.5)));
    for (int kind = CLG_SCHEDULE_LINEAR; kind <= CLG_SCHEDULE_COSINE; kind++) {
        s.kind = (clg_schedule)kind;
        for (uint64_t n = 8; n < 20; n++) assert_true(near(schedule_rate(&s, n), 0.125));
    }
}

TEST(schedule__begins_after_warm_up)
{
    clg_schedule_options s = CLG_SCHEDULE_OPTIONS_INIT;
    s.kind = CLG_SCHEDULE_EXPONENTIAL;
    s.rate = 0.5;
    s.gamma = 0.5;
    s.warmup_steps = 4;
    for (uint64_t n = 0; n < 4; n++)
        assert_true(near(schedule_rate(&s, n), 0.125 * (double)(n + 1)));
    for (uint64_t n = 4; n < 9; n++)
        assert_true(near(schedule_rate(&s, n), ldexp(0.5, -(int)(n - 4))));
}

TEST(schedule__refuses)
{
    static const struct {
        clg_schedule kind;
        double rate, last, gamma;
        uint64_t period, total, warmup;
        const char *words;
    } rows[] = {{(clg_schedule)9, 1, 0, 1, 1, 0, 0, "unknown schedule 9"},
                {CLG_SCHEDULE_CONSTANT, -1, 0, 1, 1, 0, 0, "rate is -1"},
                {CLG_SCHEDULE_CONSTANT, (double)NAN, 0, 1, 1, 0, 0, "rate is"},
                {CLG_SCHEDULE_LINEAR, 1, -2, 1, 1, 9, 0, "last_rate is -2"},
                {CLG_SCHEDULE_STEP, 1, 0, 0, 1, 0, 0, "gamma is 0"},
                {CLG_SCHEDULE_STEP, 1, 0, 1, 0, 0, 0, "period is 0"},
                {CLG_SCHEDULE_EXPONENTIAL, 1, 0, (double)INFINITY, 1, 0, 0, "gamma is inf"},
                {CLG_SCHEDULE_COSINE, 1, 0, 1, 1, 5, 5, "total_steps is 5, with 5"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clg_schedule_options s = CLG_SCHEDULE_OPTIONS_INIT;
        s.kind = rows[i].kind;
        s.rate = rows[i].rate;
        s.last_rate = rows[i].last;
        s.gamma = rows[i].gamma;
        s.period = rows[i].period;
        s.total_steps = rows[i].total;
        s.warmup_steps = rows[i].warmup;
        assert_error(schedule_check(&s), CLG_ERROR_INVALID_ARGUMENT, rows[i].words);
    }
}
