/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of a context: text in, cl_program out; from memory, from the store, or from the driver's compiler.
 *
 * A binary is worth storing only after its kernels ran: drivers compile late, PoCL once for each (kernel, local
 * size) at its first launch. So each program keeps the set of *launch forms* seen, the store keeps the set that
 * a binary has inside, and a program with forms of its own is written out anew.
 *
 * PoCL gives a program's binary as it was at the first reading, or as it was given: later forms are not in it. But
 * a new program of the same text has them all, out of PoCL's own cache, so there the text is kept.
 */
#ifndef CLG_OCL_PROGRAM_H
#define CLG_OCL_PROGRAM_H

#include "base/hash.h"
#include "base/map.h"
#include "base/threads.h"
#include "ocl/cl_api.h"
#include "ocl/ocl.h"

struct text;

typedef struct program {
    hash128 key;
    uint64_t serial; /* no other program of the process has it */
    char *name;      /* of the ref that asked first: "gemm_simd" */
    cl_program handle;
    bool building;
    bool searched;  /* for in the store */
    bool is_frozen; /* the driver will give the binary that it gave or got before */
    char *source;   /* NULL where it is not needed again */
    size_t source_bytes;
    char *
        binary; /* from the compile helper, until the program is built from it; the trials' lock guards it */
    size_t binary_bytes;
    uint64_t *forms; /* launch forms seen; the first n_stored_forms are in the stored binary */
    size_t n_forms, n_stored_forms, forms_capacity;
} program;

typedef struct program_table {
    mutex lock;    /* guards all of it; not held while a driver compiles */
    mutex storing; /* one thread writes binaries at a time */
    condition changed;
    program **items;
    size_t n, capacity;
    map index; /* key -> position in items */
    /* Launch forms met that no binary in the store has; how many of them there were at the last storing, and at
     * the last call of ocl_programs_store_when_settled. */
    atomic_size_t n_new_forms, n_stored_forms, n_settled_forms;
} program_table;

clg_status program_table_init(program_table *t);
void program_table_deinit(program_table *t);

/* The program of a ref, built; it lives as long as the context. Two threads that ask for one text build it
 * once. */
clg_status program_get(ocl_context *c, const kernel_ref *ref, program **out_program);
/* The same without compiling: it has no handle when it is not in the store. */
clg_status program_find(ocl_context *c, const kernel_ref *ref, program **out_program);
/* NULL while it is not built. */
cl_program program_handle(ocl_context *c, const program *p);
/* The key of the program of this whole text. */
hash128 program_key(const ocl_context *c, const struct text *source);
/* Builds one that program_find gave. */
clg_status program_build(ocl_context *c, program *p, const char *entry);
/* Whether program_get would find it built. */
clg_status program_is_built(ocl_context *c, const kernel_ref *ref, bool *out_built);
/* Writes p's binary out when the store lacks forms that it was launched in. */
void program_store(ocl_context *c, program *p);
/* The same of all programs, several at once where helpers read the binaries (program_batch.c). */
void programs_store_all(ocl_context *c);
/* Whether a kernel of the program was launched in this form, or its stored binary has it compiled. */
bool program_has_form(ocl_context *c, const program *p, uint64_t form);
/* A kernel of the program is about to be launched in this form. */
void program_note_form(ocl_context *c, program *p, uint64_t form);

/* The whole text of a ref: prelude, then the embedded source, or the common types and the generated body. */
clg_status program_text(const kernel_ref *ref, struct text *out_text);

#endif
