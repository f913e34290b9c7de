/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums what `cltool profile` measured. See profile_rows.h.
 */
#include "profile_rows.h"

#include "failure.h"

#include <stdlib.h>
#include <string.h>

static void add_to_group(group_row **rows, size_t *n, const char *name, const step_row *s)
{
    size_t i = 0;
    while (i < *n && strcmp((*rows)[i].name, name) != 0) i++;
    if (i == *n) {
        *rows = must_resize(*rows, *n + 1, sizeof **rows);
        (*rows)[(*n)++] = (group_row){.name = name};
    }
    group_row *row = &(*rows)[i];
    row->n_steps++;
    row->us += s->median_us;
    row->flops += s->flops;
    row->bytes += s->bytes;
}

static int slowest_first(const void *a, const void *b)
{
    const group_row *x = a, *y = b;
    return (x->us < y->us) - (x->us > y->us);
}

void profile_sum_up(profile_rows *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        step_row *s = &p->steps[i];
        s->median_us = times_stats(&s->us).median;
        p->total_us += s->median_us;
        add_to_group(&p->operators, &p->n_operators, s->op_type, s);
        add_to_group(&p->kernels, &p->n_kernels, s->kernel, s);
    }
    if (p->n_operators > 0)
        qsort(p->operators, p->n_operators, sizeof *p->operators, slowest_first);
    if (p->n_kernels > 0) qsort(p->kernels, p->n_kernels, sizeof *p->kernels, slowest_first);
}

void profile_rows_free(profile_rows *p)
{
    for (size_t i = 0; i < p->n_steps; i++) times_free(&p->steps[i].us);
    free(p->steps);
    free(p->operators);
    free(p->kernels);
    times_free(&p->host_ms);
    times_free(&p->device_ms);
    *p = (profile_rows){0};
}

double profile_share(const profile_rows *p, double us)
{
    return p->total_us > 0 ? us / p->total_us : 0;
}

double profile_rate(double amount, double us) { return us > 0 ? amount / (us * 1e3) : 0; }

double profile_of_peak(const profile_rows *p, double flops, double bytes, double us)
{
    const clg_measurement *m = &p->peaks;
    double by_flops = m->fp32_gflops > 0 ? profile_rate(flops, us) / m->fp32_gflops : 0;
    double by_bytes =
        m->memory_gbytes_per_s > 0 ? profile_rate(bytes, us) / m->memory_gbytes_per_s : 0;
    return by_flops > by_bytes ? by_flops : by_bytes;
}
