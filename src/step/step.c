/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds candidates (implementations of a node as lists of steps, step.h). The first failure is
 * stored in the builder; later calls return dummies, so that lowering code needs no checks between
 * them. step_builder_check validates the finished candidates.
 */
#include "step/step.h"

#include "base/strbuf.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void step_builder_init(step_builder *b, arena *memory, step_texts *texts)
{
    *b = (step_builder){.memory = memory, .texts = texts};
}

/* Records that an allocation in the arena failed. */
static void fail_memory(step_builder *b)
{
    if (b->status == CLG_OK) b->status = CLG_ERROR_OUT_OF_HOST_MEMORY;
}

/* Records an error, unless there is one already. */
static void fail(step_builder *b, clg_status status, const char *what, const char *where)
{
    if (b->status == CLG_OK)
        b->status = error_set(status, "%s: %s", where ? where : "a step", what);
}

static const char *copy_text(step_builder *b, const char *string)
{
    if (!string || b->status != CLG_OK) return NULL;
    const char *copy =
        b->texts ? step_texts_keep(b->texts, string) : arena_strdup(b->memory, string);
    if (!copy) fail_memory(b);
    return copy;
}

static void set_baseline(step *steps, bool baseline)
{
    for (step *s = steps; s; s = s->next) s->kernel.baseline = baseline;
}

void candidate_set_baseline(candidate *c, bool baseline)
{
    for (uint32_t i = 0; i < c->n_packings; i++) set_baseline(c->packings[i].steps, baseline);
    set_baseline(c->steps, baseline);
}

double candidate_flops(const candidate *c)
{
    double sum = 0;
    for (const step *s = c->steps; s; s = s->next) sum += s->flops;
    return sum;
}

/* ---- candidates ------------------------------------------------------------------------------ */

candidate *step_candidate(step_builder *b, const char *variant)
{
    candidate *c = b->status == CLG_OK ? arena_alloc(b->memory, 1, sizeof *c) : NULL;
    if (!c) {
        fail_memory(b);
        b->dummy_candidate = (candidate){0};
        return &b->dummy_candidate;
    }
    c->variant = copy_text(b, variant);
    if (b->last_candidate) {
        b->last_candidate->next = c;
    } else {
        b->candidates = c;
    }
    b->last_candidate = c;
    return c;
}

operand step_scratch(step_builder *b, candidate *c, size_t size_bytes)
{
    operand o = {OPERAND_SCRATCH, 0, 0};
    if (b->status != CLG_OK) return o;
    if (c->n_scratch == CANDIDATE_MAX_SCRATCH) {
        fail(b, CLG_ERROR_INTERNAL, "requests too many scratch buffers", c->variant);
        return o;
    }
    o.index = c->n_scratch++;
    c->scratch_bytes[o.index] = size_bytes;
    return o;
}

operand step_packing(step_builder *b, candidate *c, uint32_t input, const char *recipe,
                     size_t size_bytes)
{
    operand o = {OPERAND_PACKED, 0, 0};
    if (b->status != CLG_OK) return o;
    if (c->n_packings == CANDIDATE_MAX_PACKINGS) {
        fail(b, CLG_ERROR_INTERNAL, "requests too many packed weights", c->variant);
        return o;
    }
    const char *copy = arena_strdup(b->memory, recipe);
    if (!copy) {
        fail_memory(b);
        return o;
    }
    o.index = c->n_packings++;
    c->packings[o.index] = (packing){.input = input, .recipe = copy, .size_bytes = size_bytes};
    return o;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void append(step **first, step **last, step *s)
{
    if (*last) {
        (*last)->next = s;
    } else {
        *first = s;
    }
    *last = s;
}

static step *new_step(step_builder *b, step_kind kind)
{
    step *s = b->status == CLG_OK ? arena_alloc(b->memory, 1, sizeof *s) : NULL;
    if (!s) {
        fail_memory(b);
        b->dummy_step = (step){0};
        return &b->dummy_step;
    }
    s->kind = kind;
    return s;
}

static step *new_kernel_step(step_builder *b, const char *source, const char *entry,
                             const char *prelude, const char *body)
{
    step *s = new_step(b, STEP_KERNEL);
    s->kernel.source = copy_text(b, source);
    s->kernel.entry = copy_text(b, entry);
    s->kernel.prelude = copy_text(b, prelude ? prelude : "");
    s->kernel.body = copy_text(b, body);
    return s;
}

step *step_kernel(step_builder *b, candidate *c, const char *source, const char *entry,
                  const char *prelude)
{
    return step_kernel_generated(b, c, source, entry, prelude, NULL);
}

step *step_kernel_generated(step_builder *b, candidate *c, const char *name, const char *entry,
                            const char *prelude, const char *body)
{
    step *s = new_kernel_step(b, name, entry, prelude, body);
    if (s != &b->dummy_step) append(&c->steps, &c->last_step, s);
    return s;
}

step *step_pack_kernel(step_builder *b, candidate *c, operand packed, const char *source,
                       const char *entry, const char *prelude)
{
    if (b->status == CLG_OK && (packed.space != OPERAND_PACKED || packed.index >= c->n_packings)) {
        fail(b, CLG_ERROR_INTERNAL, "packs into something that is not a packed weight", entry);
    }
    step *s = new_kernel_step(b, source, entry, prelude, NULL);
    if (s == &b->dummy_step) return s;
    s->fixed_groups = true; /* some do not loop over matrices or groups of channels */
    packing *p = &c->packings[packed.index];
    step *last = p->steps;
    while (last && last->next) last = last->next;
    append(&p->steps, &last, s);
    return s;
}

step *step_blas_gemm(step_builder *b, candidate *c, const gemm_problem *problem)
{
    step *s = new_step(b, STEP_BLAS_GEMM);
    s->gemm = *problem;
    if (s == &b->dummy_step) return s;
    c->uses_blas = true;
    append(&c->steps, &c->last_step, s);
    return s;
}

step *step_copy(step_builder *b, candidate *c, operand from, operand to, size_t size_bytes)
{
    step *s = new_step(b, STEP_COPY);
    s->from = from;
    s->to = to;
    s->size_bytes = size_bytes;
    if (s != &b->dummy_step && size_bytes > 0) append(&c->steps, &c->last_step, s);
    return s;
}

step *step_fill(step_builder *b, candidate *c, operand to, size_t size_bytes, const void *pattern,
                uint32_t pattern_bytes)
{
    step *s = new_step(b, STEP_FILL);
    if (s == &b->dummy_step) return s;
    bool fits =
        pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 || pattern_bytes == 8;
    if (!fits || size_bytes % pattern_bytes != 0) {
        fail(b, CLG_ERROR_INTERNAL, "fills with a pattern of a wrong size", c->variant);
        return s;
    }
    s->to = to;
    s->size_bytes = size_bytes;
    memcpy(s->pattern, pattern, pattern_bytes);
    s->pattern_bytes = pattern_bytes;
    if (size_bytes > 0) append(&c->steps, &c->last_step, s);
    return s;
}

double step_bytes(const step *s)
{
    if (s->kind == STEP_COPY) return 2.0 * (double)s->size_bytes;
    if (s->kind == STEP_FILL) return (double)s->size_bytes;
    return s->bytes;
}

/* ---- arguments and ranges -------------------------------------------------------------------- */

#define FIRST_ARGS 8u /* capacity at first */

/* Appends an argument to s and returns it. The array doubles when it is full (8, 16, 32, 64);
 * earlier ones stay in the arena. */
static step_arg *new_arg(step_builder *b, step *s, arg_kind kind)
{
    step_arg *dummy = &b->dummy_arg;
    *dummy = (step_arg){0};
    if (b->status != CLG_OK || s == &b->dummy_step) return dummy;
    if (s->n_args == STEP_MAX_ARGS) {
        fail(b, CLG_ERROR_INTERNAL, "has too many kernel arguments", s->kernel.entry);
        return dummy;
    }
    bool full = s->n_args == 0 || (s->n_args >= FIRST_ARGS && (s->n_args & (s->n_args - 1)) == 0);
    if (full) {
        step_arg *grown =
            arena_alloc(b->memory, s->n_args ? 2u * s->n_args : FIRST_ARGS, sizeof *grown);
        if (!grown) {
            fail_memory(b);
            return dummy;
        }
        if (s->n_args > 0) memcpy(grown, s->args, s->n_args * sizeof *grown);
        s->args = grown;
    }
    step_arg *a = &s->args[s->n_args++];
    a->kind = kind;
    return a;
}

void step_arg_buffer(step_builder *b, step *s, operand o, clg_dtype dtype)
{
    step_arg *a = new_arg(b, s, ARG_BUFFER);
    a->buffer = o;
    a->dtype = dtype_size(dtype) > 0 ? dtype : CLG_UINT8;
}

void step_arg_int(step_builder *b, step *s, int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX) {
        if (b->status == CLG_OK) {
            b->status = error_set(CLG_ERROR_SHAPE, "kernel %s takes 32-bit sizes, not %" PRId64,
                                  s->kernel.entry ? s->kernel.entry : "", value);
        }
        return;
    }
    new_arg(b, s, ARG_INT)->as.i = (int32_t)value;
}

void step_arg_long(step_builder *b, step *s, int64_t value)
{
    new_arg(b, s, ARG_LONG)->as.l = value;
}

void step_arg_float(step_builder *b, step *s, double value)
{
    new_arg(b, s, ARG_FLOAT)->as.f = (float)value;
}

void step_arg_buffers(step_builder *b, step *s, size_t n, const step_buffer *buffers)
{
    for (size_t i = 0; i < n; i++) step_arg_buffer(b, s, buffers[i].at, buffers[i].dtype);
}

void step_arg_ints(step_builder *b, step *s, size_t n, const int64_t *values)
{
    for (size_t i = 0; i < n; i++) step_arg_int(b, s, values[i]);
}

void step_arg_longs(step_builder *b, step *s, size_t n, const int64_t *values)
{
    for (size_t i = 0; i < n; i++) step_arg_long(b, s, values[i]);
}

void step_arg_floats(step_builder *b, step *s, size_t n, const double *values)
{
    for (size_t i = 0; i < n; i++) step_arg_float(b, s, values[i]);
}

void step_arg_local(step_builder *b, step *s, size_t bytes)
{
    new_arg(b, s, ARG_LOCAL)->as.bytes = bytes;
}

void step_arg_key(step_builder *b, step *s, uint64_t salt)
{
    new_arg(b, s, ARG_KEY)->as.l = (int64_t)salt;
    s->draws = true;
}

void step_arg_fault(step_builder *b, step *s, int32_t code)
{
    new_arg(b, s, ARG_FAULT)->as.i = code;
}

/* Removes s from the list that starts at *first; returns whether it was in the list. */
static bool unlink_step(step **first, step **last, const step *s)
{
    step *before = NULL;
    for (step *at = *first; at; before = at, at = at->next) {
        if (at != s) continue;
        if (before) {
            before->next = s->next;
        } else {
            *first = s->next;
        }
        if (*last == s) *last = before;
        return true;
    }
    return false;
}

/* Removes a step that has no work from its candidate or packing. The step's memory stays valid: the
 * caller may still write to it. */
static void drop_step(step_builder *b, step *s)
{
    for (candidate *c = b->candidates; c; c = c->next) {
        if (unlink_step(&c->steps, &c->last_step, s)) break;
        bool found = false;
        for (uint32_t i = 0; i < c->n_packings && !found; i++) {
            step *last = NULL;
            found = unlink_step(&c->packings[i].steps, &last, s);
        }
        if (found) break;
    }
    s->next = NULL;
}

void step_range(step_builder *b, step *s, uint32_t n_dims, const uint64_t *global,
                const uint64_t *local)
{
    if (b->status != CLG_OK) return;
    if (n_dims < 1 || n_dims > 3) {
        fail(b, CLG_ERROR_INTERNAL, "requests an index space of no or too many dimensions",
             s->kernel.entry);
        return;
    }
    bool is_empty = false;
    s->n_dims = n_dims;
    for (uint32_t i = 0; i < n_dims; i++) {
        s->global[i] = global[i];
        s->local[i] = local ? local[i] : 0;
        if (global[i] == 0) is_empty = true;
        if (local && (local[i] == 0 || global[i] % local[i] != 0)) {
            fail(b, CLG_ERROR_INTERNAL, "global size is not a multiple of the local size",
                 s->kernel.entry);
        }
    }
    if (is_empty) drop_step(b, s);
}

/* ---- preludes -------------------------------------------------------------------------------- */

const char *prelude_text(step_builder *b, const char *format, ...)
{
    if (b->status != CLG_OK) return "";
    char words[2048];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(words, sizeof words, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof words) {
        fail(b, CLG_ERROR_INTERNAL, "is too long", "a prelude");
        return "";
    }
    strbuf lines;
    strbuf_init(&lines, 0);
    for (const char *at = words; *at;) {
        size_t n = strcspn(at, " ");
        const char *equals = memchr(at, '=', n);
        if (n > 0 && (!equals || equals == at)) {
            fail(b, CLG_ERROR_INTERNAL, "holds a word that is not NAME=value", "a prelude");
            break;
        }
        if (n > 0) {
            const size_t name_bytes = (size_t)(equals - at);
            strbuf_append(&lines, "#define ");
            strbuf_append_bytes(&lines, at, name_bytes);
            strbuf_append(&lines, " ");
            strbuf_append_bytes(&lines, equals + 1, n - name_bytes - 1);
            strbuf_append(&lines, "\n");
        }
        at += n + (at[n] == ' ');
    }
    if (b->status == CLG_OK) b->status = lines.status;
    const char *prelude = copy_text(b, strbuf_data(&lines));
    strbuf_deinit(&lines);
    return prelude ? prelude : "";
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool operand_fits(const candidate *c, operand o, size_t n_inputs, size_t n_outputs)
{
    switch (o.space) {
    case OPERAND_INPUT: return o.index < n_inputs;
    case OPERAND_OUTPUT: return o.index < n_outputs;
    case OPERAND_SCRATCH: return o.index < c->n_scratch;
    case OPERAND_PACKED: return o.index < c->n_packings;
    }
    return false;
}

/* Returns what is wrong with a step; NULL if nothing is. */
static const char *find_fault(const candidate *c, const step *s, size_t n_inputs, size_t n_outputs)
{
    const char *no_operand = "names an operand that is not there";
    switch (s->kind) {
    case STEP_KERNEL:
        if (s->n_dims == 0) return "has no index space";
        for (uint32_t i = 0; i < s->n_args; i++) {
            const step_arg *a = &s->args[i];
            if (a->kind == ARG_BUFFER && !operand_fits(c, a->buffer, n_inputs, n_outputs))
                return no_operand;
        }
        return NULL;
    case STEP_BLAS_GEMM:
        return operand_fits(c, s->gemm.a, n_inputs, n_outputs) &&
                       operand_fits(c, s->gemm.b, n_inputs, n_outputs) &&
                       operand_fits(c, s->gemm.c, n_inputs, n_outputs)
                   ? NULL
                   : no_operand;
    case STEP_COPY:
        if (!operand_fits(c, s->from, n_inputs, n_outputs)) return no_operand;
        return operand_fits(c, s->to, n_inputs, n_outputs) ? NULL : no_operand;
    case STEP_FILL: return operand_fits(c, s->to, n_inputs, n_outputs) ? NULL : no_operand;
    }
    return "is of no known kind";
}

static clg_status check_steps(const candidate *c, const step *first, size_t n_inputs,
                              size_t n_outputs)
{
    for (const step *s = first; s; s = s->next) {
        const char *fault = find_fault(c, s, n_inputs, n_outputs);
        if (!fault) continue;
        return error_set(CLG_ERROR_INTERNAL, "a step of %s (%s) %s", c->variant,
                         s->kernel.entry ? s->kernel.entry : "no kernel", fault);
    }
    return CLG_OK;
}

clg_status step_builder_check(const step_builder *b, size_t n_inputs, size_t n_outputs)
{
    if (b->status != CLG_OK) return b->status;
    for (const candidate *c = b->candidates; c; c = c->next) {
        CLG_TRY(check_steps(c, c->steps, n_inputs, n_outputs));
        for (uint32_t i = 0; i < c->n_packings; i++) {
            if (c->packings[i].input >= n_inputs) {
                return error_set(CLG_ERROR_INTERNAL, "%s packs an input that is not there",
                                 c->variant);
            }
            CLG_TRY(check_steps(c, c->packings[i].steps, n_inputs, n_outputs));
        }
    }
    return CLG_OK;
}

const char *step_fault_text(int code)
{
    static const char *const texts[] = {"nothing is wrong", "an index is out of range",
                                        "a count is out of range", "a value is out of range"};
    return code > 0 && (size_t)code < sizeof texts / sizeof texts[0] ? texts[code]
                                                                     : "data is out of range";
}
