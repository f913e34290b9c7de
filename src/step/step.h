/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of lowering, as plain data: candidates (implementations of a node), each a list of
 * steps (kernel launches, GEMMs by CLBlast, copies, fills) that compute the node's outputs from its
 * inputs. There are no OpenCL handles. Operands are named relative to the node (input 0, output 0,
 * scratch 1, packed 0); the planner binds them to memory. See decision 1.
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
    OPERAND_PACKED   /* a packed (reordered) input, candidate.packings[index] */
} operand_space;

/* A buffer operand of a step. */
typedef struct operand {
    operand_space space;
    uint32_t index;
    int64_t offset_elems; /* added to the operand's own offset */
} operand;

/* ---- kernels --------------------------------------------------------------------------------- */

/* Identifies a kernel by its source text and entry point. The text is the prelude (#defines),
 * followed by the embedded file `source` or, for generated code, by the embedded common files and
 * `body`. Kernels with equal texts are built once. */
typedef struct kernel_ref {
    const char *source; /* stem of cl/<source>.cl; with `body`, a name for messages and profiles */
    const char *entry;
    const char *prelude; /* "#define P_ACT 1\n..." */
    const char *body;    /* NULL, or generated OpenCL C in place of the embedded source */
    /* NULL, or for a kernel whose scalar arguments are packed in one struct: a letter for each
     * parameter in its source: b (buffer), i (int), l (long), f (float). A launch then passes the
     * buffers in this order, followed by one array of longs with all scalars in this order, floats
     * as their bits. */
    const char *packed;
    /* 0, or 1 + a dimension: the program is for launches of parts of an NDRange along that
     * dimension (cl/lowering/launch_part.clh). Lowering leaves it 0; launch_part_ref sets it. */
    uint32_t part;
    /* The program is built without optimisation. Lowering leaves it false; candidate_set_baseline
     * sets it. */
    bool baseline;
} kernel_ref;

/* The kind of a kernel argument. */
typedef enum arg_kind {
    /* two kernel arguments: the cl_mem, and a long with its offset in elements of `dtype` */
    ARG_BUFFER,
    ARG_INT,   /* int */
    ARG_LONG,  /* long */
    ARG_FLOAT, /* float */
    ARG_LOCAL, /* local memory, bytes */
    /* ulong: a key for random numbers, derived from the session's seed; different in each launch */
    ARG_KEY,
    /* two kernel arguments: __global int *fault, int code. A kernel that finds invalid data (such
     * as an index out of range) writes `code` to fault[0] and the offending value to fault[1], and
     * continues with a safe value */
    ARG_FAULT
} arg_kind;

/* Codes of ARG_FAULT: which data is invalid (an index, a count, a value). */
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
    operand buffer;  /* of ARG_BUFFER */
    clg_dtype dtype; /* of ARG_BUFFER: the unit of its offset */
    union {
        int32_t i;
        int64_t l;
        float f;
        size_t bytes;
    } as;
} step_arg;

/* An operand to be passed as a buffer argument, with the dtype in whose elements its offset
 * counts. */
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

/* C = alpha op(A) op(B) + beta C in float32, for each GEMM of a batch. */
typedef struct gemm_problem {
    operand a, b, c; /* row-major; a: [m,k] or, transposed, [k,m]; b: [k,n] or [n,k]; c: [m,n] */
    int64_t m, n, k;
    int64_t lda, ldb, ldc; /* elements from row to row */
    int64_t batch;         /* number of GEMMs; strides of their operands follow, 0: shared */
    int64_t stride_a, stride_b, stride_c;
    bool trans_a, trans_b;
    float alpha, beta;
} gemm_problem;

/* An operation on the device. */
typedef struct step {
    step_kind kind;
    const char *label; /* for profiles: "gemm_simd 12x32"; NULL: the kernel's entry */
    kernel_ref kernel; /* STEP_KERNEL */
    step_arg *args;
    uint32_t n_args;
    bool draws; /* has an ARG_KEY */
    /* Each work-item reads elements of buffers of the output's shape, and then writes the elements
     * of the same indices: an output may lie on an input. Other inputs have one element. */
    bool elementwise;
    /* The number of work-groups decides what each of them computes; other kernels loop over the
     * work that fewer work-groups leave. */
    bool fixed_groups;
    uint32_t n_dims;              /* 1..3 */
    uint64_t global[3], local[3]; /* work-items; local all 0: the driver chooses */
    gemm_problem gemm;            /* STEP_BLAS_GEMM */
    operand from, to;             /* STEP_COPY: both, STEP_FILL: to; offset_elems counts bytes */
    size_t size_bytes;            /* STEP_COPY, STEP_FILL */
    uint8_t pattern[8];
    uint32_t pattern_bytes;
    /* In a packing: the range of bytes of its input that this step accesses, so that a large input
     * can be transferred to the device in pieces. window_bytes 0: all of it. */
    size_t window_offset, window_bytes;
    double flops, bytes; /* work of a kernel or GEMM; 0: not counted. step_bytes: of all kinds */
    struct step *next;
} step;

/* Returns the bytes of the ranges of memory that a step reads and writes, each counted once; 0: not
 * counted. */
double step_bytes(const step *s);

/* A packed copy of an input, in the layout that the candidate's kernels need. A constant weight is
 * packed once for each weight and recipe; another input in each run, into scratch memory before the
 * candidate's steps. The packing's steps take OPERAND_INPUT `input` and write OPERAND_PACKED with
 * this packing's index. */
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
    bool requires_selftest; /* not used if it has no self-test, unless self-tests are off */
    bool rejected;          /* failed its self-test or to compile on this device: not used */
    bool crashes;           /* rejected because the driver's compiler crashes on it */
    clg_status refusal;     /* the driver's error that rejected it; CLG_OK: another reason */
    const char *refusal_text;
    bool last_resort; /* slow, for drivers that reject the others; never measured */
    double cost;      /* estimated cycles, to compare candidates of one node; 0 when unknown */
    /* Where cost is 0: estimated cycles with its tile sizes, which tests/bench/cost_model checks;
     * 0: unknown. */
    double tiling_cost;
    struct candidate *next;
} candidate;

/* Has the kernels of a candidate's steps and packings built without optimisation, or with it. */
void candidate_set_baseline(candidate *c, bool baseline);
/* Returns the multiply-adds and other operations of a candidate's steps, as counted. */
double candidate_flops(const candidate *c);

/* ---- texts of kernels --------------------------------------------------------------------------
 * A collection that keeps each kernel text once, since steps of many plans use equal ones. Texts
 * live as long as the collection. Not thread-safe. */
typedef struct step_texts {
    arena memory;
    hash_map index;     /* text -> its address */
    hash_map generated; /* generator's input, as a key -> address of the text */
} step_texts;           /* all zeros is valid and empty */

/* Returns the kept string that equals `string`; NULL when memory runs out. */
const char *step_texts_keep(step_texts *t, const char *string);
/* Returns the string that step_texts_keep_as recorded under a key; NULL if there is none. */
const char *step_texts_find(const step_texts *t, const void *key, size_t key_bytes);
/* As step_texts_keep, and records the string under a key, the input that it was generated from, so
 * that it is generated only once. */
const char *step_texts_keep_as(step_texts *t, const void *key, size_t key_bytes,
                               const char *string);
void step_texts_deinit(step_texts *t);

/* Returns a copy of one step in `memory`, without its successors. Its strings are kept in `texts`,
 * or copied if that is NULL. Returns NULL when memory runs out. */
step *step_clone(const step *s, arena *memory, step_texts *texts);

/* ---- building candidates ------------------------------------------------------------------------
 * Builder calls never fail one by one: the first failure stays in builder->status, later calls
 * do nothing and return a harmless dummy. Everything lives in the builder's arena. */
typedef struct step_builder {
    arena *memory;
    step_texts *texts; /* keeps the kernel texts; NULL: the arena does */
    candidate *candidates, *last_candidate;
    clg_status status;
    candidate dummy_candidate;
    step dummy_step;
    step_arg dummy_arg;
} step_builder;

/* Starts an empty builder. texts may be NULL. */
void step_builder_init(step_builder *b, arena *memory, step_texts *texts);
/* Appends a candidate. Unless costs or measurements decide, earlier candidates are preferred. */
candidate *step_candidate(step_builder *b, const char *variant);
/* Adds scratch memory to a candidate. */
operand step_scratch(step_builder *b, candidate *c, size_t size_bytes);
/* Adds a packing of input `input` to a candidate and returns its operand; add its steps with
 * step_pack_kernel. */
operand step_packing(step_builder *b, candidate *c, uint32_t input, const char *recipe,
                     size_t size_bytes);

/* Appends a kernel step of the embedded file `source` to a candidate. prelude: from
 * prelude_text. */
step *step_kernel(step_builder *b, candidate *c, const char *source, const char *entry,
                  const char *prelude);
/* As step_kernel, for a generated kernel text `body`; name: for messages and profiles. */
step *step_kernel_generated(step_builder *b, candidate *c, const char *name, const char *entry,
                            const char *prelude, const char *body);
/* Appends a kernel step to the packing of operand `packed`. */
step *step_pack_kernel(step_builder *b, candidate *c, operand packed, const char *source,
                       const char *entry, const char *prelude);
/* Appends a GEMM by CLBlast. */
step *step_blas_gemm(step_builder *b, candidate *c, const gemm_problem *problem);
/* Appends a copy of size_bytes; nothing if that is 0. */
step *step_copy(step_builder *b, candidate *c, operand from, operand to, size_t size_bytes);
/* Appends a fill of size_bytes, a multiple of pattern_bytes (1, 2, 4 or 8); nothing if that is
 * 0. */
step *step_fill(step_builder *b, candidate *c, operand to, size_t size_bytes, const void *pattern,
                uint32_t pattern_bytes);

/* Appends a buffer argument. The kernel gets the offset in elements of `dtype`, or in bytes if
 * elements are smaller than a byte. */
void step_arg_buffer(step_builder *b, step *s, operand o, clg_dtype dtype);
/* Appends an int argument; CLG_ERROR_SHAPE if the value does not fit in 32 bits. */
void step_arg_int(step_builder *b, step *s, int64_t value);
void step_arg_long(step_builder *b, step *s, int64_t value);
void step_arg_float(step_builder *b, step *s, double value);
/* As the functions above, for n arguments in the order of the array. */
void step_arg_buffers(step_builder *b, step *s, size_t n, const step_buffer *buffers);
void step_arg_ints(step_builder *b, step *s, size_t n, const int64_t *values);
void step_arg_longs(step_builder *b, step *s, size_t n, const int64_t *values);
void step_arg_floats(step_builder *b, step *s, size_t n, const double *values);

/* Append the arguments that are listed, in the order of the kernel's parameters: STEP_INTS(b, s, m,
 * n, k), and operands with their dtypes: STEP_BUFFERS(b, s, {operand_input(0), dtype},
 * {operand_output(0), dtype}). C does not define in which order the listed expressions are
 * evaluated, so at most one of them may change the builder. */
#define STEP_LIST(f, b, s, type, ...)                                                              \
    f(b, s, sizeof((const type[]){__VA_ARGS__}) / sizeof(type), (const type[]){__VA_ARGS__})
#define STEP_BUFFERS(b, s, ...) STEP_LIST(step_arg_buffers, b, s, step_buffer, __VA_ARGS__)
#define STEP_INTS(b, s, ...) STEP_LIST(step_arg_ints, b, s, int64_t, __VA_ARGS__)
#define STEP_LONGS(b, s, ...) STEP_LIST(step_arg_longs, b, s, int64_t, __VA_ARGS__)
#define STEP_FLOATS(b, s, ...) STEP_LIST(step_arg_floats, b, s, double, __VA_ARGS__)

/* Appends local memory of this size. */
void step_arg_local(step_builder *b, step *s, size_t bytes);
/* Appends a key for random numbers (ARG_KEY). salt: distinguishes the key from those of other
 * nodes. */
void step_arg_key(step_builder *b, step *s, uint64_t salt);
/* Appends the arguments for reporting invalid data (ARG_FAULT); code: a step_fault. */
void step_arg_fault(step_builder *b, step *s, int32_t code);
/* Sets the NDRange; local may be NULL, else global must be a multiple of it. A global size of zero
 * removes the step. */
void step_range(step_builder *b, step *s, uint32_t n_dims, const uint64_t *global,
                const uint64_t *local);

/* Returns the builder's status; if that is CLG_OK, checks that every kernel step has an NDRange and
 * every step has existing operands. */
clg_status step_builder_check(const step_builder *b, size_t n_inputs, size_t n_outputs);

/* Return input and output i of the node as operands. */
static inline operand operand_input(uint32_t i) { return (operand){OPERAND_INPUT, i, 0}; }
static inline operand operand_output(uint32_t i) { return (operand){OPERAND_OUTPUT, i, 0}; }

/* Makes steps pass their scalar arguments packed in one struct, if the kernel can be called as a
 * plain function and has work-groups of one work-item. For drivers whose launches take longer with
 * each argument (QUIRK_COSTLY_ARGUMENTS). */
clg_status step_builder_pack_args(step_builder *b);

/* Returns a prelude ("#define NAME value" lines in the given order), formatted from words
 * NAME=value separated by blanks, such as "P_ACT=%d P_T=float". A value may be empty and has no
 * blanks. */
const char *prelude_text(step_builder *b, const char *format, ...) CLG_PRINTF(2, 3);

#endif
