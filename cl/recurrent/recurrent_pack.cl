// SPDX-License-Identifier: Apache-2.0
//
// Packs the weights and biases of recurrent cells for recurrent_simd.cl and recurrent_simt.cl.
//
// Parameters
//   P_T, P_VEC  see common/number.clh; P_VEC is 1
//
// recurrent_pack_lanes: packs gates gate0 .. gate0 + gates - 1 of R as panels for
//   recurrent_simd.cl: [d][panel][k][units * gates vectors][lane], dir_elems elements for each
//   direction d. Lane `lane` of vector v belongs to gate v % gates of unit
//   (panel * units + v / gates) * lanes + lane; it is 0 where that is not below `hidden`.
//   NDRange: panels, hidden (k), n_dirs
//   r           ONNX's R [n_dirs][all_gates * hidden][hidden]
//   packed      the result
//   n_dirs, hidden, all_gates, gate0, gates
//   units       vectors of units in a panel
//   panels      panels of a direction
//   lanes       lanes of a vector
//   dir_elems   see above
// recurrent_pack_fours: packs R as [d][k / 4][gate][unit][k % 4], 0 where k is not below `hidden`.
//   NDRange: hidden (unit), ceil(hidden / 4), n_dirs * gates
//   r           ONNX's R [n_dirs][gates * hidden][hidden]
//   packed      the result
//   n_dirs, hidden, gates
// recurrent_pack_bias: computes [d][width] = Wb + Rb, without Rb from element `joined` of a
//   direction on. NDRange: n_dirs * width
//   b           ONNX's B [n_dirs][2 * width]
//   packed      the result
//   n_dirs
//   width       gates * hidden
//   joined      see above
// Every dimension of an NDRange may be smaller than its work.
//
// @variant P_T=1 P_VEC=1
// @variant P_T=10 P_VEC=1
// @variant P_T=11 P_VEC=1

#include "common/number.clh"

__kernel void recurrent_pack_lanes(__global const elem *r, const long r_off, __global elem *packed,
                                   const long packed_off, const int n_dirs, const int hidden,
                                   const int all_gates, const int gate0, const int gates,
                                   const int units, const int panels, const int lanes,
                                   const long dir_elems)
{
    const int vectors = units * gates;
    for (int d = get_global_id(2); d < n_dirs; d += get_global_size(2))
        for (int k = get_global_id(1); k < hidden; k += get_global_size(1))
            for (int p = get_global_id(0); p < panels; p += get_global_size(0)) {
                __global elem *to =
                    packed + packed_off + d * dir_elems + ((long)p * hidden + k) * vectors * lanes;
                for (int v = 0; v < vectors; ++v)
                    for (int lane = 0; lane < lanes; ++lane) {
                        const int unit = (p * units + v / gates) * lanes + lane;
                        const long row = ((long)d * all_gates + gate0 + v % gates) * hidden + unit;
                        STORE1(unit < hidden ? LOAD1(r + r_off + row * hidden + k) : (num)0,
                               to + v * lanes + lane);
                    }
            }
}

__kernel void recurrent_pack_fours(__global const elem *r, const long r_off, __global elem *packed,
                                   const long packed_off, const int n_dirs, const int hidden,
                                   const int gates)
{
    const int fours = (hidden + 3) / 4;
    for (int z = get_global_id(2); z < n_dirs * gates; z += get_global_size(2))
        for (int q = get_global_id(1); q < fours; q += get_global_size(1))
            for (int unit = get_global_id(0); unit < hidden; unit += get_global_size(0)) {
                const int d = z / gates, gate = z % gates;
                __global const elem *from = r + r_off + ((long)z * hidden + unit) * hidden;
                __global elem *to = packed + packed_off +
                                    ((((long)d * fours + q) * gates + gate) * hidden + unit) * 4;
                for (int i = 0; i < 4; ++i)
                    STORE1(q * 4 + i < hidden ? LOAD1(from + q * 4 + i) : (num)0, to + i);
            }
}

__kernel void recurrent_pack_bias(__global const elem *b, const long b_off, __global elem *packed,
                                  const long packed_off, const int n_dirs, const int width,
                                  const int joined)
{
    for (int i = get_global_id(0); i < n_dirs * width; i += get_global_size(0)) {
        const int d = i / width, at = i % width;
        __global const elem *from = b + b_off + (long)d * 2 * width + at;
        STORE1((num)LOAD1(from) + (at < joined ? (num)LOAD1(from + width) : (num)0),
               packed + packed_off + i);
    }
}
