/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates operators on strings on the host: those that only move elements, Equal and Cast;
 * decodes and encodes UTF-8. See strings.h.
 */
#include "ops/ml/strings.h"

#include "base/strbuf.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool strings_in(const op_context *c)
{
    for (size_t i = 0; i < c->n_inputs; i++)
        if (op_has_input(c, i) && c->inputs[i].dtype == CLG_STRING) return true;
    for (size_t i = 0; i < c->n_outputs; i++)
        if (op_has_output(c, i) && c->outputs[i].dtype == CLG_STRING) return true;
    return false;
}

void strings_need(op_context *c)
{
    if (!strings_in(c)) return;
    for (size_t i = 0; i < c->n_inputs; i++) (void)op_need(c, i);
}

/* ---- moving elements ------------------------------------------------------------------------- */

/* Creates a tensor of the shape of `strings` with the numbers first, first + 1, ..: an index for
 * each string. */
static clg_status number_strings(const tensor *strings, int64_t first, tensor **out_numbers)
{
    CLG_TRY(tensor_create(CLG_INT64, &strings->dims, out_numbers));
    int64_t *numbers = (*out_numbers)->data;
    for (int64_t i = 0; i < strings->n_elements; i++) numbers[i] = first + i;
    return CLG_OK;
}

static const char *string_number(const op_context *c, int64_t number)
{
    for (size_t i = 0; i < c->n_inputs; i++) {
        const tensor *t = op_has_input(c, i) ? c->inputs[i].known : NULL;
        if (!t || t->dtype != CLG_STRING) continue;
        if (number < t->n_elements) return tensor_get_string(t, number);
        number -= t->n_elements;
    }
    return "";
}

static clg_status follow(const op_context *c, const tensor *numbers, tensor **out_strings)
{
    CLG_TRY(tensor_create(CLG_STRING, &numbers->dims, out_strings));
    for (int64_t i = 0; i < numbers->n_elements; i++) {
        const char *s = string_number(c, tensor_get_int(numbers, i));
        CLG_TRY(tensor_set_string(*out_strings, i, s, strlen(s)));
    }
    return CLG_OK;
}

/* Replaces the indices in the outputs of an operator's eval function by the strings with these
 * indices. */
static clg_status follow_all(const op_context *c, tensor **moved, tensor **out_tensors)
{
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (!moved[i]) continue;
        if (c->outputs[i].dtype == CLG_STRING) {
            CLG_TRY(follow(c, moved[i], &out_tensors[i]));
        } else {
            out_tensors[i] = moved[i];
            moved[i] = NULL;
        }
    }
    return CLG_OK;
}

clg_status strings_move(op_context *c, tensor **out_tensors)
{
    op_context numbers = *c;
    int64_t first = 0;
    clg_status status = CLG_OK;
    value_fact *inputs = memory_zalloc(c->n_inputs + c->n_outputs + 1, sizeof *inputs),
               *outputs = inputs ? inputs + c->n_inputs : NULL;
    tensor **moved = memory_zalloc(c->n_outputs + 1, sizeof(tensor *));
    if (!inputs || !moved) status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; status == CLG_OK && i < c->n_inputs; i++) {
        tensor *t = NULL;
        inputs[i] = c->inputs[i];
        inputs[i].known = NULL;
        if (!op_has_input(c, i) || !c->inputs[i].known) continue;
        if (c->inputs[i].dtype == CLG_STRING) {
            status = number_strings(c->inputs[i].known, first, &t);
            inputs[i].dtype = CLG_INT64;
            first += c->inputs[i].known->n_elements;
        } else {
            t = fact_share(c->inputs[i].known);
        }
        inputs[i].known = t;
    }
    for (size_t i = 0; status == CLG_OK && i < c->n_outputs; i++) {
        outputs[i] = c->outputs[i];
        if (outputs[i].dtype == CLG_STRING) outputs[i].dtype = CLG_INT64;
    }
    numbers.inputs = inputs;
    numbers.outputs = outputs;
    if (status == CLG_OK) status = c->row->eval(&numbers, moved);
    if (status == CLG_OK) status = follow_all(c, moved, out_tensors);
    for (size_t i = 0; inputs && i < c->n_inputs; i++)
        tensor_free((tensor *)(uintptr_t)inputs[i].known);
    for (size_t i = 0; moved && i < c->n_outputs; i++) tensor_free(moved[i]);
    memory_free(inputs);
    memory_free(moved);
    return status;
}

/* ---- Equal ----------------------------------------------------------------------------------- */

int64_t strings_broadcast_place(const shape *own, const shape *dims, int64_t at)
{
    int64_t place = 0, stride = 1;
    for (int d = dims->rank - 1, i = own->rank - 1; i >= 0; d--, i--) {
        if (own->dims[i] != 1) place += at % dims->dims[d] * stride;
        at /= dims->dims[d];
        stride *= own->dims[i];
    }
    return place;
}

clg_status strings_equal(const tensor *a, const tensor *b, const shape *dims, tensor **out_tensor)
{
    CLG_TRY(tensor_create(CLG_BOOL, dims, out_tensor));
    bool *equal = (*out_tensor)->data;
    for (int64_t i = 0; i < (*out_tensor)->n_elements; i++)
        equal[i] = strcmp(tensor_get_string(a, strings_broadcast_place(&a->dims, dims, i)),
                          tensor_get_string(b, strings_broadcast_place(&b->dims, dims, i))) == 0;
    return CLG_OK;
}

/* ---- Cast ------------------------------------------------------------------------------------ */

#define NUMBER_BYTES 64

static char decimal_point(void)
{
    const struct lconv *words = localeconv();
    return words && words->decimal_point && words->decimal_point[0] ? words->decimal_point[0] : '.';
}

static bool is_number_text(const char *s)
{
    if (*s == '+' || *s == '-') s++;
    return (*s >= '0' && *s <= '9') || *s == '.';
}

static bool is_word(const char *s, const char *word)
{
    for (; *word; s++, word++)
        if ((*s | 0x20) != *word) return false;
    return *s == '\0';
}

/* Copies the text of a number to buffer without surrounding spaces, NUL-terminated. Returns buffer,
 * or NULL if the text is empty or too long. */
static const char *number_in(const char *s, char buffer[NUMBER_BYTES * 16])
{
    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r') s++;
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\n\r", s[n - 1])) n--;
    if (n == 0 || n >= NUMBER_BYTES * 16) return NULL;
    memcpy(buffer, s, n);
    buffer[n] = '\0';
    return buffer;
}

bool string_to_float(const char *s, double *out)
{
    char buffer[NUMBER_BYTES * 16], *end;
    s = number_in(s, buffer);
    if (!s) return false;
    const char *unsigned_part = *s == '+' || *s == '-' ? s + 1 : s;
    if (is_word(unsigned_part, "inf") || is_word(unsigned_part, "infinity")) {
        *out = *s == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (is_word(unsigned_part, "nan")) {
        *out = NAN;
        return true;
    }
    if (!is_number_text(s) || strpbrk(s, "xX")) return false;
    for (char *p = buffer; *p; p++)
        if (*p == '.') *p = decimal_point();
    *out = strtod(buffer, &end);
    return *end == '\0';
}

bool string_to_int(const char *s, int64_t *out)
{
    char buffer[NUMBER_BYTES * 16];
    s = number_in(s, buffer);
    if (!s) return false;
    const bool negative = *s == '-';
    uint64_t value = 0;
    if (*s == '+' || *s == '-') s++;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        const uint64_t digit = (uint64_t)(*s - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    if (negative && value > (uint64_t)1 << 63) return false;
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

static clg_status string_of_int(int64_t i, bool is_unsigned, char text[NUMBER_BYTES])
{
    if (is_unsigned)
        (void)snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)i);
    else
        (void)snprintf(text, NUMBER_BYTES, "%lld", (long long)i);
    return CLG_OK;
}

/* Returns whether the text, parsed and rounded to a dtype, gives x again. */
static bool parses_back_to(const char *text, double x, clg_dtype dtype)
{
    double back;
    if (!string_to_float(text, &back)) return false;
    switch (dtype) {
    case CLG_FLOAT64: return back == x;
    case CLG_FLOAT16: return (double)half_to_float(half_from_float((float)back)) == x;
    case CLG_BFLOAT16: return (double)bfloat16_to_float(bfloat16_from_float((float)back)) == x;
    default: return (double)(float)back == x;
    }
}

/* Formats a float with as few digits as distinguish it from adjacent values. */
static void string_of_float(double x, clg_dtype dtype, char text[NUMBER_BYTES])
{
    if (isnan(x) || isinf(x)) {
        (void)snprintf(text, NUMBER_BYTES, "%s", isnan(x) ? "NaN" : x < 0 ? "-INF" : "INF");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, NUMBER_BYTES, "%.*g", digits, x);
        for (char *p = text; *p; p++)
            if (*p == decimal_point()) *p = '.';
        if (parses_back_to(text, x, dtype)) return;
    }
}

static clg_status to_strings(const tensor *from, tensor *to)
{
    char text[NUMBER_BYTES] = "";
    for (int64_t i = 0; i < from->n_elements; i++) {
        if (dtype_is_float(from->dtype))
            string_of_float(tensor_get_float(from, i), from->dtype, text);
        else
            CLG_TRY(string_of_int(tensor_get_int(from, i), from->dtype == CLG_UINT64, text));
        CLG_TRY(tensor_set_string(to, i, text, strlen(text)));
    }
    return CLG_OK;
}

static clg_status from_strings(const op_context *c, const tensor *from, tensor *to)
{
    for (int64_t i = 0; i < from->n_elements; i++) {
        const char *s = tensor_get_string(from, i);
        double number;
        int64_t whole;
        char shown[NAME_TEXT_BYTES];
        if (!dtype_is_float(to->dtype) && string_to_int(s, &whole)) {
            tensor_set_int(to, i, whole);
        } else if (string_to_float(s, &number)) {
            tensor_set_float(to, i, number);
        } else {
            return op_error(c, CLG_ERROR_DATA, "'%s' is not a number", name_text(s, shown));
        }
    }
    return CLG_OK;
}

clg_status strings_cast(const op_context *c, const tensor *from, clg_dtype dtype,
                        tensor **out_tensor)
{
    *out_tensor = NULL;
    if (from->dtype == dtype) {
        *out_tensor = fact_share(from);
        return CLG_OK;
    }
    tensor *to;
    CLG_TRY(tensor_create(dtype, &from->dims, &to));
    const clg_status status =
        dtype == CLG_STRING ? to_strings(from, to) : from_strings(c, from, to);
    if (status == CLG_OK)
        *out_tensor = to;
    else
        tensor_free(to);
    return status;
}

/* ---- characters ------------------------------------------------------------------------------ */

/* Returns the number of continuation bytes after a first byte of UTF-8; -1 if it is not one. */
static int followers(unsigned char first)
{
    if (first < 0x80) return 0;
    if (first >= 0xc2 && first < 0xe0) return 1;
    if (first >= 0xe0 && first < 0xf0) return 2;
    if (first >= 0xf0 && first < 0xf5) return 3;
    return -1;
}

uint32_t utf8_next(const char **s)
{
    const unsigned char *p = (const unsigned char *)*s;
    const int n = followers(p[0]);
    if (p[0] == 0) return 0;
    uint32_t c = n <= 0 ? p[0] : p[0] & (0x3fu >> n);
    for (int i = 1; i <= n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *s += 1;
            return p[0];
        }
        c = c << 6 | (p[i] & 0x3fu);
    }
    *s += n < 0 ? 1 : n + 1;
    return n < 0 ? p[0] : c;
}

size_t utf8_put(uint32_t c, char buffer[4])
{
    if (c < 0x80) {
        buffer[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) buffer[i] = (char)(0x80 | (c & 0x3f));
    buffer[0] = (char)((0xf00u >> n & 0xf0u) | c);
    return n;
}

/* Ranges of capital letters. The lower case of a letter is `step` after it. With step 1, capital
 * and small letters alternate. */
static const struct case_range {
    uint32_t first, last, step; /* of the capital letters */
} case_ranges[] = {{'A', 'Z', 32},     {0xc0, 0xd6, 32},    {0xd8, 0xde, 32},   {0x100, 0x12f, 1},
                   {0x132, 0x137, 1},  {0x14a, 0x177, 1},   {0x391, 0x3a1, 32}, {0x3a3, 0x3ab, 32},
                   {0x400, 0x40f, 80}, {0x410, 0x42f, 32},  {0x460, 0x481, 1},  {0x48a, 0x4bf, 1},
                   {0x4d0, 0x52f, 1},  {0x1e00, 0x1e95, 1}, {0x1ea0, 0x1eff, 1}};

uint32_t utf8_lower(uint32_t c)
{
    for (size_t i = 0; i < sizeof case_ranges / sizeof *case_ranges; i++) {
        const struct case_range *r = &case_ranges[i];
        if (c >= r->first && c <= r->last) return r->step == 1 ? c | 1 : c + r->step;
    }
    return c;
}

uint32_t utf8_upper(uint32_t c)
{
    for (size_t i = 0; i < sizeof case_ranges / sizeof *case_ranges; i++) {
        const struct case_range *r = &case_ranges[i];
        if (r->step == 1 && c >= r->first && c <= r->last) return c & ~(uint32_t)1;
        if (r->step > 1 && c >= r->first + r->step && c <= r->last + r->step) return c - r->step;
    }
    return c;
}
