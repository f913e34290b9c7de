/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads, casts, fills, rotates and repeats values.
 */
#include "values.h"

#include "options.h"
#include "output.h"
#include "splitmix.h"
#include "standard_streams.h"
#include "stats.h"

#include <clgraph/inspect.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

int value_load(const char *path, clg_value **out_value)
{
    const int code = is_standard(path) ? standard_input(&path) : CODE_DONE;
    if (code != CODE_DONE) return code;
    clg_status status = clg_value_load(path, out_value);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_READ, NULL);
}

static bool is_natural_cast(clg_dtype from, clg_dtype to)
{
    return (dtype_is_floating(from) && dtype_is_floating(to)) ||
           (dtype_is_integral(from) && dtype_is_integral(to));
}

static int refuse_cast(const clg_port *port, const char *from, clg_dtype got, const char *why)
{
    (void)fail(CODE_USAGE, CLG_ERROR_UNSUPPORTED_DTYPE, "input '%s' takes %s, '%s' holds %s%s",
               printable(port->name), clg_dtype_name(port->dtype), from, clg_dtype_name(got), why);
    return CODE_USAGE;
}

int value_fit_dtype(const clg_port *port, const char *from, bool allow_cast, bool quiet,
                    clg_value **value)
{
    clg_dtype got = clg_value_dtype(*value), want = port->dtype;
    if (got == want || want == CLG_DTYPE_NONE) return CODE_DONE;
    if (!dtype_is_numeric(got) || !dtype_is_numeric(want)) return refuse_cast(port, from, got, "");
    bool is_natural = is_natural_cast(got, want), is_exact = false;
    bool is_usual = got == CLG_FLOAT64 && want == CLG_FLOAT32;
    clg_value *cast = NULL;
    if (is_natural || allow_cast) {
        clg_status status = clg_value_cast(*value, want, &cast, &is_exact);
        if (status != CLG_OK)
            return fail_status(status, STAGE_INPUT, "input '%s'", printable(port->name));
    }
    if (!allow_cast && !(is_natural && (is_exact || is_usual))) {
        clg_value_free(cast);
        int code = refuse_cast(port, from, got,
                               is_natural ? ", and the cast would change values"
                                          : ", and a cast may mean several things");
        fail_hint("--cast casts all the same, as ONNX's Cast does");
        return code;
    }
    if (!quiet) {
        output_note("input '%s': %s cast to %s%s", printable(port->name), clg_dtype_name(got),
                    clg_dtype_name(want), is_exact || is_usual ? "" : ", values changed");
    }
    clg_value_free(*value);
    *value = cast;
    return CODE_DONE;
}

typedef struct fill {
    bool is_random, has_range;
    size_t seed;
    double low, high, constant;
} fill;

static int parse_fill(const char *kind, fill *out_fill)
{
    *out_fill = (fill){0};
    if (strcmp(kind, "zeros") == 0) return CODE_DONE;
    out_fill->constant = 1;
    if (strcmp(kind, "ones") == 0) return CODE_DONE;
    if (strncmp(kind, "random:", 7) != 0) {
        return fail_usage("--fill takes random:SEED[:LO:HI], zeros or ones, not '%s'", kind);
    }
    out_fill->is_random = true;
    char *copy = must_copy(kind + 7), *rest = copy;
    const char *seed = split_next(&rest, ':'), *low = split_next(&rest, ':'),
               *high = split_next(&rest, ':');
    int code = option_size("the seed of --fill", seed, 0, &out_fill->seed);
    if (code == CODE_DONE && (rest || (low && !high))) {
        code = fail_usage("--fill takes random:SEED or random:SEED:LO:HI, not '%s'", kind);
    }
    if (code == CODE_DONE && high) {
        out_fill->has_range = true;
        code = option_real("LO of --fill", low, &out_fill->low);
        if (code == CODE_DONE) code = option_real("HI of --fill", high, &out_fill->high);
        if (code == CODE_DONE && out_fill->low > out_fill->high) {
            code = fail_usage("--fill: LO is larger than HI in '%s'", kind);
        }
    }
    free(copy);
    return code;
}

int value_check_fill(const char *kind)
{
    fill ignored;
    return parse_fill(kind, &ignored);
}

static void fill_floats(const fill *f, uint64_t state, float *data, int64_t n)
{
    double low = f->has_range ? f->low : -1, high = f->has_range ? f->high : 1;
    for (int64_t i = 0; i < n; i++) {
        data[i] = (float)(f->is_random ? low + (high - low) * splitmix_real(&state) : f->constant);
    }
}

static void fill_integers(const fill *f, uint64_t state, int64_t *data, int64_t n)
{
    double low = f->has_range ? ceil(f->low) : 0, high = f->has_range ? floor(f->high) : 1;
    for (int64_t i = 0; i < n; i++) {
        double x =
            f->is_random ? low + floor((high - low + 1) * splitmix_real(&state)) : f->constant;
        data[i] = (int64_t)(x > high && f->is_random ? high : x);
    }
}

int value_fill(const char *kind, size_t salt, const clg_port *port, size_t rank,
               const int64_t *dims, clg_value **out_value)
{
    fill f;
    clg_value *made, *cast;
    *out_value = NULL;
    int code = parse_fill(kind, &f);
    if (code != CODE_DONE) return code;
    if (port->kind != CLG_VALUE_TENSOR || !dtype_is_numeric(port->dtype)) {
        return fail_usage("input '%s' cannot be filled: it takes %s", printable(port->name),
                          port->kind == CLG_VALUE_TENSOR ? clg_dtype_name(port->dtype)
                                                         : "no tensor");
    }
    bool is_float = dtype_is_floating(port->dtype);
    if (!is_float && (fabs(f.low) > 0x1p53 || fabs(f.high) > 0x1p53)) {
        return fail_usage("--fill: the range of '%s' is too wide for integers", kind);
    }
    uint64_t state = f.seed * UINT64_C(0x100000001b3) + salt;
    clg_status status = clg_value_create(is_float ? CLG_FLOAT32 : CLG_INT64, rank, dims, &made);
    if (status != CLG_OK)
        return fail_status(status, STAGE_INPUT, "input '%s'", printable(port->name));
    if (is_float) {
        fill_floats(&f, state, clg_value_data(made), clg_value_n_elements(made));
    } else {
        fill_integers(&f, state, clg_value_data(made), clg_value_n_elements(made));
    }
    status = clg_value_cast(made, port->dtype, &cast, NULL);
    clg_value_free(made);
    if (status != CLG_OK)
        return fail_status(status, STAGE_INPUT, "input '%s'", printable(port->name));
    *out_value = cast;
    return CODE_DONE;
}

static int make_like(const clg_value *value, size_t rank, const int64_t *dims,
                     clg_value **out_value)
{
    clg_status status = clg_value_create(clg_value_dtype(value), rank, dims, out_value);
    return status == CLG_OK ? CODE_DONE : fail_status(status, STAGE_WORK, NULL);
}

int value_rotate(clg_value *value, size_t step, clg_value **out_value)
{
    if (clg_value_get_kind(value) != CLG_VALUE_TENSOR) {
        *out_value = clg_value_retain(value); /* not varied */
        return CODE_DONE;
    }
    size_t n = (size_t)clg_value_n_elements(value), size = clg_value_size_bytes(value);
    int code = make_like(value, clg_value_rank(value), clg_value_dims(value), out_value);
    if (code != CODE_DONE || size == 0) return code;
    size_t head = step % n * (size / n);
    char *to = clg_value_data(*out_value);
    const char *from = clg_value_data(value);
    memcpy(to, from + (size - head), head);
    memcpy(to + head, from, size - head);
    return code;
}

int value_repeat_rows(const clg_value *value, size_t n, clg_value **out_value)
{
    if (clg_value_get_kind(value) != CLG_VALUE_TENSOR)
        return fail_usage("an input that is not a tensor cannot be given a batch of %zu", n);
    int64_t dims[CLG_MAX_RANK];
    size_t rank = clg_value_rank(value), size = clg_value_size_bytes(value);
    memcpy(dims, clg_value_dims(value), rank * sizeof *dims);
    size_t n_rows = (size_t)dims[0];
    dims[0] = (int64_t)n;
    if (n_rows == 0)
        return fail_usage("an input without rows cannot be brought to a batch of %zu", n);
    int code = make_like(value, rank, dims, out_value);
    if (code != CODE_DONE || size == 0) return code;
    size_t row = size / n_rows;
    char *to = clg_value_data(*out_value);
    const char *from = clg_value_data(value);
    for (size_t i = 0; i < n; i++) memcpy(to + i * row, from + i % n_rows * row, row);
    return code;
}
