// SPDX-License-Identifier: Apache-2.0
//
// Computes Gather, GatherElements and GatherND: reads elements or rows of elements at indices.
//
// Parameters
//   P_SIZE, P_VEC, P_INDEX  see common/untyped.clh; P_FP64 is 0
//   P_INT    32 or 64: width of an index. A negative index counts from the end
//   P_RANK   gather_elements: number of dimensions of the indices, 1..8; gather_nd: coordinates of
//            an index, 1..8; gather: 0
//
// gather: y[o, k, i] = x[o, index[k], i]
//   outer     number of o
//   axis      length of the gathered dimension
//   picks     number of indices
//   inner     number of i
//   s_outer   stride of o in x; x is dense otherwise
// gather_nd: y[k, i] = x[k / per_batch, index[k, 0], index[k, 1], ..., i]
//   tuples    number of k
//   inner     number of i
//   per_batch, s_batch   tuples of a batch, and its stride in x
//   n<i>, s<i>           length and stride in x of the dimension of coordinate i
// gather_elements: y[i0, i1, ...] = x[i0, ..., index[i0, i1, ...], ...]
//   m<i>, s<i>    length in y and stride in x of dimension i; the stride is 0 for the gathered one
//   axis, s_axis  length and stride in x of the gathered dimension
// Other arguments; all lengths and strides are in elements:
//   x, index, y
//   chunk     adjacent elements that a work-item copies per iteration. Dimension 0 of the NDRange
//             strides over chunks
//   block     rows (of inner elements) that it copies per iteration. Dimension 1 strides over
//             blocks
//   fault, code   an index that is out of range gives zeros, and sets fault[0] = code and
//                 fault[1] = the index
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=0
// @variant P_SIZE=1 P_VEC=1 P_FP64=0 P_INDEX=64 P_INT=32 P_RANK=8
// @variant P_SIZE=8 P_VEC=4 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=1
#include "common/for_each_dim.clh"
#include "common/untyped.clh"
#include "movement/indices.clh"

#if P_RANK == 0

__kernel void gather(const idx outer, const idx axis, const idx picks, const idx inner,
                     const idx s_outer, const int chunk, const int block, __global const word *x,
                     const long x_off, __global const number *index, const long index_off,
                     __global word *y, const long y_off, __global int *fault, const int code)
{
    const idx rows = outer * picks;
    x += x_off;
    y += y_off;
    index += index_off;
    for (idx first = (idx)get_global_id(1) * block; first < rows;
         first += (idx)get_global_size(1) * block)
        for (idx row = first; row < min(first + block, rows); ++row) {
            const idx o = row / picks;
            const idx at = place(index[row - o * picks], axis, fault, code);
            copy_row(x + (o * s_outer + max(at, (idx)0) * inner), at >= 0, y + row * inner, inner,
                     chunk);
        }
}

#else

__kernel void gather_nd(const idx tuples, const idx inner, const idx per_batch, const idx s_batch,
                        RANK_UP(ND_PARAMS) const int chunk, const int block, __global const word *x,
                        const long x_off, __global const number *index, const long index_off,
                        __global word *y, const long y_off, __global int *fault, const int code)
{
    x += x_off;
    y += y_off;
    index += index_off;
    for (idx first = (idx)get_global_id(1) * block; first < tuples;
         first += (idx)get_global_size(1) * block)
        for (idx row = first; row < min(first + block, tuples); ++row) {
            __global const number *tuple = index + row * P_RANK;
            bool exists = true;
            idx offset = row / per_batch * s_batch;
            RANK_UP(ND_PLACE)
            copy_row(x + offset, exists, y + row * inner, inner, chunk);
        }
}

#define ELEMENT_PARAMS(i) const idx m##i, const idx s##i,
#define ELEMENT_COUNT(i) *m##i
#define ELEMENT_PLACE(i)                                                                           \
    from += rest % m##i * s##i;                                                                    \
    rest /= m##i;

__kernel void gather_elements(RANK_UP(ELEMENT_PARAMS) const idx axis, const idx s_axis,
                              const int chunk, __global const word *x, const long x_off,
                              __global const number *index, const long index_off, __global word *y,
                              const long y_off, __global int *fault, const int code)
{
    const idx n = 1 RANK_UP(ELEMENT_COUNT);
    x += x_off;
    y += y_off;
    index += index_off;
    for (idx begin = (idx)get_global_id(0) * chunk; begin < n;
         begin += (idx)get_global_size(0) * chunk)
        for (idx i = begin; i < min(begin + chunk, n); ++i) {
            idx rest = i, from = 0;
            RANK_DOWN(ELEMENT_PLACE)
            const idx at = place(index[i], axis, fault, code);
            y[i] = at < 0 ? (word)0 : x[from + at * s_axis];
        }
}

#endif
