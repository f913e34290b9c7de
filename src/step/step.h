/* SPDX-License-Identifier: Apache-2.0
 *
 * What lowering produces, as plain data: candidates, each a list of steps that compute a node's
 * outputs from its inputs. Nothing here holds an OpenCL handle. Operands are named relative to the
 * node (input 0, output 0, scratch 1, packed 0); the planner binds them to memory.
 * See decision 1.
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

/* A kernel is one text: prelude (#defines), then the embedded source `source` (or, for generated
 * code, `body` after the embedded common files), entry point `entry`. Equal refs build once. */
typedef struct kernel_ref {
    const char *source; /* stem of cl/<source>.cl; with `body`, a name for messages and profiles */
    const char *entry;
    const char *prelude; /* "#define P_ACT 1\n..." */
    const char *body;    /* NULL, or generated OpenCL C in place of the embedded source */
    /* NULL, or the kernel takes its scalar arguments in one struct, and here are the parameters
     * that it is written with, a letter each: buffer, int, long, float. Then a launch has its
     * buffers, in this order, and an array of longs with all numbers, in this order, floats as
     * their bits. */
    const char *packed;
} kernel_ref;

typedef enum arg_kind {
    /* two kernel arguments: the cl_mem, and a long with its offset in elements of `dtype` */
    ARG_BUFFER,
    ARG_INT,   /* int */
    ARG_LONG,  /* long */
    ARG_FLOAT, /* float */
    ARG_LOCAL, /* local memory, bytes */
    /* ulong: a key for random numbers, another one in each launch, from the session's seed */
    ARG_KEY,
    /* two: __global int *fault, int code. A kernel that meets bad data (an index out of range)
     * writes `code` to fault[0] and the offending number to fault[1], and goes on safely */
    ARG_FAULT
} arg_kind;

/* Codes of ARG_FAULT: what was wrong with the data. */
typedef enum step_fault {
    STEP_FAULT_NONE = 0,
    STEP_FAULT_INDEX = 1,
    STEP_FAULT_COUNT = 2,
    STEP_FAULT_VALUE = 3
} step_fault;
/* "an index is out of range" */
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

/* What a buffer argument is made from. */
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
    int64_t batch;         /* 1: plain Gemm; more: strides below, 0 to repeat */
    int64_t stride_a, stride_b, stride_c;
    bool trans_a, trans_b;
    float alpha, beta;
} gemm_problem;

typedef struct step {
    step_kind kind;
    const char *label; /* for profiles: "gemm_simd 12x32" ; NULL: the kernel's entry */
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
    /* Of a packing: the bytes of its input that this step reads, so that a large one can be
     * brought to the device in pieces; window_bytes 0: all. */
    size_t window_offset, window_bytes;
    double flops, bytes; /* of work, for profiles; 0 when not counted */
    struct step *next;
} step;

/* A weight in another form. Made once per (weight, recipe) when the weight is a constant, else
 * by running its steps before the candidate's, into scratch. The steps see the weight as
 * OPERAND_INPUT `input` and the destination as OPERAND_PACKED with this packing's index. */
typedef struct packing {
    uint32_t input;
    const char *recipe; /* names form and parameters: "gemm_b nr=32"; never activation shapes */
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
    bool requires_selftest; /* where kernels are tested before use, no use without a test either */
    bool rejected;          /* found to be wrong on this device: never taken */
    bool crashes;           /* rejected because the driver's compiler dies of it */
    bool
        last_resort; /* slow, for drivers that refuse the others: no choice that anybody measures */
    double cost; /* estimated cycles, to compare candidates of one node; 0 when nothing is known */
    /* Where cost is 0: estimated cycles of its tiling, which tests/bench/cost_model checks; 0 when
     * nothing is known. */
    double tiling_cost;
    struct candidate *next;
} candidate;

/* ---- texts of kernels --------------------------------------------------------------------------
 * Steps of many plans hold the same few texts. Here each is kept once, as long as the
 * collection. Not thread-safe. */
typedef struct step_texts {
    arena memory;
    hash_map index;     /* text -> its address */
    hash_map generated; /* what a text was generated from -> its address */
} step_texts;           /* all zeros is valid and empty */

/* The kept text that equals `string`; NULL when memory is out. */
const char *step_texts_keep(step_texts *t, const char *string);
/* The same, remembered under what it was generated from, so that it need not be generated again.
 * find: NULL when it was not yet. */
const char *step_texts_find(const step_texts *t, const void *key, size_t key_bytes);
const char *step_texts_keep_as(step_texts *t, const void *key, size_t key_bytes,
                               const char *string);
void step_texts_deinit(step_texts *t);

/* A copy of one step in `memory`, without the step after it; its texts are kept in `texts`,
 * which may be NULL: then they are copied too. NULL when memory is out. */
step *step_clone(const step *s, arena *memory, step_texts *texts);

/* ---- making them --------------------------------------------------------------------------------
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
/* Starts a candidate; order is preference where costs do not decide. */
candidate *step_candidate(step_builder *b, const char *variant);
operand step_scratch(step_builder *b, candidate *c, size_t size_bytes);
/* A packed form of constant or computed input `input`; fill its steps with step_pack_kernel. */
operand step_packing(step_builder *b, candidate *c, uint32_t input, const char *recipe,
                     size_t size_bytes);

/* Appends a kernel step to the candidate, or to one of its packings. `prelude` from
 * prelude_text. */
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

/* Offsets count elements of `dtype`, bytes where these are narrower. */
void step_arg_buffer(step_builder *b, step *s, operand o, clg_dtype dtype);
/* CLG_ERROR_SHAPE when it does not fit an int. */
void step_arg_int(step_builder *b, step *s, int64_t value);
void step_arg_long(step_builder *b, step *s, int64_t value);
void step_arg_float(step_builder *b, step *s, double value);
/* The same for n arguments, in the order of the array. */
void step_arg_buffers(step_builder *b, step *s, size_t n, const step_buffer *buffers);
void step_arg_ints(step_builder *b, step *s, size_t n, const int64_t *values);
void step_arg_longs(step_builder *b, step *s, size_t n, const int64_t *values);
void step_arg_floats(step_builder *b, step *s, size_t n, const double *values);

/* The same for arguments that are listed: STEP_INTS(b, s, m, n, k), and operands with their dtypes:
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
/* salt: what makes the key another one than those of other nodes. */
void step_arg_key(step_builder *b, step *s, uint64_t salt);
void step_arg_fault(step_builder *b, step *s, int32_t code);
/* global must be multiples of local where local is given; a zero size drops the step. */
void step_range(step_builder *b, step *s, uint32_t n_dims, const uint64_t *global,
                const uint64_t *local);

/* The builder's status; with all well, that every step has an index space and names operands
 * that are there. */
clg_status step_builder_check(const step_builder *b, size_t n_inputs, size_t n_outputs);

static inline operand operand_input(uint32_t i) { return (operand){OPERAND_INPUT, i, 0}; }
static inline operand operand_output(uint32_t i) { return (operand){OPERAND_OUTPUT, i, 0}; }

/* Has the steps pass their kernels scalar arguments in one struct wherever these could be plain
 * functions of work-groups of one work-item: for drivers that take their time for each argument
 * of a launch (QUIRK_COSTLY_ARGUMENTS). */
clg_status step_builder_pack_args(step_builder *b);

/* A prelude: "#define NAME value" lines, in the order given, from words NAME=value: "P_ACT=%d
 * P_T=float". A value may be empty and holds no space. */
const char *prelude_text(step_builder *b, const char *format, ...) CLG_PRINTF(2, 3);

#endif
