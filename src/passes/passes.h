/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph passes: rewrites of a clone of the model's graph for one device class. Each pass is a file
 * pass_<name>.c with one function; pipeline.c lists them in order. A pass preserves semantics:
 * names and dtypes of inputs and outputs never change, and values that are outputs keep their
 * names.
 */
#ifndef CLG_PASSES_PASSES_H
#define CLG_PASSES_PASSES_H

#include "base/strbuf.h"
#include "ops/core/op.h"

typedef struct pass_options {
    clg_kernel_class kernel_class; /* simd or simt */
    /* channels of a block in channel-blocked layout: the lanes of the SIMD class's register
     * tile; 0: no such layout */
    int lanes;
    name_list disabled;  /* names of passes not to run */
    bool fp16;           /* precision fp16 */
    name_list keep_fp32; /* names of nodes that stay float32: '*' any characters, '?' one */
} pass_options;

typedef struct pass {
    const char *name;
    const char *what; /* one line, for help and docs */
    clg_status (*run)(graph *g, const pass_options *options);
} pass;

extern const pass passes[];
extern const size_t n_passes;

/* Clones `model` and runs the passes that are not disabled; the result is checked and resolved. An
 * unknown name in `disabled` is an INVALID_ARGUMENT that lists the valid names. */
clg_status passes_run(const graph *model, const pass_options *options, graph **out_graph);

#endif
