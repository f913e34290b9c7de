/* SPDX-License-Identifier: Apache-2.0
 *
 * Learning rates of clg_schedule.
 */
#include "train/schedule.h"

#include <math.h>

#define PI 3.14159265358979323846

static clg_status check_number(const char *what, double x, bool is_positive)
{
    if (isfinite(x) && (is_positive ? x > 0 : x >= 0)) return CLG_OK;
    return error_set(CLG_ERROR_INVALID_ARGUMENT, "schedule: %s is %g", what, x);
}

clg_status schedule_check(const clg_schedule_options *s)
{
    if (s->kind < CLG_SCHEDULE_CONSTANT || s->kind > CLG_SCHEDULE_COSINE)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "unknown schedule %d", (int)s->kind);
    CLG_TRY(check_number("rate", s->rate, false));
    CLG_TRY(check_number("last_rate", s->last_rate, false));
    if (s->kind == CLG_SCHEDULE_STEP || s->kind == CLG_SCHEDULE_EXPONENTIAL)
        CLG_TRY(check_number("gamma", s->gamma, true));
    if (s->kind == CLG_SCHEDULE_STEP && s->period == 0)
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "schedule: period is 0");
    if ((s->kind == CLG_SCHEDULE_LINEAR || s->kind == CLG_SCHEDULE_COSINE) &&
        s->total_steps <= s->warmup_steps)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "schedule: total_steps is %llu, with %llu steps of warm-up",
                         (unsigned long long)s->total_steps, (unsigned long long)s->warmup_steps);
    return CLG_OK;
}

double schedule_rate(const clg_schedule_options *s, uint64_t n)
{
    if (n < s->warmup_steps) return s->rate * ((double)n + 1) / (double)s->warmup_steps;
    n -= s->warmup_steps;
    const double length = (double)(s->total_steps - s->warmup_steps);
    const double done = (double)n < length ? (double)n / length : 1;
    switch (s->kind) {
    case CLG_SCHEDULE_STEP: n /= s->period; return s->rate * pow(s->gamma, (double)n);
    case CLG_SCHEDULE_EXPONENTIAL: return s->rate * pow(s->gamma, (double)n);
    case CLG_SCHEDULE_LINEAR: return s->rate + (s->last_rate - s->rate) * done;
    case CLG_SCHEDULE_COSINE:
        return s->last_rate + (s->rate - s->last_rate) * (1 + cos(PI * done)) / 2;
    default: return s->rate;
    }
}
