// SPDX-License-Identifier: Apache-2.0
//
// Computes the recurrence of ONNX RNN, GRU and LSTM for the SIMD class: all time steps in one
// launch. A work-group is one work-item. It computes one direction of a slice of the batch (up to
// slice_rows sequences), a job, independently of all others; or it is one of several helpers that
// share a job. The products of the input with W, and the biases, were computed before (`x`).
//
// Parameters (also those of common/types.clh and recurrent/cell.clh)
//   P_MR   rows (entries of the batch) of the largest register tile: 2, 3, 4, 6, 8 or 12
//   P_NRV  width of the register tile in vectors. Weights r are packed in panels, each with P_NRV
//          vectors for every k (unit of Ht-1):
//            P_CELL 0 (RNN)   2: two vectors of units
//            P_CELL 1 (LSTM)  4: gates i, o, f, c of one vector of units
//            P_CELL 2 (GRU with linear_before_reset)  3: gates z, r, h of one vector of units
//            P_CELL 3 (GRU)   2: gates z, r of one vector of units; after all of these, panels of
//                             two vectors of units of gate h
//   P_VEC  4, 8 or 16
// Arguments: RECURRENT_PARAMS, with r packed by recurrent_pack_lanes and the units of the state
// padded to whole vectors, then
//   tile_rows   rows of a register tile, 1 .. P_MR
//   helpers     work-groups that share a job; 1: there are no counters
//   counters    for each job, counters_job ints, 0 before the first launch of these time steps;
//               not read if helpers is 1
//   counters_job   at least 3 + the panels of a direction
//
// Helpers divide a time step into chunks of panels, which they claim (recurrent/claims.clh). Which
// helper computes a chunk does not change what is computed.
//
// A slice of one row multiplies by several panels at a time, which hides the latency of additions;
// slices of more rows use register tiles. Both sum over k in the same order, so a row's result is
// bit-identical in any batch.
// NDRange: one work-item per group, groups over helpers * n_dirs * ceil(batch / slice_rows), any
// number >= 1.
// Local memory: none.
//
// @split
// @claims
// @cpu
// @variant P_CELL=0 P_COUPLED=0 P_F=1 P_G=1 P_H=1 P_T=1 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2
// @variant P_CELL=1 P_COUPLED=0 P_F=2 P_G=1 P_H=1 P_T=1 P_FMA=1 P_VEC=16 P_MR=6 P_NRV=4
// @variant P_CELL=1 P_COUPLED=1 P_F=7 P_G=3 P_H=10 P_T=10 P_FMA=0 P_VEC=4 P_MR=2 P_NRV=4
// @variant P_CELL=2 P_COUPLED=0 P_F=2 P_G=8 P_H=1 P_T=1 P_FMA=1 P_VEC=8 P_MR=4 P_NRV=3
// @variant P_CELL=3 P_COUPLED=0 P_F=9 P_G=6 P_H=1 P_T=10 P_FMA=1 P_VEC=16 P_MR=12 P_NRV=2

#include "common/types.clh"

#define CELL vec
#define STATE float
#include "recurrent/cell.clh"

#include "recurrent/claims.clh"

#define MICRO_PARAMS const int k, __global const float *a, const int a_row, __global const elem *b
#define MICRO_ARGS k, a, a_row, b
#define MICRO_FOR_EACH_K(BODY)                                                                     \
    for (int p = 0; p < k; ++p, ++a, b += NR) {                                                    \
        BODY                                                                                       \
    }
#define MICRO_A(i) a[(long)i * a_row]
#define MICRO_B(j) VLOAD(b + j * P_VEC)
#define MICRO_SUMS_RS P_NRV
#include "common/micro_simd.clh"
#include "common/lanes_simd.clh"

// Stages of a time step: P_CELL 3 computes r * Ht-1 of all units before gate h of any.
#define STAGES (P_CELL == 3 ? 2 : 1)

#define STATE_LOAD(p) CAT(vload, P_VEC)(0, p)
#define STATE_STORE(x, p) (((__global CAT(loose, P_VEC) *)(p))->v = (x))

// Number of panels that `line` multiplies by at a time.
#if P_NRV == 2
#define LINES 4
#define FOR_LINES FOR_ROWS_4
#else
#define LINES 2
#define FOR_LINES FOR_ROWS_2
#endif

#define LINE_ZERO(i, j) vec acc##i##_##j = (vec)0.0f;
#define LINE_MAD(i, j) acc##i##_##j = MAD(v, VLOAD(b##i + j * P_VEC), acc##i##_##j);
#define LINE_PUT(i, j) t[i * P_NRV + j] = acc##i##_##j;

// Multiplies one row of the state by LINES panels: t[i * P_NRV + j] = sum over p < k of h[p] *
// vector j of panel i at p. Panels are `step` elements apart, from b on; `last` panels follow the
// first, and where they are fewer than LINES - 1 the last is repeated.
static __attribute__((noinline)) void line(const int k, __global const float *h,
                                           __global const elem *b, const long step, const int last,
                                           vec *t)
{
    __global const elem *b0 = b, *b1 = b + min(last, 1) * step;
#if LINES == 4
    __global const elem *b2 = b + min(last, 2) * step, *b3 = b + min(last, 3) * step;
#endif
    FOR_LINES(LINE_ZERO)
    for (int p = 0; p < k; ++p) {
        const vec v = (vec)h[p];
        FOR_LINES(LINE_MAD)
        b0 += NR;
        b1 += NR;
#if LINES == 4
        b2 += NR;
        b3 += NR;
#endif
    }
    FOR_LINES(LINE_PUT)
}

// A job: one direction of one slice of the batch.
typedef struct {
    int rows, padded; // rows of the slice; padded number of units of a row of the state
    int hidden, parts, length, t0, tile_rows;
    int steps, backwards; // time steps of this launch; whether they begin with the last one
    long x_t, x_b, y_t, y_b, s_b;
    __global const elem *x, *r, *bias, *peep, *h0, *c0;
    __global const int *lens;
    __global elem *y, *y_h, *y_c;
    __global float *h, *next, *own; // h: Ht-1; next: Ht, or r * Ht-1 of a GRU; own: Ct or z
    __global int *fault;
    int code;
    cell_numbers numbers;
} cell_job;

static inline int row_length(const cell_job *j, const int row)
{
    return sequence_length(j->lens, j->parts, row, j->length, j->fault, j->code);
}

static inline void put_y(const cell_job *j, const int row, const int t, const int u, const vec h)
{
    if (j->parts & WANT_Y) store_lanes(j->y + t * j->y_t + row * j->y_b + u, 1, j->hidden - u, h);
}

// x of gate g, for the vector of units from u.
#define INPUT_GATE(g) load_lanes(x + (g)*j->hidden + u, 1, j->hidden - u)
#define PEEPHOLE(g) load_lanes(j->peep + (g)*j->hidden + u, 1, j->hidden - u)

// Applies the cell's equations to the units of panel p of a row. t has the products of the panel
// and the state. P_CELL 3: `second` 0 computes gates z and r * Ht-1, 1 gate h and Ht.
static __attribute__((noinline)) void finish(const cell_job *j, const vec *t, const int row,
                                             const int time, const int p, const int second)
{
    __global const elem *x = j->x + (time - j->t0) * j->x_t + row * j->x_b;
    __global float *h = j->h + (long)row * j->padded, *next = j->next + (long)row * j->padded;
    __global float *own = j->own + (long)row * j->padded;
    const cell_numbers *n = &j->numbers;
#if P_CELL == 1
    const int u = p * P_VEC, has_peep = j->parts & HAS_PEEP;
    vec state = STATE_LOAD(own + u), p_i = (vec)0.0f, p_o = p_i, p_f = p_i;
    if (has_peep) {
        p_i = PEEPHOLE(0);
        p_o = PEEPHOLE(1);
        p_f = PEEPHOLE(2);
    }
    const vec now = lstm_cell(t[0] + INPUT_GATE(0), t[1] + INPUT_GATE(1), t[2] + INPUT_GATE(2),
                              t[3] + INPUT_GATE(3), &state, has_peep, p_i, p_o, p_f, n);
    STATE_STORE(state, own + u);
    STATE_STORE(now, next + u);
    put_y(j, row, time, u, now);
#elif P_CELL == 2
    const int u = p * P_VEC;
    vec linear = t[2];
    if (j->parts & HAS_BIAS) linear += load_lanes(j->bias + u, 1, j->hidden - u);
    const vec z = act_f(t[0] + INPUT_GATE(0), n), r = act_f(t[1] + INPUT_GATE(1), n);
    const vec now = gru_cell(z, INPUT_GATE(2) + r * linear, STATE_LOAD(h + u), n);
    STATE_STORE(now, next + u);
    put_y(j, row, time, u, now);
#else
    if (P_CELL == 3 && !second) {
        const int u = p * P_VEC;
        STATE_STORE(act_f(t[0] + INPUT_GATE(0), n), own + u);
        STATE_STORE(act_f(t[1] + INPUT_GATE(1), n) * STATE_LOAD(h + u), next + u);
        return;
    }
    for (int i = 0; i < 2; ++i) {
        const int u = (p * 2 + i) * P_VEC;
        if (u >= j->hidden) break;
#if P_CELL == 3
        const vec now = gru_cell(STATE_LOAD(own + u), t[i] + INPUT_GATE(2), STATE_LOAD(h + u), n);
        STATE_STORE(now, h + u);
#else
        const vec now = act_f(t[i] + INPUT_GATE(0), n);
        STATE_STORE(now, next + u);
#endif
        put_y(j, row, time, u, now);
    }
#endif
}

// Calls finish, or copies the state if the row's sequence has ended.
static inline void finish_if(const cell_job *j, const vec *t, const int row, const int time,
                             const int p, const int second)
{
    if (!(j->parts & HAS_LENS) || time < row_length(j, row)) {
        finish(j, t, row, time, p, second);
        return;
    }
#if P_CELL != 3
    const int units = P_CELL == 0 ? 2 * P_VEC : P_VEC, end = min((p + 1) * units, j->padded);
    for (int u = p * units; u < end; u += P_VEC)
        STATE_STORE(STATE_LOAD(j->h + (long)row * j->padded + u),
                    j->next + (long)row * j->padded + u);
#endif
}

// Returns the number of panels of a time step. P_CELL 3: of one half of it, gates z and r, or gate
// h (second).
static inline int count_panels(const cell_job *j, const int second)
{
    const int vectors = (j->hidden + P_VEC - 1) / P_VEC;
    return P_CELL == 0 || second ? (vectors + 1) / 2 : vectors;
}

// Computes panels first .. end - 1 of time step i of this launch, or of one half of it (second), of
// all rows.
static __attribute__((noinline)) void advance(const cell_job *j, const int i, const int second,
                                              const int first, const int end)
{
    vec t[P_MR * P_NRV < 8 ? 8 : P_MR * P_NRV];
    const int time = j->t0 + (j->backwards ? j->steps - 1 - i : i);
    const long step = (long)j->hidden * NR;
    __global const float *from = second ? j->next : j->h;
    __global const elem *r = j->r + (second ? count_panels(j, 0) * step : 0);
    if (j->rows == 1) {
        for (int p = first; p < end; p += LINES) {
            line(j->hidden, from, r + p * step, step, end - 1 - p, t);
            for (int k = 0; k < LINES && p + k < end; ++k)
                finish_if(j, t + k * P_NRV, 0, time, p + k, second);
        }
        return;
    }
    for (int p = first; p < end; ++p) {
        for (int row = 0; row < j->rows; row += j->tile_rows) {
            const int n = min(j->tile_rows, j->rows - row);
            micro(n, j->hidden, from + (long)row * j->padded, j->padded, r + p * step, t, 1);
            for (int k = 0; k < n; ++k) finish_if(j, t + k * P_NRV, row + k, time, p, second);
        }
    }
}

// Makes what a time step computed the state of the next one.
static inline void swap_states(cell_job *j)
{
#if P_CELL != 3
    __global float *swap = j->h;
    j->h = j->next;
    j->next = swap;
#endif
}

// Sets the initial state of a slice, in the sequence's first launch: from h0 and c0, else zeros.
static void start(const cell_job *j)
{
    if (!(j->parts & IS_FIRST)) return;
    for (int row = 0; row < j->rows; ++row) {
        for (int u = 0; u < j->padded; u += P_VEC) {
            const long at = (long)row * j->padded + u, from = row * j->s_b + u;
            vec h = (vec)0.0f, c = (vec)0.0f;
            if (j->parts & HAS_H0) h = load_lanes(j->h0 + from, 1, j->hidden - u);
            if (j->parts & HAS_C0) c = load_lanes(j->c0 + from, 1, j->hidden - u);
            STATE_STORE(h, j->h + at);
            STATE_STORE(c, j->own + at);
        }
    }
}

// Ends a launch, after its last time step. In the sequence's last launch, writes Y_h and Y_c, and
// zeros into Y after the ends of sequences; else moves the state to where the next launch reads it.
static void stop(const cell_job *j)
{
    if (!(j->parts & IS_LAST)) {
        if (P_CELL != 3 && j->steps > 0 && j->steps % 2 == 1)
            for (long i = 0; i < (long)j->rows * j->padded; i += P_VEC)
                STATE_STORE(STATE_LOAD(j->h + i), j->next + i);
        return;
    }
    for (int row = 0; row < j->rows; ++row) {
        for (int u = 0; u < j->hidden; u += P_VEC) {
            const long at = (long)row * j->padded + u, to = row * j->s_b + u;
            if (j->parts & WANT_Y_H)
                store_lanes(j->y_h + to, 1, j->hidden - u, STATE_LOAD(j->h + at));
            if (j->parts & WANT_Y_C)
                store_lanes(j->y_c + to, 1, j->hidden - u, STATE_LOAD(j->own + at));
        }
        for (int t = row_length(j, row); t < j->length; ++t)
            for (int u = 0; u < j->hidden; u += P_VEC) put_y(j, row, t, u, (vec)0.0f);
    }
}

// ---- one work-group for a job -------------------------------------------------------------------

static void run_alone(cell_job *j)
{
    start(j);
    for (int i = 0; i < j->steps; ++i) {
        for (int second = 0; second < STAGES; ++second)
            advance(j, i, second, 0, count_panels(j, second));
        swap_states(j);
    }
    stop(j);
}

// ---- several work-groups for a job --------------------------------------------------------------

// Computes a job together with other helpers; `helper` is the index of this one. Each one begins
// with another chunk, the same in all time steps, whose weights are then in its cache, and
// continues with chunks that are left. One that comes late skips the stages that are done.
static void run_shared(cell_job *j, counter counters, const int helper, const int helpers)
{
    counter done = counters + DONE;
    const int width = j->rows == 1 ? LINES : 1;
    int before = 1, seen = 0; // chunks of earlier stages, including the initial state
    if (claim(counters, START, 0)) {
        start(j);
        seen = count_done(done, 1);
    }
    for (int i = 0; i < j->steps; ++i) {
        int base = CHUNKS;
        for (int second = 0; second < STAGES; ++second) {
            const int panels = count_panels(j, second), n = (panels + width - 1) / width;
            if (*done < before + n) {
                int c = (int)((long)helper * n / helpers), n_mine = 0;
                seen = wait_for(done, before, seen);
                for (int k = 0; k < n; ++k, c = c + 1 < n ? c + 1 : 0) {
                    if (!claim(counters, base + c, i)) continue;
                    advance(j, i, second, c * width, min((c + 1) * width, panels));
                    ++n_mine;
                }
                if (n_mine > 0) seen = count_done(done, n_mine);
            }
            base += n;
            before += n;
        }
        swap_states(j);
    }
    if (!claim(counters, STOP, 0)) return;
    (void)wait_for(done, before, seen);
    stop(j);
}

WORK_GROUP_SIZE(1, 1, 1)
__kernel void recurrent_simd(RECURRENT_PARAMS, const int tile_rows, const int helpers,
                             __global int *counters, const long counters_off,
                             const int counters_job)
{
    const int slices = (batch + slice_rows - 1) / slice_rows, jobs = n_dirs * slices;
    for (long group = get_group_id(0); group < (long)jobs * helpers; group += get_num_groups(0)) {
        const int item = (int)(group % jobs);
        const int d = dir0 + item / slices, b = item % slices * slice_rows;
        const int padded = (hidden + P_VEC - 1) / P_VEC * P_VEC;
        const long inside = ((long)d * batch + b) * padded, outside = d * s_d + b * s_b;
        cell_job j = {.rows = min(slice_rows, batch - b),
                      .padded = padded,
                      .hidden = hidden,
                      .parts = parts,
                      .length = length,
                      .t0 = t0,
                      .tile_rows = tile_rows,
                      .backwards = reverse >> d & 1,
                      .x_t = x_t,
                      .x_b = x_b,
                      .y_t = y_t,
                      .y_b = y_b,
                      .s_b = s_b,
                      .fault = fault,
                      .code = code,
                      .numbers = {clip, f_a, f_b, g_a, g_b, h_a, h_b}};
        j.x = x + x_off + b * x_b + (long)(d - dir0) * GATES * hidden;
        j.r = r + r_off + d * r_dir;
        j.bias = bias + bias_off + ((long)d * 2 * GATES + 2 * GATES - 1) * hidden;
        j.peep = peep + peep_off + (long)d * 3 * hidden;
        j.lens = lens + lens_off + b;
        j.h0 = h0 + h0_off + outside;
        j.c0 = c0 + c0_off + outside;
        j.y = y + y_off + d * y_d + b * y_b;
        j.y_h = y_h + y_h_off + outside;
        j.y_c = y_c + y_c_off + outside;
        j.h = state + state_off + inside;
        j.next = j.h + state_plane;
        j.own = j.next + state_plane;
        int longest = 0;
        for (int row = 0; row < j.rows; ++row) longest = max(longest, row_length(&j, row));
        j.steps = min(n_steps, longest - t0);
        if (helpers == 1)
            run_alone(&j);
        else
            run_shared(&j, counters + counters_off + (long)item * counters_job, (int)(group / jobs),
                       helpers);
    }
}
