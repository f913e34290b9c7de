/* SPDX-License-Identifier: Apache-2.0
 *
 * Returns the cl_program of a source text: from the context's memory, from the disk cache or from
 * the driver's compiler.
 *
 * A binary is worth caching only after its kernels have run, because drivers compile late: PoCL
 * compiles a kernel for each local size at its first launch. So each program has the set of its
 * *launch configurations* (`form` in names): hashes of the kernel's name and, on such drivers, of
 * its local size and of which global sizes are 65536 or more. A cache entry lists the
 * configurations that its binary contains, and is written again when the program has others.
 *
 * PoCL returns a program's binary as it was when it was first read or loaded, without later
 * configurations. But a new program of the same source has them all, from PoCL's own cache; for
 * this the source is kept there.
 */
#ifndef CLG_OCL_PROGRAM_H
#define CLG_OCL_PROGRAM_H

#include "base/hash.h"
#include "base/hash_map.h"
#include "base/threads.h"
#include "ocl/cl_api.h"
#include "ocl/ocl.h"

struct strbuf;

typedef struct ocl_program {
    hash128 key;
    uint64_t serial; /* unique in the process */
    char *name;      /* of the ref that requested it first, such as "gemm_simd" */
    cl_program handle;
    bool baseline;  /* built without optimisation */
    bool is_tried;  /* compiled in the helper for its launch configurations (tiers.c) */
    bool building;  /* a thread builds it, others wait */
    bool searched;  /* looked up in the disk cache */
    bool is_frozen; /* its binary was read or loaded, and may lack later configurations (PoCL) */
    char *source;   /* NULL before it is set, and once it is not needed any more */
    size_t source_bytes;
    /* Binary from the compile helper, until the program is built from it; guarded by the trials'
     * lock. */
    char *binary;
    size_t binary_bytes;
    /* Launch configurations so far; the first n_stored_forms are in the cache entry. */
    uint64_t *forms;
    size_t n_forms, n_stored_forms, forms_capacity;
} ocl_program;

typedef struct program_table {
    mutex lock;        /* guards the whole table; not held while a driver compiles */
    mutex storing;     /* one thread writes binaries at a time */
    condition changed; /* a build has ended */
    ocl_program **items;
    size_t count, capacity;
    hash_map index; /* key -> position in items */
    /* Number of launch configurations recorded that were not loaded from the cache; its values at
     * the last write to the cache and at the last call of ocl_programs_save_when_settled. */
    atomic_size_t n_new_forms, n_stored_forms, n_settled_forms;
} program_table;

clg_status program_table_init(program_table *t);
void program_table_deinit(program_table *t);

/* Returns the built program of a ref, which lives as long as the context. If several threads
 * request one source text, it is built once. */
clg_status program_get(ocl_context *ocl, const kernel_ref *ref, ocl_program **out_program);
/* As program_get, without compiling: the program has no handle when it is not cached. */
clg_status program_find(ocl_context *ocl, const kernel_ref *ref, ocl_program **out_program);
/* As program_find, of the optimised program of a text, without loading it: calls no OpenCL
 * function. name: of the ref that requests it. */
clg_status program_find_text(ocl_context *ocl, const char *name, const char *entry,
                             const char *source, size_t source_bytes, ocl_program **out_program);
/* Returns the key of the program whose complete text is `source`. */
hash128 program_key(const ocl_context *ocl, const struct strbuf *source, bool baseline);
/* Builds a program that program_find returned, unless it is built. */
clg_status program_build(ocl_context *ocl, ocl_program *p, const char *entry);
/* Returns whether the program of a ref is built already. */
clg_status program_is_built(ocl_context *ocl, const kernel_ref *ref, bool *out_built);
/* Records that a helper has compiled p for a launch in this configuration, and that p can be
 * stored, although it is not built here. */
void program_note_trial(ocl_context *ocl, ocl_program *p, uint64_t form);
/* Writes p's binary to the cache if the cache entry lacks launch configurations of p. */
void program_save(ocl_context *ocl, ocl_program *p);
/* Returns whether this launch configuration is recorded for p: launched, or in the cache entry. */
bool program_has_form(ocl_context *ocl, const ocl_program *p, uint64_t form);
/* Records that a kernel of p is about to be launched in this configuration. */
void program_note_form(ocl_context *ocl, ocl_program *p, uint64_t form);

/* Returns the complete text of a ref: prelude, then the embedded source, or the common types and
 * the generated body; for launches of parts, their functions first. */
clg_status program_text(const kernel_ref *ref, struct strbuf *out_text);

#endif
