/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a plan as text for `cltool inspect --plan` and tests: for each segment its steps with
 * launch sizes and buffers, its outputs and its memory.
 */
#include "base/strbuf.h"
#include "plan/plan.h"

#include <string.h>

static const char *const place_names[] = {"none",   "slab",   "in",      "out",
                                          "weight", "packed", "literal", "state"};

static void dump_buffers(const plan_step *s, strbuf *out)
{
    for (uint32_t i = 0; i < s->n_buffers; i++) {
        const plan_placement *p = &s->buffers[i];
        strbuf_printf(out, "%s%s%u", i ? ", " : "", place_names[p->kind], p->index);
        if (p->offset_bytes) strbuf_printf(out, "+%lld", (long long)p->offset_bytes);
    }
}

static void dump_range(const step *s, strbuf *out)
{
    strbuf_append(out, " [");
    for (uint32_t i = 0; i < s->n_dims; i++)
        strbuf_printf(out, "%s%llu", i ? "x" : "", (unsigned long long)s->global[i]);
    if (s->local[0]) {
        strbuf_append(out, " / ");
        for (uint32_t i = 0; i < s->n_dims; i++)
            strbuf_printf(out, "%s%llu", i ? "x" : "", (unsigned long long)s->local[i]);
    }
    strbuf_append(out, "]");
}

static void dump_step(const plan_context *context, const plan_step *s, size_t index, strbuf *out)
{
    const node *n = s->inner                            ? s->inner
                    : s->node < context->graph->n_nodes ? &context->graph->nodes[s->node]
                                                        : NULL;
    strbuf_printf(out, "  %4zu  %-18s %-24s", index, n ? n->op_type : "", s->variant);
    switch (s->what->kind) {
    case STEP_KERNEL:
        strbuf_printf(out, " %s.%s", s->what->kernel.source, s->what->kernel.entry);
        dump_range(s->what, out);
        break;
    case STEP_BLAS_GEMM:
        strbuf_printf(out, " clblast m=%lld n=%lld k=%lld batch=%lld", (long long)s->what->gemm.m,
                      (long long)s->what->gemm.n, (long long)s->what->gemm.k,
                      (long long)s->what->gemm.batch);
        break;
    case STEP_COPY: strbuf_printf(out, " copy %zu bytes", s->what->size_bytes); break;
    case STEP_FILL: strbuf_printf(out, " fill %zu bytes", s->what->size_bytes); break;
    }
    strbuf_append(out, "  (");
    dump_buffers(s, out);
    strbuf_append(out, ")");
    if (n && n->name[0]) strbuf_printf(out, "  %s", n->name);
    strbuf_append(out, "\n");
}

static void dump_ports(const plan_context *context, const char *what, const plan_port *ports,
                       size_t n, strbuf *out)
{
    for (size_t i = 0; i < n; i++) {
        char dims[SHAPE_TEXT_BYTES];
        value_id v = ports[i].value; /* values of the planner have no name */
        strbuf_printf(out, "  %s %s%s%s%s\n", what,
                      v < context->graph->n_values ? context->graph->values[v].name : "",
                      v < context->graph->n_values ? " " : "", dtype_name(ports[i].dtype),
                      shape_text(&ports[i].dims, dims));
    }
}

static void dump_segment(const plan_context *context, const plan_segment *segment, strbuf *out)
{
    strbuf_printf(out, "segment %u: %zu steps\n", segment->depth, segment->n_steps);
    for (size_t i = 0; i < segment->n_steps; i++) dump_step(context, &segment->steps[i], i, out);
    dump_ports(context, "host reads", segment->reads, segment->n_reads, out);
    dump_ports(context, "output", segment->outputs, segment->n_outputs, out);
    size_t total = 0;
    for (size_t i = 0; i < segment->n_slabs; i++) total += segment->slab_bytes[i];
    strbuf_printf(out, "  %zu slabs of %zu bytes; largest live set %zu bytes; literals %zu bytes\n",
                  segment->n_slabs, total, segment->live_bytes, segment->literal_bytes);
    for (const plan_segment *child = segment->children; child; child = child->sibling)
        dump_segment(context, child, out);
}

void plan_dump(const plan_context *context, const plan *p, strbuf *out)
{
    dump_segment(context, p->root, out);
}
