/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a training that is not started. See train_dry.h.
 */
#include "train_dry.h"

#include "output.h"

#include <inttypes.h>

static int64_t n_elements(const clg_port *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->rank; d++) n *= p->dims[d];
    return n;
}

static int64_t sum_of_elements(const clg_trainer *trainer)
{
    int64_t n = 0;
    for (size_t i = 0; i < clg_trainer_n_parameters(trainer); i++)
        n += n_elements(clg_trainer_parameter(trainer, i));
    return n;
}

static uint64_t total(const clg_memory_estimate *m)
{
    return m->weight_bytes + m->slab_bytes + m->io_bytes;
}

static void print_text(const clg_trainer *trainer, const clg_memory_estimate *m, size_t n_rows)
{
    static const char *const headers[] = {"parameter", "dtype", "shape", ">elements"};
    table t;
    table_begin(&t, 4, headers);
    for (size_t i = 0; i < clg_trainer_n_parameters(trainer); i++) {
        const clg_port *p = clg_trainer_parameter(trainer, i);
        table_cell(&t, MARK_NONE, "%s", printable(p->name));
        table_cell(&t, MARK_NONE, "%s", clg_dtype_name(p->dtype));
        table_cell(&t, MARK_NONE, "%s", dims_text((size_t)p->rank, p->dims));
        table_cell(&t, MARK_NONE, "%" PRId64, n_elements(p));
    }
    table_print(&t, stdout, 0);
    table_free(&t);
    (void)printf("%zu parameters, %" PRId64 " elements\n", clg_trainer_n_parameters(trainer),
                 sum_of_elements(trainer));
    (void)printf("memory of a step with batches of %zu: %s\n", n_rows,
                 bytes_text((double)total(m)));
    (void)printf("  parameters, gradients, states, other weights  %s\n",
                 bytes_text((double)m->weight_bytes));
    (void)printf("  results of nodes                              %s\n",
                 bytes_text((double)m->slab_bytes));
    (void)printf("  inputs and outputs                            %s\n",
                 bytes_text((double)m->io_bytes));
}

static int print_json(const clg_trainer *trainer, const clg_memory_estimate *m, size_t n_rows)
{
    json_t *parameters = json_array();
    for (size_t i = 0; i < clg_trainer_n_parameters(trainer); i++) {
        const clg_port *p = clg_trainer_parameter(trainer, i);
        (void)json_array_append_new(parameters,
                                    json_pack("{s:o, s:s, s:o}", "name", output_json_text(p->name),
                                              "dtype", clg_dtype_name(p->dtype), "shape",
                                              output_json_dims((size_t)p->rank, p->dims)));
    }
    return output_json(json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "parameters", parameters,
                                 "elements", (json_int_t)sum_of_elements(trainer), "batch",
                                 (json_int_t)n_rows, "memory_bytes", (json_int_t)total(m),
                                 "weight_bytes", (json_int_t)m->weight_bytes, "slab_bytes",
                                 (json_int_t)m->slab_bytes, "io_bytes", (json_int_t)m->io_bytes));
}

int train_dry_print(const options *o, clg_trainer *trainer, size_t n_rows)
{
    clg_memory_estimate m = CLG_MEMORY_ESTIMATE_INIT;
    const clg_status status = clg_trainer_memory(trainer, &m);
    if (status != CLG_OK) return fail_status(status, STAGE_INPUT, NULL);
    if (o->json) return print_json(trainer, &m, n_rows);
    print_text(trainer, &m, n_rows);
    return CODE_DONE;
}
