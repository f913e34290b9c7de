/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints docs/operators.md from the library's table of operators. `cmake --build BUILD --target
 * docs_operators` writes the file, the test lint.operators_doc compares it.
 */
#include <clgraph/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(dtype) (1u << (dtype))
#define FLOAT8                                                                                     \
    (BIT(CLG_FLOAT8E4M3FN) | BIT(CLG_FLOAT8E4M3FNUZ) | BIT(CLG_FLOAT8E5M2) |                       \
     BIT(CLG_FLOAT8E5M2FNUZ))
#define FEW_BITS                                                                                   \
    (BIT(CLG_UINT4) | BIT(CLG_INT4) | BIT(CLG_FLOAT4E2M1) | BIT(CLG_UINT2) | BIT(CLG_INT2))

/* Sets of dtypes that are printed by a name, the larger ones first. */
static const struct {
    unsigned set;
    const char *word;
} classes[] = {
    {BIT(CLG_FLOAT16) | BIT(CLG_FLOAT32) | BIT(CLG_FLOAT64) | BIT(CLG_BFLOAT16), "floats"},
    {BIT(CLG_INT8) | BIT(CLG_INT16) | BIT(CLG_INT32) | BIT(CLG_INT64) | BIT(CLG_UINT8) |
         BIT(CLG_UINT16) | BIT(CLG_UINT32) | BIT(CLG_UINT64),
     "integers"},
    {BIT(CLG_INT8) | BIT(CLG_INT16) | BIT(CLG_INT32) | BIT(CLG_INT64), "signed integers"},
    {BIT(CLG_UINT8) | BIT(CLG_UINT16) | BIT(CLG_UINT32) | BIT(CLG_UINT64), "unsigned integers"},
    {FLOAT8 | FEW_BITS | BIT(CLG_FLOAT8E8M0), "storage types"},
    {FLOAT8 | FEW_BITS, "storage types but float8e8m0"},
    {FLOAT8 | BIT(CLG_FLOAT8E8M0), "storage types of a byte"},
};
#define N_CLASSES (sizeof classes / sizeof classes[0])

static unsigned dtype_named(const char *name, size_t n)
{
    for (int i = 1; i < 32; i++) {
        const char *other = clg_dtype_name((clg_dtype)i);
        if (strlen(other) == n && memcmp(other, name, n) == 0) return BIT(i);
    }
    return 0;
}

/* Prints a list of dtypes such as "float32, int8"; whole sets by their name. */
static void print_types(const char *list, size_t n_bytes)
{
    unsigned set = 0;
    const char *between = "", *end = list + n_bytes;
    while (list < end) {
        const size_t n = strcspn(list, ",;");
        set |= dtype_named(list, n);
        list += n;
        while (list < end && (*list == ',' || *list == ' ')) list++;
    }
    for (size_t i = 0; i < N_CLASSES; i++) {
        if ((set & classes[i].set) != classes[i].set) continue;
        printf("%s%s", between, classes[i].word);
        between = ", ";
        set &= ~classes[i].set;
    }
    for (int i = 1; i < 32; i++) {
        if (!(set & BIT(i))) continue;
        printf("%s%s", between, clg_dtype_name((clg_dtype)i));
        between = ", ";
    }
}

/* Prints a text such as "T: float32, float16; I: int64", with whole sets by their name. */
static void print_dtypes(const char *text)
{
    if (!*text) printf("any");
    while (*text) {
        const size_t n = strcspn(text, ";");
        if (n > 3) {
            printf("%.3s", text);
            print_types(text + 3, n - 3);
        }
        text += n;
        if (*text) printf("; ");
        while (*text == ';' || *text == ' ') text++;
    }
}

static int compare(const void *left, const void *right)
{
    const clg_operator_info *a = left, *b = right;
    int order = strcmp(a->domain, b->domain);
    if (order == 0) order = strcmp(a->name, b->name);
    return order != 0 ? order : a->since - b->since;
}

/* Returns whether b is the same operator as a with the same properties, for the opset versions that
 * follow those of a: both become one line. */
static bool continues(const clg_operator_info *a, const clg_operator_info *b)
{
    return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0 &&
           a->until + 1 == b->since && strcmp(a->dtypes, b->dtypes) == 0 &&
           strcmp(a->place, b->place) == 0 && strcmp(a->gradient, b->gradient) == 0;
}

static void print_row(const clg_operator_info *row)
{
    printf("| %s | %d", row->name, row->since);
    if (row->until == 0)
        printf(" and later");
    else if (row->until != row->since)
        printf(" to %d", row->until);
    printf(" | ");
    print_dtypes(row->dtypes);
    printf(" | %s | %s |\n", row->place, row->gradient);
}

static bool is_other_domain(const clg_operator_info *rows, size_t i)
{
    return i == 0 || strcmp(rows[i].domain, rows[i - 1].domain) != 0;
}

static void print_heading(const char *domain)
{
    printf("\n## %s\n\n", domain[0] ? domain : "ai.onnx, the default domain");
    printf("| operator | opset versions | element types | computed | gradient |\n"
           "|---|---|---|---|---|\n");
}

static const char title[] =
    "# Operators\n"
    "\n"
    "<!-- Generated from the tables of src/ops: cmake --build build --target docs_operators -->\n"
    "\n"
    "The ";

static const char introduction[] =
    " operators that clgraph has, with the opset versions and element types of each. A model\n"
    "that needs anything else is refused when it is loaded; `cltool inspect MODEL` names all\n"
    "of it.\n"
    "\n"
    "- Versions are those of the operator set that the model imports.\n"
    "- Letters are type variables: inputs and outputs that share one share their type. `T` is\n"
    "  that of the data; others are of indices, shapes, scales and the like.\n"
    "- *floats* are float16, bfloat16, float32 and float64; *integers* have 8 to 64 bits, with\n"
    "  and without sign. *storage types* are float8e4m3fn, float8e4m3fnuz, float8e5m2,\n"
    "  float8e5m2fnuz, float8e8m0, float4e2m1, int4, uint4, int2 and uint2. float64 needs a "
    "device\n"
    "  that has it. [numerics.md](numerics.md) says how each is computed.\n"
    "- *device*: kernels, or a view of memory where nothing has to move. Small known numbers, as\n"
    "  in arithmetic on shapes, are computed while a run is planned. *shape arithmetic*: only\n"
    "  there. *host*: control flow and lists of values, which the planner walks; what is computed\n"
    "  inside of them is computed as everywhere.\n"
    "- *gradient*: whether `clg_model_gradient` passes through it. *zero*: its results are steps, "
    "or\n"
    "  not floats; else the reason why a model is refused if a gradient would have to pass.\n";

static void print_all(clg_operator_info *rows, size_t n)
{
    size_t n_names = 0;
    qsort(rows, n, sizeof *rows, compare);
    for (size_t i = 0; i < n; i++)
        n_names += is_other_domain(rows, i) || strcmp(rows[i].name, rows[i - 1].name) != 0;
    printf("%s%zu%s", title, n_names, introduction);
    for (size_t i = 0; i < n; i++) {
        if (is_other_domain(rows, i)) print_heading(rows[i].domain);
        clg_operator_info row = rows[i];
        while (i + 1 < n && continues(&row, &rows[i + 1])) row.until = rows[++i].until;
        print_row(&row);
    }
}

int main(void)
{
    clg_operator_info *rows;
    size_t n;
    if (clg_operator_list(&rows, &n) != CLG_OK) {
        fprintf(stderr, "operators: %s\n", clg_last_error());
        return 1;
    }
    print_all(rows, n);
    clg_operator_list_free(rows, n);
    return fflush(stdout) == 0 ? 0 : 1;
}
