/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a .csv file with cltool's reader: as a whole, and by rows after seeking. Both must give the
 * same number of rows.
 */
#include "fuzz.h"

#include "csv.h"

#include <stdlib.h>

static void read_rows(const char *path, size_t n_rows)
{
    csv_reader reader = {0};
    int64_t counted;
    bool is_row = true;
    size_t n = 0;
    fuzz_require(csv_open(path, CSV_HEADER_AUTO, false, &reader) == CODE_DONE);
    double *row = malloc((reader.n_columns + 1) * sizeof *row);
    fuzz_require(row);
    fuzz_require(csv_count(&reader, &counted) == CODE_DONE);
    fuzz_require(csv_seek(&reader, (int64_t)n_rows / 2) == CODE_DONE);
    for (n = n_rows / 2; csv_next(&reader, row, &is_row) == CODE_DONE && is_row;) n++;
    fuzz_require(n == n_rows && counted == (int64_t)n_rows);
    fuzz_require(csv_seek(&reader, 0) == CODE_DONE);
    fuzz_require(csv_seek(&reader, counted + 1) == CODE_DONE);
    csv_close(&reader);
    free(row);
}

static void make_values(const csv_table *table)
{
    const clg_port ports[] = {{.name = "x", .dtype = CLG_FLOAT32, .rank = 1, .dims = {-1}},
                              {.name = "x", .dtype = CLG_FLOAT32, .rank = 3, .dims = {-1, 1, 2}}};
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        clg_value *value = NULL;
        (void)csv_value(table, 0, table->n_columns, &ports[i], "fuzz.csv", &value);
        clg_value_free(value);
    }
}

void fuzz_csv(const uint8_t *data, size_t size_bytes)
{
    csv_table table;
    const char *path = fuzz_file("fuzz.csv", data, size_bytes);
    if (csv_load(path, CSV_HEADER_AUTO, &table) == CODE_DONE) {
        read_rows(path, table.n_rows);
        make_values(&table);
        csv_free(&table);
    }
    failure_clear();
}
