/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the nodes that count right predictions. See metrics.h.
 */
#include "train/metrics.h"

#include "graph/graph_writer.h"

/* Returns the number of elements of a bool tensor that are true. */
static value_id count(graph_writer *w, value_id v)
{
    const value_id numbers = writer_set_int(w, WRITER_ADD(w, "Cast", v), "to", CLG_INT64);
    return writer_reduce_all(w, "ReduceSum", numbers);
}

/* Returns for each target whether it is not ignore_index. */
static value_id find_counted(graph_writer *w, value_id target, int64_t ignore_index)
{
    const value_id is = WRITER_ADD(w, "Equal", target, writer_int(w, ignore_index));
    return WRITER_ADD(w, "Not", is);
}

clg_status metrics_add(graph *g, const clg_loss_options *options, const loss_values *values)
{
    graph_writer w = {.graph = g};
    const value_id best = WRITER_ADD(&w, "ArgMax", values->y);
    writer_set_int(&w, best, "axis", 1);
    writer_set_int(&w, best, "keepdims", 0);
    value_id right = WRITER_ADD(&w, "Equal", best, values->target), n_counted;
    if (options->has_ignore_index) {
        const value_id counted = find_counted(&w, values->target, options->ignore_index);
        right = WRITER_ADD(&w, "And", right, counted);
        n_counted = count(&w, counted);
    } else {
        n_counted = WRITER_ADD(&w, "Size", values->target);
    }
    writer_output(&w, count(&w, right), "right");
    writer_output(&w, n_counted, "counted");
    return w.status;
}
