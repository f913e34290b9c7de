/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembles the source text of a program from a kernel_ref: one string, which depends only on the
 * ref, and is compiled and hashed.
 */
#include "ocl/program.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "step/kernel_source.h"

#include <string.h>

#ifdef CLG_DEVELOPER
#include <stdio.h>

/* Developer builds: appends a kernel file from $CLG_KERNEL_DIR, its includes expanded, instead of
 * the embedded one. *out_found stays false when there is none. */
static clg_status append_file(strbuf *t, const char *folder, const char *name, int depth,
                              bool *out_found)
{
    char *path = NULL, *data = NULL;
    size_t n_bytes;
    CLG_TRY(file_join(folder, name, &path));
    *out_found = file_exists(path);
    clg_status status = *out_found ? file_read(path, 1u << 20, &data, &n_bytes) : CLG_OK;
    memory_free(path);
    if (status != CLG_OK || !*out_found) return status;
    strbuf_printf(t, "#line 1 \"%s\"\n", name);
    unsigned line = 1;
    for (const char *at = data; *at && status == CLG_OK; line++) {
        const char *end = strchr(at, '\n');
        size_t n = end ? (size_t)(end - at) + 1 : strlen(at);
        char included[128];
        bool found = false;
        if (depth < 4 && sscanf(at, "#include \"%127[^\"\n]\"", included) == 1) {
            status = append_file(t, folder, included, depth + 1, &found);
            strbuf_printf(t, "#line %u \"%s\"\n", line + 1, name);
        }
        if (!found) strbuf_append_bytes(t, at, n);
        at += n;
    }
    memory_free(data);
    return status;
}

static clg_status append_override(strbuf *t, const char *source, bool *out_found)
{
    const char *folder = env_get("CLG_KERNEL_DIR");
    const kernel_source *embedded = kernel_source_find(source);
    *out_found = false;
    return folder && embedded ? append_file(t, folder, embedded->path, 0, out_found) : CLG_OK;
}
#endif

static clg_status append_source(strbuf *t, const char *source)
{
#ifdef CLG_DEVELOPER
    bool found;
    CLG_TRY(append_override(t, source, &found));
    if (found) return CLG_OK;
#endif
    const kernel_source *embedded = kernel_source_find(source);
    if (!embedded) return error_set(CLG_ERROR_INTERNAL, "there is no kernel file '%s'", source);
    strbuf_append_bytes(t, embedded->text, embedded->text_bytes);
    return CLG_OK;
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* Returns where "__kernel void NAME(" begins if `line` is the first line of a kernel: this line, or
 * the next one after WORK_GROUP_SIZE (cl/common/work_group.clh). NULL for other lines. */
static const char *kernel_line(const char *line)
{
    if (begins(line, "WORK_GROUP_SIZE(")) {
        const char *end = strchr(line, '\n');
        if (!end) return NULL;
        line = end + 1;
    }
    return begins(line, "__kernel void ") ? line : NULL;
}

static bool is_named(const char *kernel, const char *name)
{
    kernel += strlen("__kernel void ");
    return begins(kernel, name) && kernel[strlen(name)] == '(';
}

/* Returns true if a kernel's body both opens and closes on this line: `..., int n) { body(n);
 * }`. */
static bool has_whole_body(const char *line, const char *end)
{
    const char *open = memchr(line, '{', (size_t)(end - line));
    return open && end - open > 2 && end[-1] == '\n' && end[-2] == '}';
}

/* Removes all kernels from the text except the one of this name. Their lines become empty, so that
 * line numbers stay the same; preprocessor conditions stay. A kernel begins at the first
 * column and ends with a brace there, or on the line that opens its body (clang-format;
 * tests/lint/kernels.sh). Reason: compilers spend time on every kernel of a program, PoCL again
 * when its binary is read. */
static void keep_one_kernel(strbuf *t, const char *name)
{
    const char *from = t->data;
    char *to = t->data;
    bool dropping = false, in_body = false;
    while (from && *from) {
        const char *end = next_line(from), *kernel = dropping ? NULL : kernel_line(from);
        if (kernel) {
            dropping = !is_named(kernel, name);
            in_body = false;
        }
        if (!dropping || (*from == '#' && !begins(from, "#pragma"))) {
            memmove(to, from, (size_t)(end - from));
            to += end - from;
        } else {
            *to++ = '\n';
        }
        if (dropping && (begins(from, "}\n") || (!in_body && has_whole_body(from, end))))
            dropping = false;
        in_body = in_body || memchr(from, '{', (size_t)(end - from)) != NULL;
        from = end;
    }
    if (!to) return;
    *to = '\0';
    t->size_bytes = (size_t)(to - t->data);
}

static void append_parameters(strbuf *t, const char *packed)
{
    size_t n_buffers = 0;
    for (const char *at = packed; *at; at++)
        if (*at == 'b') strbuf_printf(t, "__global void *b%zu, ", n_buffers++);
    strbuf_append(t, "__global volatile int *begun, const packed_args numbers");
}

static void append_arguments(strbuf *t, const char *packed)
{
    size_t n_buffers = 0, n_scalars = 0;
    for (const char *at = packed; *at; at++) {
        if (at > packed) strbuf_append(t, ", ");
        switch (*at) {
        case 'b': strbuf_printf(t, "b%zu", n_buffers++); break;
        case 'i': strbuf_printf(t, "(int)numbers.n[%zu]", n_scalars++); break;
        case 'f': strbuf_printf(t, "as_float((int)numbers.n[%zu])", n_scalars++); break;
        default: strbuf_printf(t, "numbers.n[%zu]", n_scalars++); break;
        }
    }
}

static size_t count_scalars(const char *packed)
{
    size_t n = 0;
    for (; *packed; packed++) n += *packed != 'b';
    return n;
}

/* Appends the text `from` with its kernel turned into a function, in each #if branch that defines
 * it, and then a kernel of the same name and attribute that unpacks the scalar arguments and calls
 * it. Before, the kernel writes its last number, that of the step, to begun[1], unless begun is
 * NULL: from this other kernels see that the step has begun (ocl/queue/spin_steps.c). */
static clg_status pack_args(strbuf *t, const char *from, const kernel_ref *ref)
{
    static const char head[] = "__kernel void ";
    const char *attribute = "", *next;
    int n_attribute = 0, n_found = 0;
    for (const char *line = from; *line; line = next) {
        const char *kernel = kernel_line(line);
        if (kernel && is_named(kernel, ref->entry)) {
            if (kernel > line) {
                attribute = line;
                n_attribute = (int)(kernel - line);
                strbuf_append(t, "\n");
            }
            strbuf_append(t, "static inline __attribute__((always_inline)) void called_");
            line = kernel + strlen(head);
            n_found++;
        }
        next = next_line(line);
        strbuf_append_bytes(t, line, (size_t)(next - line));
    }
    if (n_found == 0)
        return error_set(CLG_ERROR_INTERNAL, "'%s' has no kernel '%s'", ref->source, ref->entry);
    strbuf_printf(t, "typedef struct packed_args { long n[%zu]; } packed_args;\n%.*s%s%s(",
                  count_scalars(ref->packed) + 1, n_attribute, attribute, head, ref->entry);
    append_parameters(t, ref->packed);
    strbuf_printf(t,
                  ")\n{\n    const int step = (int)numbers.n[%zu];\n"
                  "    if (begun && begun[1] != step) begun[1] = step;\n    called_%s(",
                  count_scalars(ref->packed), ref->entry);
    append_arguments(t, ref->packed);
    strbuf_append(t, ");\n}\n");
    return CLG_OK;
}

/* Replaces the text by its version with packed arguments (pack_args). */
static clg_status replace_by_packed(strbuf *t, const kernel_ref *ref)
{
    strbuf plain = *t;
    strbuf_init(t, 0);
    clg_status status = plain.status;
    if (status == CLG_OK && plain.data) status = pack_args(t, plain.data, ref);
    strbuf_deinit(&plain);
    return status;
}

/* Appends what makes a kernel see the whole NDRange in launches of parts of it. */
static clg_status append_part(strbuf *t, uint32_t part)
{
    const kernel_source *functions = kernel_source_common("launch_part");
    if (!functions) return error_set(CLG_ERROR_INTERNAL, "there is no header 'launch_part'");
    strbuf_printf(t, "#define P_PART_DIM %u\n#define P_PART_OTHER %u\n", part - 1,
                  LAUNCH_PART_OTHER(part - 1));
    strbuf_append_bytes(t, functions->text, functions->text_bytes);
    return CLG_OK;
}

clg_status program_text(const kernel_ref *ref, strbuf *t)
{
    strbuf_init(t, 0);
    clg_status status = ref->part ? append_part(t, ref->part) : CLG_OK;
    if (ref->prelude && ref->prelude[0]) {
        strbuf_append(t, ref->prelude);
        strbuf_append(t, "\n");
    }
    if (status == CLG_OK && ref->body) {
        const kernel_source *types = kernel_source_common("types");
        if (types) strbuf_append_bytes(t, types->text, types->text_bytes);
        strbuf_printf(t, "#line 1 \"generated: %s\"\n", ref->source);
        strbuf_append(t, ref->body);
    } else if (status == CLG_OK) {
        status = append_source(t, ref->source);
        if (status == CLG_OK && t->status == CLG_OK) keep_one_kernel(t, ref->entry);
    }
    if (status == CLG_OK && ref->packed) status = replace_by_packed(t, ref);
    if (status == CLG_OK) status = t->status;
    if (status != CLG_OK) strbuf_deinit(t);
    return status;
}
