/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of lowering, as plain data: candidates, each a list of steps that compute a node's
 * outputs from its inputs. Nothing here holds an OpenCL handle. Operands are named relative to the
 * node (input 0, output 0, scratch 1, packed 0); the planner binds them to memory. See decision 1.
 */
#ifndef CLG_STEP_STEP_H
#define CLG_STEP_STEP_H

#include "base/hash_map.h"
#include "base/memory.h"
#include "tensor/dtype.h"

/* ---- operands -------------------------------------------------------------------------------- */

typedef enum operand_space {
    OPERAND_INPUT,   /* input of the node */
    OPERAND_OUTPUT,  /* output of the node */
    OPERAND_SCRATCH, /* memory for the candidate's own use, candidate.scratch_bytes[index] */
    OPERAND_PACKED   /* a weight in another form, candidate.packings[index] */
} operand_space;

typedef struct operand {
    operand_space space;
    uint32_t index;
    int64_t offset_elems; /* added to the operand's own offset */
} operand;

/* ---- kernels --------------------------------------------------------------------------------- */

/* Identifies a kernel by its source: prelude (#defines), then the embedded file `source` (or, for
 * generated code, `body` after the embedded common files), and the entry point `entry`. Equal refs
 * are built once. */
typedef struct kernel_ref {
    const char *source; /* stem of cl/<source>.cl; with `body`, a name for messages and profiles */
    const char *entry;
    const char *prelude; /* "#define P_ACT 1\n..." */
    const char *body;    /* NULL, or generated OpenCL C in place of the embedded source */
    /* NULL, or for a kernel that takes its scalar arguments packed in one struct: a letter for each
     * parameter of its source: b (buffer), i (int), l (long), f (float). A launch then passes the
     * buffers, followed by an array of longs with all scalars, both in this order, floats as their
     * bits. */
    const char *packed;
} kernel_ref;

typedef enum arg_kind {
    /* two kernel arguments: the cl_mem, and a long with its offset in elements of `dtype` */
    ARG_BUFFER,
    ARG_INT,   /* int */
    ARG_LONG,  /* long */
    ARG_FLOAT, /* float */
    ARG_LOCAL, /* local memory, bytes */
    /* ulong: a key for random numbers, derived from the session's seed; different in each launch */
    ARG_KEY,
    /* two: __global int *fault, int code. A kernel that finds invalid data (an index out of range)
     * writes `code` to fault[0] and the offending value to fault[1], and continues with a safe
     * value */
    ARG_FAULT
} arg_kind;

/* Codes of ARG_FAULT: the kind of invalid data. */
typedef enum step_fault {
    STEP_FAULT_NONE = 0,
    STEP_FAULT_INDEX = 1,
    STEP_FAULT_COUNT = 2,
    STEP_FAULT_VALUE = 3
} step_fault;
/* Returns the text of a step_fault for messages, such as "an index is out of range". */
const char *step_fault_text(int code);

typedef struct step_arg {
    arg_kind kind;
    operand buffer;
    clg_dtype dtype; /* of ARG_BUFFER: the unit of its offset */
    union {
        int32_t i;
        int64_t l;
        float f;
        size_t bytes;
    } as;
} step_arg;

/* An operand to pass as a buffer argument, and the dtype that its offset counts. */
typedef struct step_buffer {
    operand at;
    clg_dtype dtype;
} step_buffer;

/* ---- steps ----------------------------------------------------------------------------------- */

typedef enum step_kind {
    STEP_KERNEL,
    STEP_BLAS_GEMM, /* C = alpha op(A) op(B) + beta C through CLBlast, float32, dense */
    STEP_COPY,      /* size_bytes from operand to operand */
    STEP_FILL       /* a pattern of 1, 2, 4 or 8 bytes over size_bytes */
} step_kind;

#define STEP_MAX_ARGS 64

typedef struct gemm_problem {
    operand a, b, c; /* row-major; a: [m,k] or, transposed, [k,m]; b: [k,n] or [n,k]; c: [m,n] */
    int64_t m, n, k;
    int64_t lda, ldb, ldc; /* elements from row to row */
    int64_t batch;         /* number of GEMMs, at the strides below; stride 0: the same */
    int64_t stride_a, stride_b, stride_c;
    bool trans_a, trans_b;
    float alpha, beta;
} gemm_problem;

typedef struct step {
    step_kind kind;
    const char *label; /* for profiles: "gemm_simd 12x32"; NULL: the kernel's entry */
    kernel_ref kernel; /* STEP_KERNEL */
    step_arg *args;
    uint32_t n_args;
    bool draws;                   /* has an ARG_KEY */
    uint32_t n_dims;              /* 1..3 */
    uint64_t global[3], local[3]; /* work-items; local all 0: the driver chooses */
    gemm_problem gemm;            /* STEP_BLAS_GEMM */
    operand from, to; /* STEP_COPY; STEP_FILL uses `to`; offsets in bytes (offset_elems of uint8) */
    size_t size_bytes;
    uint8_t pattern[8];
    uint32_t pattern_bytes;
    /* Of a packing: the range of bytes of its input that this step reads, so that a large input can
     * be transferred to the device in pieces; window_bytes 0: all of it. */
    size_t window_offset, window_bytes;
    double flops, bytes; /* of work, for profiles; 0 when not counted */
    struct step *next;
} step;

/* A weight in packed form. A constant weight is packed once per (weight, recipe); a computed one by
 * the packing's steps, run before the candidate's, into scratch. The steps read the weight as
 * OPERAND_INPUT `input` and write OPERAND_PACKED with this packing's index. */
typedef struct packing {
    uint32_t input;
    const char *recipe; /* names layout and parameters: "gemm_b nr=32"; never activation shapes */
    size_t size_bytes;
    step *steps;
} packing;

#define CANDIDATE_MAX_SCRATCH 64
#define CANDIDATE_MAX_PACKINGS 8

/* One implementation of a node. */
typedef struct candidate {
    const char *variant; /* "gemm_simd", "blas": the name in the tuning table and in profiles */
    step *steps, *last_step;
    size_t scratch_bytes[CANDIDATE_MAX_SCRATCH];
    uint32_t n_scratch;
    packing packings[CANDIDATE_MAX_PACKINGS];
    uint32_t n_packings;
    bool uses_blas;
    bool requires_selftest; /* if self-tests are on: not used without a test */
    bool rejected;          /* found to be wrong on this device: never used */
    bool crashes;           /* rejected because the driver's compiler crashes on it */
    bool last_resort; /* slow, for drivers that reject the others; not offered for measurement */
    double cost;      /* estimated cycles, to compare candidates of one node; 0 when unknown */
    /* Where cost is 0: estimated cycles of its tiling, which tests/bench/cost_model checks; 0 when
     * unknown. */
    double tiling_cost;
    struct candidate *next;
} candidate;

/* ---- texts of kernels --------------------------------------------------------------------------
 * A collection that keeps each kernel text once, since steps of many plans hold the same few. Texts
 * live as long as the collection. Not thread-safe. */
typedef struct step_texts {
    arena memory;
    hash_map index;     /* text -> its address */
    hash_map generated; /* key of the generator's input -> address of the text */
} step_texts;           /* all zeros is valid and empty */

/* Returns the kept string that equals `string`; NULL when memory runs out. */
const char *step_texts_keep(step_texts *t, const char *string);
/* step_texts_keep_as: as step_texts_keep, and records the string under a key, the input that it was
 * generated from, so that it is generated only once. step_texts_find: returns the string recorded
 * under a key; NULL when there is none. */
const char *step_texts_find(const step_texts *t, const void *key, size_t key_bytes);
const char *step_texts_keep_as(step_texts *t, const void *key, size_t key_bytes,
                               const char *string);
void step_texts_deinit(step_texts *t);

/* Returns a copy of one step in `memory`, not linked to a next step. Its strings are kept in
 * `texts`, or copied when that is NULL. NULL when memory runs out. */
step *step_clone(const step *s, arena *memory, step_texts *texts);

/* ---- building candidates ------------------------------------------------------------------------
 * Builder calls never fail one by one: the first failure stays in builder->status, later calls
 * do nothing and return a harmless dummy. Everything lives in the builder's arena. */
typedef struct step_builder {
    arena *memory;
    step_texts *texts; /* where texts of kernels are kept; NULL: in the arena */
    candidate *candidates, *last_candidate;
    clg_status status;
    candidate dummy_candidate;
    step dummy_step;
    step_arg dummy_arg;
} step_builder;

void step_builder_init(step_builder *b, arena *memory, step_texts *texts);
/* Appends a candidate. Where costs do not decide, earlier ones are preferred. */
candidate *step_candidate(step_builder *b, const char *variant);
operand step_scratch(step_builder *b, candidate *c, size_t size_bytes);
/* Adds a packed form of the constant or computed input `input` and returns its operand; fill in its
 * steps with step_pack_kernel. */
operand step_packing(step_builder *b, candidate *c, uint32_t input, const char *recipe,
                     size_t size_bytes);

/* Appends a kernel step to the candidate or to one of its packings. prelude: from prelude_text. */
step *step_kernel(step_builder *b, candidate *c, const char *source, const char *entry,
                  const char *prelude);
step *step_kernel_generated(step_builder *b, candidate *c, const char *name, const char *entry,
                            const char *prelude, const char *body);
step *step_pack_kernel(step_builder *b, candidate *c, operand packed, const char *source,
                       const char *entry, const char *prelude);
step *step_blas_gemm(step_builder *b, candidate *c, const gemm_problem *problem);
step *step_copy(step_builder *b, candidate *c, operand from, operand to, size_t size_bytes);
step *step_fill(step_builder *b, candidate *c, operand to, size_t size_bytes, const void *pattern,
                uint32_t pattern_bytes);

/* Appends a buffer argument. Its offset counts elements of `dtype`, or bytes for elements below a
 * byte. */
void step_arg_buffer(step_builder *b, step *s, operand o, clg_dtype dtype);
/* Appends an int; CLG_ERROR_SHAPE when the value does not fit one. */
void step_arg_int(step_builder *b, step *s, int64_t value);
void step_arg_long(step_builder *b, step *s, int64_t value);
void step_arg_float(step_builder *b, step *s, double value);
/* The same for n arguments, in the order of the array. */
void step_arg_buffers(step_builder *b, step *s, size_t n, const step_buffer *buffers);
void step_arg_ints(step_builder *b, step *s, size_t n, const int64_t *values);
void step_arg_longs(step_builder *b, step *s, size_t n, const int64_t *values);
void step_arg_floats(step_builder *b, step *s, size_t n, const double *values);

/* Append the arguments that are listed: STEP_INTS(b, s, m, n, k), and operands with their dtypes:
 * STEP_BUFFERS(b, s, {operand_input(0), dtype}, {operand_output(0), dtype}). The order of the
 * arguments is the kernel's; the order in which C evaluates them is not defined, so at most one of
 * them may have an effect on the builder. */
#define STEP_LIST(f, b, s, type, ...)                                                              \
    f(b, s, sizeof((const type[]){__VA_ARGS__}) / sizeof(type), (const type[]){__VA_ARGS__})
#define STEP_BUFFERS(b, s, ...) STEP_LIST(step_arg_buffers, b, s, step_buffer, __VA_ARGS__)
#define STEP_INTS(b, s, ...) STEP_LIST(step_arg_ints, b, s, int64_t, __VA_ARGS__)
#define STEP_LONGS(b, s, ...) STEP_LIST(step_arg_longs, b, s, int64_t, __VA_ARGS__)
#define STEP_FLOATS(b, s, ...) STEP_LIST(step_arg_floats, b, s, double, __VA_ARGS__)

void step_arg_local(step_builder *b, step *s, size_t bytes);
/* Appends a key for random numbers. salt distinguishes it from those of other nodes. */
void step_arg_key(step_builder *b, step *s, uint64_t salt);
void step_arg_fault(step_builder *b, step *s, int32_t code);
/* Sets the NDRange. global must be multiples of local where local is given; a zero size removes the
 * step. */
void step_range(step_builder *b, step *s, uint32_t n_dims, const uint64_t *global,
                const uint64_t *local);

/* Returns the builder's status; if that is CLG_OK, checks that every step has an NDRange and names
 * existing operands. */
clg_status step_builder_check(const step_builder *b, size_t n_inputs, size_t n_outputs);

static inline operand operand_input(uint32_t i) { return (operand){OPERAND_INPUT, i, 0}; }
static inline operand operand_output(uint32_t i) { return (operand){OPERAND_OUTPUT, i, 0}; }

/* Makes steps pass their scalar arguments packed in one struct, where the kernel could be a plain
 * function called by work-groups of one work-item: for drivers whose launches take longer with each
 * argument (QUIRK_COSTLY_ARGUMENTS). */
clg_status step_builder_pack_args(step_builder *b);

/* Returns a prelude, "#define NAME value" lines in the order given, from words NAME=value:
 * "P_ACT=%d P_T=float". A value may be empty and contains no space. */
const char *prelude_text(step_builder *b, const char *format, ...) CLG_PRINTF(2, 3);

#endif
