// SPDX-License-Identifier: Apache-2.0
//
// Computes discrete Fourier transforms (DFT of ONNX 17 and 20, STFT of ONNX 17) by Stockham's FFT,
// with one pass for each factor (radix) of the length n. A line is the n complex numbers of one
// transform. A pass combines transforms of length l (1 in the first pass) into transforms of length
// l * radix:
//   to[q + l * t + l * radix * k] =
//       sum over s < radix of from[q + l * (k + m * s)] * w^(m * s * (q + l * t)),
//   q < l, t < radix, k < m = n / (l * radix), w = exp(sign * 2 pi i / n)
//
// Parameters
//   P_RADIX     2, 4: the radix; a work-item computes all outputs of a butterfly.
//               0: any radix, by the argument; a work-item computes one output
//   P_FIRST     1: x is the signal; 0: x is lines of the previous pass
//   P_LAST      1: y is the result; 0: y is lines for the next pass
//   P_T, P_VEC  see common/number.clh; P_VEC is 1. Lines and the table are complex numbers of `num`
//
// dft_table  computes the twiddle factors table[i] = w^i, i < n. NDRange: n
// dft_pass   computes one pass. NDRange: n / radix (P_RADIX 0: n), lines; each may be smaller
// Arguments; strides are in values, real or complex:
//   sign        -1: forward, 1: inverse transform
//   x           P_FIRST 1: the signal, of elem; 0: [lines][n] complex
//   y           P_LAST 1: the result, of elem; 0: [lines][n] complex
//   window      n_in factors of the signal's values; not read where `windowed` is 0
//   lines       number of transforms
//   inner       line i is at (i / inner, i % inner) in the signal and the result
//   n, l, radix   as above
// Arguments that only P_FIRST 1 uses:
//   n_in        values of a line of the signal; zeros follow
//   x_parts     1: the signal is real, 2: complex
//   mirror      1: value i > n / 2 is the conjugate of value n - i (one-sided input)
//   windowed    1: the signal is multiplied by the window
//   x_outer, x_inner, x_step   strides of i / inner, i % inner and of the values of a line
// Arguments that only P_LAST 1 uses:
//   n_out       values of a line that are stored
//   y_parts     1: only real parts are stored, 2: complex numbers
//   scale       divisor of the results
//   y_outer, y_inner, y_step   strides, as those of x
//
// @split
// @variant P_RADIX=4 P_FIRST=1 P_LAST=0 P_T=1 P_VEC=1
// @variant P_RADIX=2 P_FIRST=0 P_LAST=1 P_T=10 P_VEC=1
// @variant P_RADIX=0 P_FIRST=1 P_LAST=1 P_T=11 P_VEC=1
// @variant P_RADIX=0 P_FIRST=0 P_LAST=0 P_T=1 P_VEC=1
#include "common/number.clh"

typedef CAT(NUM, 2) complex_num;

#if P_T == 11
#define HALF_PI M_PI_2
#else
#define HALF_PI M_PI_2_F
#endif

__kernel void dft_table(__global num *table, const long table_off, const int n, const float sign)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        // By symmetry, only angles up to pi / 4 are needed.
        const int quarter = 4 * i / n, rest = 4 * i - quarter * n;
        const int near = min(rest, n - rest);
        const num angle = (num)near / (num)n * HALF_PI;
        num c = cos(angle), s = sin(angle);
        if (near != rest) {
            const num t = c;
            c = s;
            s = t;
        }
        const complex_num v = quarter == 0   ? (complex_num)(c, s)
                              : quarter == 1 ? (complex_num)(-s, c)
                              : quarter == 2 ? (complex_num)(-c, -s)
                                             : (complex_num)(s, -c);
        vstore2((complex_num)(v.x, v.y * (num)sign), i, table + table_off);
    }
}

static inline complex_num times(const complex_num a, const complex_num b)
{
    return (complex_num)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

#if P_FIRST
typedef elem from_elem;
#define FETCH(i)                                                                                   \
    fetch(from, i, n, n_in, x_parts, mirror, x_step, windowed ? window + window_off : 0)
static inline complex_num fetch(__global const elem *from, const int i, const int n, const int n_in,
                                const int parts, const int mirror, const long step,
                                __global const elem *window)
{
    const bool mirrored = mirror && i > n / 2;
    const int at = mirrored ? n - i : i;
    if (at >= n_in) return (complex_num)(0, 0);
    __global const elem *p = from + at * step * parts;
    complex_num v = (complex_num)(LOAD1(p), 0);
    if (parts == 2) v.y = LOAD1(p + 1);
    v.y = mirrored ? -v.y : v.y;
    return window ? v * (num)LOAD1(window + at) : v;
}
#else
typedef num from_elem;
#define FETCH(i) vload2(i, from)
#endif

#if P_LAST
typedef elem to_elem;
#define PUT(i, v) put(to, i, v, n_out, y_parts, scale, y_step)
static inline void put(__global elem *to, const int i, const complex_num v, const int n_out,
                       const int parts, const int scale, const long step)
{
    if (i >= n_out) return;
    __global elem *p = to + i * step * parts;
    STORE1(v.x / (num)scale, p);
    if (parts == 2) STORE1(v.y / (num)scale, p + 1);
}
#else
typedef num to_elem;
#define PUT(i, v) vstore2(v, i, to)
#endif

__kernel void dft_pass(__global const from_elem *x, const long x_off, __global to_elem *y,
                       const long y_off, __global const num *table, const long table_off,
                       __global const elem *window, const long window_off, const int lines,
                       const int inner, const int n, const int l, const int radix, const float sign,
                       const int n_in, const int x_parts, const int mirror, const int windowed,
                       const long x_outer, const long x_inner, const long x_step, const int n_out,
                       const int y_parts, const int scale, const long y_outer, const long y_inner,
                       const long y_step)
{
    const int m = n / (l * radix);
    __global const num *w = table + table_off;
    for (int line = get_global_id(1); line < lines; line += get_global_size(1)) {
#if P_FIRST
        __global const from_elem *from =
            x + x_off + (line / inner * x_outer + line % inner * x_inner) * x_parts;
#else
        __global const from_elem *from = x + x_off + (long)line * n * 2;
#endif
#if P_LAST
        __global to_elem *to =
            y + y_off + (line / inner * y_outer + line % inner * y_inner) * y_parts;
#else
        __global to_elem *to = y + y_off + (long)line * n * 2;
#endif
#if P_RADIX
        for (int i = get_global_id(0); i < l * m; i += get_global_size(0)) {
            const int q = i % l, first = i / l * l * P_RADIX + q;
            const complex_num a = FETCH(i), b = times(FETCH(i + l * m), vload2(q * m, w));
#if P_RADIX == 2
            PUT(first, a + b);
            PUT(first + l, a - b);
#else
            const complex_num c = times(FETCH(i + 2 * l * m), vload2(2 * q * m, w)),
                              d = times(FETCH(i + 3 * l * m), vload2(3 * q * m, w));
            const complex_num ac = a + c, a_c = a - c, bd = b + d, b_d = b - d;
            const complex_num rotated = (complex_num)(-b_d.y, b_d.x) * (num)sign;
            PUT(first, ac + bd);
            PUT(first + l, a_c + rotated);
            PUT(first + 2 * l, ac - bd);
            PUT(first + 3 * l, a_c - rotated);
#endif
        }
#else
        const int length = l * radix;
        for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
            const int position = i % length, begin = position % l + i / length * l;
            complex_num sum = (complex_num)(0, 0);
            int twiddle_index = 0;
            for (int s = 0; s < radix; ++s) {
                sum += times(FETCH(begin + l * m * s), vload2(twiddle_index * m, w));
                twiddle_index += position;
                twiddle_index = twiddle_index >= length ? twiddle_index - length : twiddle_index;
            }
            PUT(i, sum);
        }
#endif
    }
}
