// SPDX-License-Identifier: Apache-2.0
//
// Computes the recurrence of ONNX RNN, GRU and LSTM for the SIMT class, and for float64 in both
// classes: all time steps in one launch. A work-group computes one direction of a slice of the
// batch, and a barrier ends each step (GRU without linear_before_reset: each half of a step).
// Work-groups are independent. The products of the input with W, and the biases, were computed
// before (`x`).
//
// Parameters (also those of common/number.clh, with P_VEC=4, and of recurrent/cell.clh)
//   P_FMA    1 where fma() is an instruction, else 0
//   P_LOCAL  work-items of a group; each computes every P_LOCAL-th hidden unit
//   P_ROWS   rows (entries of the batch) of a slice: 1, 2 or 4
//   P_STATE  memory of Ht between steps: 0 local; 1 global, for when local memory is too small
// Arguments: RECURRENT_PARAMS, with r packed by recurrent_pack_fours, the units of the state padded
// to a multiple of 4, and slice_rows equal to P_ROWS. P_STATE 0 only:
//   shared   local memory of 2 * P_ROWS * (padded number of units) elements
// NDRange: local size P_LOCAL, groups over n_dirs * ceil(batch / P_ROWS), any number >= 1.
//
// @split
// @hot recurrent_simt
// @variant P_CELL=0 P_COUPLED=0 P_F=1 P_G=1 P_H=1 P_T=1 P_VEC=4 P_FMA=1 P_LOCAL=64 P_ROWS=1
//          P_STATE=0
// @variant P_CELL=1 P_COUPLED=0 P_F=2 P_G=1 P_H=1 P_T=1 P_VEC=4 P_FMA=1 P_LOCAL=256 P_ROWS=4
//          P_STATE=0
// @variant P_CELL=1 P_COUPLED=1 P_F=4 P_G=5 P_H=9 P_T=11 P_VEC=4 P_FMA=1 P_LOCAL=64 P_ROWS=2
//          P_STATE=1
// @variant P_CELL=2 P_COUPLED=0 P_F=2 P_G=1 P_H=1 P_T=10 P_VEC=4 P_FMA=0 P_LOCAL=128 P_ROWS=2
//          P_STATE=0
// @variant P_CELL=3 P_COUPLED=0 P_F=2 P_G=10 P_H=1 P_T=1 P_VEC=4 P_FMA=1 P_LOCAL=256 P_ROWS=1
//          P_STATE=1

#include "common/number.clh"

#define CELL num
#define STATE num
#include "recurrent/cell.clh"

#if P_STATE == 0
#define SHARED __local
#define FENCE CLK_LOCAL_MEM_FENCE
#else
#define SHARED __global
#define FENCE CLK_GLOBAL_MEM_FENCE
#endif
#if P_FMA
#define MAD(a, b, c) fma(a, b, c)
#else
#define MAD(a, b, c) ((a) * (b) + (c))
#endif

// The work of a work-item: one direction of one slice of the batch. The lengths of sequences are
// not a member, because they are indexed by a row that is not a constant, which keeps an array out
// of registers.
typedef struct {
    int me, rows, hidden, padded, parts, length;
    long x_t, x_b, y_t, y_b, s_b;
    __global const elem *x, *r, *peep, *bias;
    __global elem *y;
    __global num *saved, *own; // Ht between launches; Ct of LSTM or z of GRU
    cell_numbers numbers;
} cell_job;

// Computes sums[row][g] = dot product of h of the row and the weights R of unit u in gate
// gate0 + g, for g < gates.
static inline void products(const cell_job *j, num sums[P_ROWS][GATES], const int gate0,
                            const int gates, const int u, SHARED const num *h)
{
    const long gate = (long)j->hidden * 4;
    __global const elem *r = j->r + gate0 * gate + (long)u * 4;
    num acc[P_ROWS][GATES];
#pragma unroll
    for (int row = 0; row < P_ROWS; ++row) {
#pragma unroll
        for (int g = 0; g < GATES; ++g) acc[row][g] = 0;
    }
    for (int k = 0; k < j->padded; k += 4, r += GATES * gate) {
        vec weights[GATES];
#pragma unroll
        for (int g = 0; g < GATES; ++g) weights[g] = g < gates ? VLOAD(r + g * gate) : (vec)0;
#pragma unroll
        for (int row = 0; row < P_ROWS; ++row) {
            // Rows beyond the slice compute the last row again.
            const vec v = vload4(0, h + min(row, j->rows - 1) * j->padded + k);
#pragma unroll
            for (int g = 0; g < GATES; ++g) {
                const vec w = weights[g];
                if (g < gates)
                    acc[row][g] =
                        MAD(w.w, v.w, MAD(w.z, v.z, MAD(w.y, v.y, MAD(w.x, v.x, acc[row][g]))));
            }
        }
    }
    // The caller iterates over rows: without unrolling, the array of sums would not be in
    // registers.
#pragma unroll
    for (int row = 0; row < P_ROWS; ++row) {
#pragma unroll
        for (int g = 0; g < GATES; ++g) sums[row][g] = acc[row][g];
    }
}

static inline void put_y(const cell_job *j, const int row, const int t, const int u, const num h)
{
    if (j->parts & WANT_Y) STORE1(h, j->y + t * j->y_t + row * j->y_b + u);
}

// x of gate g of unit u.
#define INPUT_GATE(g) ((num)LOAD1(x + (long)(g)*j->hidden + u))

// Returns Ht of unit u of a row. sums: the products of Ht-1 and R, for each gate; h: Ht-1 of the
// unit; *own: Ct of LSTM, updated. P_CELL 3: returns r * Ht-1 and stores z in *own.
static inline num unit_step(const cell_job *j, const num *sums, __global const elem *x, const int u,
                            const num h, __global num *own)
{
    const cell_numbers *n = &j->numbers;
#if P_CELL == 0
    return act_f(sums[0] + INPUT_GATE(0), n);
#elif P_CELL == 1
    const int has_peep = j->parts & HAS_PEEP;
    num p_i = 0, p_o = 0, p_f = 0, state = *own;
    if (has_peep) {
        p_i = LOAD1(j->peep + u);
        p_o = LOAD1(j->peep + j->hidden + u);
        p_f = LOAD1(j->peep + 2 * j->hidden + u);
    }
    const num now =
        lstm_cell(sums[0] + INPUT_GATE(0), sums[1] + INPUT_GATE(1), sums[2] + INPUT_GATE(2),
                  sums[3] + INPUT_GATE(3), &state, has_peep, p_i, p_o, p_f, n);
    *own = state;
    return now;
#elif P_CELL == 2
    const num linear = sums[2] + (j->parts & HAS_BIAS ? (num)LOAD1(j->bias + u) : (num)0);
    const num z = act_f(sums[0] + INPUT_GATE(0), n), r = act_f(sums[1] + INPUT_GATE(1), n);
    return gru_cell(z, INPUT_GATE(2) + r * linear, h, n);
#else
    *own = act_f(sums[0] + INPUT_GATE(0), n);
    return act_f(sums[1] + INPUT_GATE(1), n) * h;
#endif
}

// Computes one time step (P_CELL 3: its first half) for the units of this work-item. time counts
// from the start of the sequence, since from the first step of the launch.
static inline void advance(const cell_job *j, const int lengths[P_ROWS], const int time,
                           const int since, SHARED const num *h, SHARED num *next)
{
    for (int u = j->me; u < j->hidden; u += P_LOCAL) {
        num sums[P_ROWS][GATES];
        products(j, sums, 0, P_CELL == 3 ? 2 : GATES, u, h);
#pragma unroll 1
        for (int row = 0; row < j->rows; ++row) {
            const int at = row * j->padded + u;
            if (time >= lengths[row]) {
                next[at] = h[at];
                continue;
            }
            next[at] = unit_step(j, sums[row], j->x + since * j->x_t + row * j->x_b, u, h[at],
                                 j->own + at);
#if P_CELL != 3
            put_y(j, row, time, u, next[at]);
#endif
        }
    }
}

#if P_CELL == 3
// Computes the second half of a step: gate h, from r * Ht-1 in `reset`.
static inline void advance_hidden(const cell_job *j, const int lengths[P_ROWS], const int time,
                                  const int since, SHARED num *h, SHARED const num *reset)
{
    for (int u = j->me; u < j->hidden; u += P_LOCAL) {
        num sums[P_ROWS][GATES];
        products(j, sums, 2, 1, u, reset);
#pragma unroll 1
        for (int row = 0; row < j->rows; ++row) {
            const int at = row * j->padded + u;
            if (time >= lengths[row]) continue;
            __global const elem *x = j->x + since * j->x_t + row * j->x_b;
            h[at] = gru_cell(j->own[at], sums[row][0] + INPUT_GATE(2), h[at], &j->numbers);
            put_y(j, row, time, u, h[at]);
        }
    }
}
#endif

// Iterates over the units of this work-item in each row. Conditions are outside of these loops, and
// the loops in functions that are not inlined: otherwise PoCL takes much longer to compile.
#define EACH_UNIT(end)                                                                             \
    for (int row = 0; row < j->rows; ++row)                                                        \
        for (int u = j->me, at = row * j->padded + u; u < (end); u += P_LOCAL, at += P_LOCAL)

// Sets the state before the first step of the launch: from h0 and c0, from the previous launch, or
// zeros. The padding units are zero, as are the weights r that they are multiplied by.
static __attribute__((noinline)) void start(const cell_job *j, __global const elem *h0,
                                            __global const elem *c0, SHARED num *h,
                                            SHARED num *next)
{
    EACH_UNIT(j->padded)
    next[at] = 0;
    if (!(j->parts & IS_FIRST)) {
        EACH_UNIT(j->padded)
        h[at] = u < j->hidden ? j->saved[at] : (num)0;
        return;
    }
    if (j->parts & HAS_H0) {
        EACH_UNIT(j->padded)
        h[at] = u < j->hidden ? (num)LOAD1(h0 + row * j->s_b + u) : (num)0;
    } else {
        EACH_UNIT(j->padded)
        h[at] = 0;
    }
#if P_CELL == 1
    if (j->parts & HAS_C0) {
        EACH_UNIT(j->hidden)
        j->own[at] = LOAD1(c0 + row * j->s_b + u);
    } else {
        EACH_UNIT(j->hidden)
        j->own[at] = 0;
    }
#endif
}

// After the last step, saves the state for the next launch; or, in the last launch, writes Y_h and
// Y_c, and zeros into Y after the ends of sequences.
static __attribute__((noinline)) void stop(const cell_job *j, const int lengths[P_ROWS],
                                           __global elem *y_h, __global elem *y_c,
                                           SHARED const num *h)
{
    if (!(j->parts & IS_LAST)) {
        EACH_UNIT(j->hidden)
        j->saved[at] = h[at];
        return;
    }
    if (j->parts & WANT_Y_H) EACH_UNIT(j->hidden)
    STORE1(h[at], y_h + row * j->s_b + u);
    if (j->parts & WANT_Y_C) EACH_UNIT(j->hidden)
    STORE1(j->own[at], y_c + row * j->s_b + u);
    if ((j->parts & (WANT_Y | HAS_LENS)) == (WANT_Y | HAS_LENS)) EACH_UNIT(j->hidden)
    for (int t = lengths[row]; t < j->length; ++t)
        STORE1((num)0, j->y + t * j->y_t + row * j->y_b + u);
}

WORK_GROUP_SIZE(P_LOCAL, 1, 1)
__kernel void recurrent_simt(RECURRENT_PARAMS
#if P_STATE == 0
                             ,
                             __local num *shared
#endif
)
{
    const int slices = (batch + P_ROWS - 1) / P_ROWS;
    for (int item = get_group_id(0); item < n_dirs * slices; item += get_num_groups(0)) {
        const int d = dir0 + item / slices, b = item % slices * P_ROWS;
        const int padded = (hidden + 3) / 4 * 4;
        const long outside = d * s_d + b * s_b;
        cell_job j = {.me = get_local_id(0),
                      .rows = min(P_ROWS, batch - b),
                      .hidden = hidden,
                      .padded = padded,
                      .parts = parts,
                      .length = length,
                      .x_t = x_t,
                      .x_b = x_b,
                      .y_t = y_t,
                      .y_b = y_b,
                      .s_b = s_b,
                      .numbers = {clip, f_a, f_b, g_a, g_b, h_a, h_b}};
        j.x = x + x_off + b * x_b + (long)(d - dir0) * GATES * hidden;
        j.r = r + r_off + d * r_dir;
        j.bias = bias + bias_off + ((long)d * 2 * GATES + 2 * GATES - 1) * hidden;
        j.peep = peep + peep_off + (long)d * 3 * hidden;
        j.y = y + y_off + d * y_d + b * y_b;
        j.saved = state + state_off + ((long)d * batch + b) * padded;
        j.own = j.saved + 2 * state_plane;
#if P_STATE == 0
        __local num *h = shared, *next = shared + P_ROWS * padded;
#else
        __global num *h = j.saved, *next = j.saved + state_plane;
#endif
        int lengths[P_ROWS], longest = 0;
        for (int row = 0; row < P_ROWS; ++row) {
            lengths[row] =
                row < j.rows ? sequence_length(lens + lens_off, parts, b + row, length, fault, code)
                             : 0;
            longest = max(longest, lengths[row]);
        }
        const cell_job ends = j; // a copy for functions that are not inlined: j stays in registers
        start(&ends, h0 + h0_off + outside, c0 + c0_off + outside, h, next);
        barrier(FENCE);
        const int steps = min(n_steps, longest - t0);
        for (int i = 0; i < steps; ++i) {
            const int since = reverse >> d & 1 ? steps - 1 - i : i;
            advance(&j, lengths, t0 + since, since, h, next);
            barrier(FENCE);
#if P_CELL == 3
            advance_hidden(&j, lengths, t0 + since, since, h, next);
            barrier(FENCE);
#else
            SHARED num *swap = h;
            h = next;
            next = swap;
#endif
        }
        stop(&ends, lengths, y_h + y_h_off + outside, y_c + y_c_off + outside, h);
    }
}
