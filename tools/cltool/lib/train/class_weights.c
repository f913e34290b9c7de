/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads weights of classes. See class_weights.h.
 */
#include "class_weights.h"

#include "csv.h"
#include "names.h"
#include "output.h"

#include <clgraph/inspect.h>

#include <stdlib.h>
#include <string.h>

static int read_numbers(clg_npy_reader *r, const char *path, float **out_weights, size_t *out_n)
{
    const clg_dtype dtype = clg_npy_reader_dtype(r);
    if (clg_npy_reader_rank(r) != 1 || (dtype != CLG_FLOAT32 && dtype != CLG_FLOAT64))
        return fail_file("'%s' has no list of float32 or float64 numbers", printable(path));
    const size_t n = (size_t)clg_npy_reader_dims(r)[0], size = dtype == CLG_FLOAT32 ? 4 : 8;
    void *data = must_alloc(n + 1, size);
    float *weights = must_alloc(n + 1, sizeof *weights);
    const clg_status status = clg_npy_reader_read(r, 0, n, data, n * size);
    for (size_t i = 0; i < n; i++)
        weights[i] = dtype == CLG_FLOAT32 ? ((float *)data)[i] : (float)((double *)data)[i];
    free(data);
    *out_weights = weights;
    *out_n = n;
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

static int read_npy(const char *path, float **out_weights, size_t *out_n)
{
    clg_npy_reader *r;
    const clg_status status = clg_npy_reader_open(path, &r);
    if (status != CLG_OK) return fail_status(status, STAGE_READ, NULL);
    const int code = read_numbers(r, path, out_weights, out_n);
    clg_npy_reader_free(r);
    return code;
}

static int read_csv(const char *path, float **out_weights, size_t *out_n)
{
    csv_table table = {0};
    int code = csv_load(path, CSV_HEADER_AUTO, &table);
    if (code != CODE_DONE) return code;
    *out_n = table.n_columns * table.n_rows;
    if (table.n_columns != 1 && table.n_rows != 1)
        code = fail_file("'%s' has %zu rows of %zu numbers: weights are one row or one column",
                         printable(path), table.n_rows, table.n_columns);
    *out_weights = must_alloc(*out_n + 1, sizeof **out_weights);
    for (size_t i = 0; i < *out_n; i++) (*out_weights)[i] = (float)table.numbers[i];
    csv_free(&table);
    return code;
}

int class_weights_read(const char *path, float **out_weights, size_t *out_n)
{
    const size_t n = strlen(path);
    const bool is_npy = n > 4 && strcmp(path + n - 4, ".npy") == 0;
    *out_weights = NULL;
    *out_n = 0;
    return is_npy ? read_npy(path, out_weights, out_n) : read_csv(path, out_weights, out_n);
}
