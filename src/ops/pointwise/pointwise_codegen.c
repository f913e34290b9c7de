/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates the OpenCL C source of a group of pointwise instructions. The source depends on dtypes,
 * expressions and the layout (which inputs are dense, scalar, constant along rows or strided),
 * never on sizes: those are arguments. It is compiled with cl/pointwise/pointwise.clh, which
 * defines the loads and stores.
 */
#include "ops/pointwise/pointwise.h"

#include "step/kernel_source.h"

#include <ctype.h>
#include <string.h>

/* ---- types ----------------------------------------------------------------------------------- */

/* The OpenCL C types of a register for a dtype. */
typedef struct reg_type {
    dtype_kind kind;
    const char *lane, *unsigned_lane, *mask_lane; /* OpenCL C types; masks of scalars are int */
    int bits;
} reg_type;

static reg_type reg_of(clg_dtype dtype)
{
    static const struct {
        const char *lane, *unsigned_lane, *mask_lane;
    } integers[2][4] = {{{"char", "uchar", "char"},
                         {"short", "ushort", "short"},
                         {"int", "uint", "int"},
                         {"long", "ulong", "long"}},
                        {{"uchar", "uchar", "char"},
                         {"ushort", "ushort", "short"},
                         {"uint", "uint", "int"},
                         {"ulong", "ulong", "long"}}};
    const dtype_info *info = dtype_find(dtype);
    if (info->kind == DTYPE_KIND_FLOAT) {
        if (dtype == CLG_FLOAT64)
            return (reg_type){DTYPE_KIND_FLOAT, "double", "ulong", "long", 64};
        return (reg_type){DTYPE_KIND_FLOAT, "float", "uint", "int", 32};
    }
    const int log = info->bits == 64 ? 3 : info->bits == 32 ? 2 : info->bits == 16 ? 1 : 0;
    const int is_unsigned = info->kind != DTYPE_KIND_SIGNED;
    return (reg_type){info->kind, integers[is_unsigned][log].lane,
                      integers[is_unsigned][log].unsigned_lane,
                      integers[is_unsigned][log].mask_lane, info->bits};
}

/* ---- expressions ----------------------------------------------------------------------------- */

typedef struct emitter {
    const pointwise_group *group;
    strbuf *out;
    const pointwise_instruction *instruction;
    reg_type type; /* of the operands */
    bool by_lane;  /* one lane at a time */
} emitter;

static clg_dtype kind_dtype(const pointwise_group *g, const pointwise_instruction *i)
{
    return pointwise_dtype(g, i->operands[i->def->flags & POINTWISE_KIND_OF_B ? 1 : 0]);
}

static void emit_operand(const emitter *e, int k)
{
    const pointwise_register r = e->instruction->operands[k];
    if (e->by_lane)
        strbuf_printf(e->out, "LANE(r%d, const %s, l)", r,
                      reg_of(pointwise_dtype(e->group, r)).lane);
    else
        strbuf_printf(e->out, "r%d", r);
}

static void emit_scalar(const emitter *e, int k)
{
    strbuf_printf(e->out, e->by_lane ? "((%s)p%d)" : "((v%s)p%d)", e->type.lane,
                  e->instruction->first_scalar + k);
}

/* Emits the constant x of $k(x) as a literal of the operands' type. `at` points to x; returns the
 * position after ")". */
static const char *emit_number(const emitter *e, const char *at)
{
    const size_t n = strcspn(at, ")");
    strbuf_printf(e->out, "((v%s)", e->type.lane);
    strbuf_append_bytes(e->out, at, n);
    strbuf_append(e->out, e->type.bits == 32 ? "f)" : ")");
    return at[n] ? at + n + 1 : at + n;
}

static const char *emit_token(const emitter *e, const char *at)
{
    const char *v = e->by_lane ? "" : "v";
    if (strncmp(at, "bits", 4) == 0) {
        strbuf_printf(e->out, "%d", e->type.bits);
        return at + 4;
    }
    switch (*at) {
    case 'a':
    case 'b':
    case 'c': emit_operand(e, *at - 'a'); break;
    case 'p':
    case 'q': emit_scalar(e, *at - 'p'); break;
    case 'T': strbuf_printf(e->out, "%s%s", v, e->type.lane); break;
    case 'U': strbuf_printf(e->out, "%s%s", v, e->type.unsigned_lane); break;
    case 'M': strbuf_printf(e->out, "mask_%s", e->type.mask_lane); break;
    case 'S': strbuf_append(e->out, e->type.lane); break;
    case 'V': strbuf_append(e->out, e->type.unsigned_lane); break;
    case 't': strbuf_printf(e->out, "to_v%s", e->type.lane); break;
    case 'u': strbuf_printf(e->out, "to_v%s", e->type.unsigned_lane); break;
    case 'm': strbuf_printf(e->out, "to_mask_%s", e->type.mask_lane); break;
    case 'k': return emit_number(e, at + 2);
    default: strbuf_append(e->out, "?"); break; /* does not compile, which tests of the table see */
    }
    return at + 1;
}

static void emit_expression(const emitter *e, const char *expression)
{
    for (const char *at = expression; *at;) {
        const size_t plain = strcspn(at, "$");
        strbuf_append_bytes(e->out, at, plain);
        at += plain;
        if (*at == '$') at = emit_token(e, at + 1);
    }
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Returns whether an instruction reads register r. If so, a float16 or bfloat16 result, which is a
 * float in its register, must be rounded to its dtype; otherwise the store rounds it. */
static bool is_computed_with(const pointwise_group *g, pointwise_register r)
{
    for (size_t i = 0; i < g->n_instructions; i++)
        for (int k = 0; k < g->instructions[i].def->n_operands; k++)
            if (g->instructions[i].operands[k] == r) return true;
    return false;
}

static void emit_cast(const emitter *e, pointwise_register result)
{
    const pointwise_register from = e->instruction->operands[0];
    const clg_dtype from_dtype = pointwise_dtype(e->group, from), to_dtype = e->instruction->dtype;
    const reg_type to = reg_of(to_dtype);
    strbuf_printf(e->out, "const v%s r%d = ", to.lane, result);
    if (to.kind == DTYPE_KIND_BOOL)
        strbuf_printf(e->out, "to_vuchar((r%d != (v%s)0) & (mask_%s)1);\n", from, e->type.lane,
                      e->type.mask_lane);
    else if ((to_dtype == CLG_FLOAT16 || to_dtype == CLG_BFLOAT16) && to_dtype != from_dtype &&
             is_computed_with(e->group, result))
        strbuf_printf(e->out, "round_%s(to_vfloat(r%d));\n", dtype_find(to_dtype)->name, from);
    else if (to.kind != DTYPE_KIND_FLOAT && e->type.kind == DTYPE_KIND_FLOAT)
        /* Some drivers' saturating conversions do not turn NaN into 0. */
        strbuf_printf(e->out, "CAT(to_v%s, _sat_rtz)(r%d == r%d ? r%d : (v%s)0);\n", to.lane, from,
                      from, from, e->type.lane);
    else
        strbuf_printf(e->out, "to_v%s(r%d);\n", to.lane, from);
}

/* Returns whether an instruction is evaluated lane by lane. */
static bool is_by_lane(const pointwise_group *g, const pointwise_instruction *i)
{
    const clg_dtype dtype = kind_dtype(g, i);
    const unsigned flags = i->def->flags;
    return (flags & POINTWISE_LANES_ALL) ||
           ((flags & POINTWISE_LANES_INT) && reg_of(dtype).kind != DTYPE_KIND_FLOAT) ||
           ((flags & POINTWISE_LANES_DOUBLE) && dtype == CLG_FLOAT64);
}

static void emit_instruction(const pointwise_group *g, size_t index, strbuf *out)
{
    const pointwise_instruction *i = &g->instructions[index];
    emitter e = {.group = g, .out = out, .instruction = i, .type = reg_of(kind_dtype(g, i))};
    const pointwise_register result = POINTWISE_RESULT(index);
    const char *lane = reg_of(i->dtype).lane;
    strbuf_append(out, "            ");
    if (i->def->flags & POINTWISE_CAST) {
        emit_cast(&e, result);
        return;
    }
    const char *expression = pointwise_expression(i->def, kind_dtype(g, i));
    if (is_by_lane(g, i)) {
        e.by_lane = true;
        strbuf_printf(out,
                      "v%s r%d;\n            for (int l = 0; l < P_VEC; ++l)\n                "
                      "LANE(r%d, %s, l) = ",
                      lane, result, result, lane);
        emit_expression(&e, expression);
    } else if (i->def->flags & POINTWISE_TO_BOOL) {
        strbuf_printf(out, "const vuchar r%d = to_vuchar((", result);
        emit_expression(&e, expression);
        strbuf_printf(out, ") & (mask_%s)1)", e.type.mask_lane);
    } else {
        strbuf_printf(out, "const v%s r%d = ", lane, result);
        emit_expression(&e, expression);
    }
    strbuf_append(out, ";\n");
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static bool has_strides(const pointwise_layout *l, size_t pattern)
{
    return l->patterns[pattern] != POINTWISE_DENSE && l->patterns[pattern] != POINTWISE_SCALAR;
}

static const char *mem_type(clg_dtype dtype)
{
    return dtype == CLG_BFLOAT16 ? "ushort" : dtype_find(dtype)->cl_name;
}

static void emit_elements(const pointwise_group *g, strbuf *out)
{
    dtype_set used = 0;
    for (size_t i = 0; i < g->n_inputs; i++) used |= DTYPE_BIT(g->inputs[i]);
    for (size_t i = 0; i < g->n_outputs; i++) used |= DTYPE_BIT(pointwise_dtype(g, g->outputs[i]));
    for (int dtype = 0; dtype < 32; dtype++)
        if (used & DTYPE_BIT(dtype))
            strbuf_printf(out, "ELEMENTS_%s\n", dtype_find((clg_dtype)dtype)->name);
}

static void emit_signature(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    strbuf_append(out, "__kernel void pointwise(");
    for (int d = 0; d < l->rank; d++) strbuf_printf(out, "const idx n%d, ", d);
    strbuf_append(out, "const int chunk");
    if (l->mode == POINTWISE_ROWS && l->rank > 1) strbuf_append(out, ", const int block");
    for (size_t p = 0; p < l->n_patterns; p++)
        for (int d = 0; has_strides(l, p) && d < l->rank; d++)
            strbuf_printf(out, ", const idx s%zu_%d", p, d);
    for (size_t i = 0; i < g->n_inputs; i++)
        strbuf_printf(out, ",\n    __global const %s *x%zu, const long x%zu_off",
                      mem_type(g->inputs[i]), i, i);
    for (size_t i = 0; i < g->n_outputs; i++)
        strbuf_printf(out, ",\n    __global %s *y%zu, const long y%zu_off",
                      mem_type(pointwise_dtype(g, g->outputs[i])), i, i);
    for (size_t i = 0; i < g->n_scalars; i++) strbuf_printf(out, ", const float p%zu", i);
    strbuf_append(out, ")\n{\n");
    for (size_t i = 0; i < g->n_inputs; i++) strbuf_printf(out, "    x%zu += x%zu_off;\n", i, i);
    for (size_t i = 0; i < g->n_outputs; i++) strbuf_printf(out, "    y%zu += y%zu_off;\n", i, i);
}

static void emit_scalar_inputs(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (l->patterns[l->pattern_of[i]] == POINTWISE_SCALAR)
            strbuf_printf(out, "    const v%s r%zu = splat_%s(x%zu);\n", reg_of(g->inputs[i]).lane,
                          i, dtype_find(g->inputs[i])->name, i);
}

/* Returns whether each vector of a row has the same values of a pattern. */
static bool is_of_row(const pointwise_layout *l, size_t pattern)
{
    return l->patterns[pattern] == POINTWISE_LANES || l->patterns[pattern] == POINTWISE_SAME;
}

/* Emits the loads of values that all vectors of a row share. The compiler may not move them out of
 * the loop, since the output might overlap them. */
static void emit_row_loads(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const size_t p = l->pattern_of[i];
        const char *name = dtype_find(g->inputs[i])->name;
        if (!is_of_row(l, p)) continue;
        strbuf_printf(out, "        const v%s r%zu = ", reg_of(g->inputs[i]).lane, i);
        if (l->patterns[p] == POINTWISE_LANES)
            strbuf_printf(out, "load_%s(x%zu + o%zu, P_VEC);\n", name, i, p);
        else
            strbuf_printf(out, "splat_%s(x%zu + o%zu);\n", name, i, p);
    }
}

/* Emits the loads of one iteration. In the generated code, `at` is the index in the output and `i`
 * the index in the row. */
static void emit_loads(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const size_t p = l->pattern_of[i];
        const char *name = dtype_find(g->inputs[i])->name;
        if (l->patterns[p] == POINTWISE_SCALAR || is_of_row(l, p)) continue;
        strbuf_printf(out, "            const v%s r%zu = ", reg_of(g->inputs[i]).lane, i);
        switch (l->patterns[p]) {
        case POINTWISE_NEXT:
            strbuf_printf(out, "load_%s(x%zu + (o%zu + i), count);\n", name, i, p);
            break;
        case POINTWISE_STRIDED:
            if (l->mode == POINTWISE_SINGLE)
                strbuf_printf(out, "gather_%s(x%zu, at%zu);\n", name, i, p);
            else
                strbuf_printf(out, "lanes_%s(x%zu + (o%zu + i * s%zu_%d), s%zu_%d, count);\n", name,
                              i, p, p, l->rank - 1, p, l->rank - 1);
            break;
        default: strbuf_printf(out, "load_%s(x%zu + at, count);\n", name, i); break;
        }
    }
}

static void emit_body(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    emit_loads(g, l, out);
    for (size_t i = 0; i < g->n_instructions; i++) emit_instruction(g, i, out);
    for (size_t i = 0; i < g->n_outputs; i++)
        strbuf_printf(out, "            store_%s(y%zu + at, r%d, count);\n",
                      dtype_find(pointwise_dtype(g, g->outputs[i]))->name, i, g->outputs[i]);
}

/* Emits code that splits the linear index `from` into coordinates d0, d1, .. of the first `rank`
 * dimensions, and computes the offset o<p> of each pattern p from them. */
static void emit_places(const pointwise_layout *l, const char *from, int rank, strbuf *out)
{
    strbuf_printf(out, "        idx rest = %s;\n", from);
    for (int d = rank - 1; d > 0; d--)
        strbuf_printf(out, "        idx d%d = rest %% n%d;\n        rest /= n%d;\n", d, d, d);
    if (rank > 0) strbuf_append(out, "        idx d0 = rest;\n");
    for (size_t p = 0; p < l->n_patterns; p++) {
        if (!has_strides(l, p)) continue;
        strbuf_printf(out, "        idx o%zu = 0", p);
        for (int d = 0; d < rank; d++) strbuf_printf(out, " + d%d * s%zu_%d", d, p, d);
        strbuf_append(out, ";\n");
    }
}

/* Emits the loop over the vectors of a row from `begin` on, and the rest of the row, which may be
 * less than a vector. Both are one loop where a second copy of the code costs more to compile than
 * it saves. */
static void emit_vectors(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    const bool has_rest = !pointwise_is_heavy(g);
    strbuf_printf(out,
                  "            const idx end = min(begin + chunk, n%d);\n"
                  "            idx i = begin;\n",
                  l->rank - 1);
    for (int rest = 0; rest <= (has_rest ? 1 : 0); rest++) {
        if (rest == 0 && has_rest)
            strbuf_append(out, "            for (; i + P_VEC <= end; i += P_VEC) {\n"
                               "            const int count = P_VEC;\n");
        else
            strbuf_printf(out,
                          "#if P_VEC > 1 || %d\n"
                          "            for (; i < end; i += P_VEC) {\n"
                          "            const int count = (int)min((idx)P_VEC, end - i);\n",
                          !has_rest);
        strbuf_append(out, "            const idx at = base + i;\n");
        emit_body(g, l, out);
        strbuf_append(out, "            }\n");
        if (rest == 1 || !has_rest) strbuf_append(out, "#endif\n");
    }
}

static void emit_rows(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    const int last = l->rank - 1;
    if (last > 0) {
        strbuf_append(out, "    const idx rows = n0");
        for (int d = 1; d < last; d++) strbuf_printf(out, " * n%d", d);
        strbuf_append(out, ";\n    for (idx first = (idx)get_global_id(1) * block; first < rows; "
                           "first += (idx)get_global_size(1) * block)\n"
                           "    for (idx row = first; row < min(first + block, rows); ++row) {\n");
        emit_places(l, "row", last, out);
        strbuf_printf(out, "        const idx base = row * n%d;\n", last);
    } else {
        strbuf_append(out, "    {\n        const idx base = 0;\n");
        for (size_t p = 0; p < l->n_patterns; p++)
            if (has_strides(l, p)) strbuf_printf(out, "        const idx o%zu = 0;\n", p);
    }
    emit_row_loads(g, l, out);
    strbuf_printf(out,
                  "        for (idx begin = (idx)get_global_id(0) * chunk; begin < n%d; begin += "
                  "(idx)get_global_size(0) * chunk) {\n",
                  last);
    emit_vectors(g, l, out);
    strbuf_append(out, "        }\n    }\n");
}

/* Emits the step to the next element: increments the coordinates with carry, last dimension first,
 * and updates the offsets. */
static void emit_step(const pointwise_layout *l, strbuf *out)
{
    for (int d = l->rank - 1; d >= 0; d--) {
        for (size_t p = 0; p < l->n_patterns; p++) {
            if (!has_strides(l, p)) continue;
            if (d == l->rank - 1)
                strbuf_printf(out, " o%zu += s%zu_%d;", p, p, d);
            else
                strbuf_printf(out, " o%zu += s%zu_%d - n%d * s%zu_%d;", p, p, d, d + 1, p, d + 1);
        }
        if (d > 0)
            strbuf_printf(out, " if (++d%d == n%d) { d%d = 0;", d, d, d);
        else
            strbuf_append(out, " ++d0;");
    }
    for (int d = 1; d < l->rank; d++) strbuf_append(out, " }");
}

static void emit_single(const pointwise_group *g, const pointwise_layout *l, strbuf *out)
{
    strbuf_append(out, "    const idx n = n0");
    for (int d = 1; d < l->rank; d++) strbuf_printf(out, " * n%d", d);
    strbuf_append(out, ";\n#define STEP");
    emit_step(l, out);
    strbuf_append(out, "\n    for (idx begin = (idx)get_global_id(0) * chunk; begin < n; begin += "
                       "(idx)get_global_size(0) * chunk) {\n");
    emit_places(l, "begin", l->rank, out);
    strbuf_append(out, "        for (idx at = begin; at < min(begin + chunk, n); at += P_VEC) {\n"
                       "            const int count = (int)min((idx)P_VEC, n - at);\n");
    for (size_t p = 0; p < l->n_patterns; p++)
        if (has_strides(l, p)) strbuf_printf(out, "            idx at%zu[P_VEC];\n", p);
    /* Lanes past the end read the last element again, which is valid memory. */
    strbuf_append(out, "            for (int l = 0; l < P_VEC; ++l) {\n");
    for (size_t p = 0; p < l->n_patterns; p++)
        if (has_strides(l, p)) strbuf_printf(out, "                at%zu[l] = o%zu;\n", p, p);
    strbuf_append(out,
                  "                if (l + 1 < count) { STEP }\n            }\n            STEP\n");
    emit_body(g, l, out);
    strbuf_append(out, "        }\n    }\n");
}

void pointwise_text(const pointwise_group *g, const pointwise_layout *layout, strbuf *out_text)
{
    const kernel_source *common = kernel_source_common("pointwise");
    if (common) strbuf_append_bytes(out_text, common->text, common->text_bytes);
    strbuf_append(out_text, "#line 1 \"generated pointwise\"\n");
    emit_elements(g, out_text);
    emit_signature(g, layout, out_text);
    emit_scalar_inputs(g, layout, out_text);
    if (layout->mode == POINTWISE_ROWS)
        emit_rows(g, layout, out_text);
    else
        emit_single(g, layout, out_text);
    strbuf_append(out_text, "}\n");
}

bool pointwise_is_heavy(const pointwise_group *g)
{
    for (size_t i = 0; i < g->n_instructions; i++)
        if (g->instructions[i].def->flags & POINTWISE_HEAVY) return true;
    return false;
}

void pointwise_label(const pointwise_group *g, strbuf *out_text)
{
    if (g->n_instructions == 0) strbuf_append(out_text, "Copy");
    for (size_t i = 0; i < g->n_instructions; i++)
        strbuf_printf(out_text, "%s%s", i ? "+" : "", g->instructions[i].def->name);
}
