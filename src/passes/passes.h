/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph passes: rewrites of a clone of the model's graph for one kernel class. Each pass is a
 * function in a file pass_<name>.c; pipeline.c lists them in order. Passes preserve semantics: the
 * graph's inputs and outputs keep their names and dtypes.
 */
#ifndef CLG_PASSES_PASSES_H
#define CLG_PASSES_PASSES_H

#include "base/strbuf.h"
#include "ops/core/op.h"

typedef struct pass_options {
    clg_kernel_class kernel_class; /* simd or simt */
    /* channels per block in channel-blocked layout, the lanes of the SIMD class's register tile; 0
     * if this layout is not used */
    int lanes;
    uint64_t max_buffer_bytes; /* the device's largest buffer; 0: no limit */
    name_list disabled;        /* names of passes not to run */
    bool fp16;                 /* store values as float16 (precision fp16) */
    name_list keep_fp32;       /* nodes that stay float32, by name; * and ? are wildcards */
} pass_options;

/* A pass: its name for options, and the function that rewrites a graph in place. */
typedef struct pass {
    const char *name;
    const char *what; /* one line, for help and docs */
    clg_status (*run)(graph *g, const pass_options *options);
} pass;

extern const pass passes[];
extern const size_t n_passes;

/* Clones `model` into *out_graph, runs the passes that are not disabled, then checks and resolves
 * the result. INVALID_ARGUMENT, with the list of valid names, for an unknown name in `disabled`. */
clg_status passes_run(const graph *model, const pass_options *options, graph **out_graph);

#endif
