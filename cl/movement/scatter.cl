// SPDX-License-Identifier: Apache-2.0
//
// Computes ScatterElements, ScatterND and TensorScatter: writes elements or rows of elements at
// indices. Before the launch, y holds a copy of the data.
//
// Parameters
//   P_SIZE, P_VEC, P_INDEX  see common/untyped.clh; P_FP64 is 0
//   P_INT     32 or 64: width of an index. A negative index counts from the end
//   P_RANK    scatter_elements: number of dimensions of the indices, 1..8; scatter_nd: coordinates
//             of an index, 1..8; tensor_scatter: 0
//   P_REDUCE  0 y = update; indices must not repeat. 1 add, 2 multiply, 3 min, 4 max: y = y op
//             update. Updates of the same element are then applied in their order: y is divided
//             among owners (work-items), each of which goes through all updates and applies those
//             to its part, so that results do not depend on scheduling
//   P_T       dtype of y, see common/number.clh; used only if P_REDUCE is not 0
//
// scatter_nd: y[index[k, 0], index[k, 1], ..., i] = updates[k, i]
//   tuples      number of k
//   inner       number of i
//   n<i>, s<i>  length and stride in y of the dimension of coordinate i
//   chunk, block        P_REDUCE 0: elements of a row, and rows, that a work-item copies per
//                       iteration
//   owners, per_owner   P_REDUCE > 0: owner o updates the rows whose offsets in y are in
//                       o * per_owner .. (o + 1) * per_owner - 1
// scatter_elements: y[i0, ..., index[i0, i1, ...], ...] = updates[i0, i1, ...]
//   m<i>, s<i>, t<i>    dimension i: length in updates, stride in y (0 for the axis), stride in
//                       updates. P_REDUCE > 0: m<i> of the axis is 1
//   axis, s_axis        length and stride in y of the axis
//   m_axis, t_axis      P_REDUCE > 0: its length and stride in updates
//   chunk               elements of updates that a work-item processes per iteration
//   owners, per_owner   P_REDUCE > 0: owner o updates positions o * per_owner to
//                       (o + 1) * per_owner - 1 of the axis
// tensor_scatter: y[p, write[p / per_batch] + j, i] = updates[p, j, i]
//   prefixes    number of p; per_batch: those of one batch
//   max_length  length in y of the dimension that is written
//   count, inner   numbers of j and i
//   circular    1: positions are modulo max_length; 0: positions beyond it are a fault
//   write_given 0: there are no write indices; they are 0
//   chunk, block   as for scatter_nd
// Other arguments; all lengths and strides are in elements:
//   index or write, x (the updates), y
//   fault, code    an update whose index is out of range is skipped, with fault[0] = code and
//                  fault[1] = the index
//
// Dimension 0 of the NDRange strides over chunks (scatter_nd with P_REDUCE > 0: elements of a row),
// dimension 1 over blocks or owners.
//
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=0 P_REDUCE=0 P_T=1
// @variant P_SIZE=4 P_VEC=16 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=2 P_REDUCE=0 P_T=1
// @variant P_SIZE=1 P_VEC=1 P_FP64=0 P_INDEX=64 P_INT=32 P_RANK=8 P_REDUCE=0 P_T=1
// @variant P_SIZE=4 P_VEC=1 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=3 P_REDUCE=1 P_T=1
// @variant P_SIZE=2 P_VEC=1 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=1 P_REDUCE=4 P_T=10
// @variant P_SIZE=8 P_VEC=1 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=2 P_REDUCE=3 P_T=7
// @variant P_SIZE=1 P_VEC=1 P_FP64=0 P_INDEX=32 P_INT=64 P_RANK=2 P_REDUCE=2 P_T=2
#include "common/for_each_dim.clh"
#include "common/untyped.clh"
#include "movement/indices.clh"
#include "common/number.clh"

#if P_REDUCE
// Computes *y = *y op *update; min and max propagate NaN.
static inline void reduce_into(__global elem *y, __global const elem *update)
{
    const num a = LOAD1(y), b = LOAD1(update);
#if P_REDUCE == 1
    STORE1((num)(a + b), y);
#elif P_REDUCE == 2
    STORE1((num)(a * b), y);
#elif P_REDUCE == 3
    STORE1(a < b || a != a ? a : b, y);
#else
    STORE1(a > b || a != a ? a : b, y);
#endif
}
#endif

#if P_RANK == 0

__kernel void tensor_scatter(const idx prefixes, const idx per_batch, const idx max_length,
                             const idx count, const idx inner, const int circular,
                             const int write_given, const int chunk, const int block,
                             __global const number *write, const long write_off,
                             __global const word *x, const long x_off, __global word *y,
                             const long y_off, __global int *fault, const int code)
{
    const idx rows = prefixes * count;
    x += x_off;
    y += y_off;
    write += write_off;
    for (idx first = (idx)get_global_id(1) * block; first < rows;
         first += (idx)get_global_size(1) * block)
        for (idx row = first; row < min(first + block, rows); ++row) {
            const idx p = row / count;
            const long start = write_given ? (long)write[p / per_batch] : 0;
            long at = start + (row - p * count);
            if (circular) at %= max_length;
            if (start < 0 || at >= max_length) {
                fault[0] = code;
                fault[1] = (int)start;
                continue;
            }
            copy_row(x + row * inner, true, y + (p * max_length + (idx)at) * inner, inner, chunk);
        }
}

#else

#if P_REDUCE

__kernel void scatter_nd(const idx tuples, const idx inner, RANK_UP(ND_PARAMS) const int owners,
                         const idx per_owner, __global const number *index, const long index_off,
                         __global const elem *x, const long x_off, __global elem *y,
                         const long y_off, __global int *fault, const int code)
{
    x += x_off;
    y += y_off;
    index += index_off;
    for (idx owner = get_global_id(1); owner < owners; owner += get_global_size(1))
        for (idx row = 0; row < tuples; ++row) {
            __global const number *tuple = index + row * P_RANK;
            bool exists = true;
            idx offset = 0;
            RANK_UP(ND_PLACE)
            if (!exists || offset / per_owner != owner) continue;
            for (idx i = get_global_id(0); i < inner; i += get_global_size(0))
                reduce_into(y + offset + i, x + row * inner + i);
        }
}

#else

__kernel void scatter_nd(const idx tuples, const idx inner, RANK_UP(ND_PARAMS) const int chunk,
                         const int block, __global const number *index, const long index_off,
                         __global const word *x, const long x_off, __global word *y,
                         const long y_off, __global int *fault, const int code)
{
    x += x_off;
    y += y_off;
    index += index_off;
    for (idx first = (idx)get_global_id(1) * block; first < tuples;
         first += (idx)get_global_size(1) * block)
        for (idx row = first; row < min(first + block, tuples); ++row) {
            __global const number *tuple = index + row * P_RANK;
            bool exists = true;
            idx offset = 0;
            RANK_UP(ND_PLACE)
            if (exists) copy_row(x + row * inner, true, y + offset, inner, chunk);
        }
}

#endif

#define ELEMENT_PARAMS(i) const idx m##i, const idx s##i, const idx t##i,
#define ELEMENT_COUNT(i) *m##i
#define ELEMENT_PLACE(i)                                                                           \
    to += rest % m##i * s##i;                                                                      \
    from += rest % m##i * t##i;                                                                    \
    rest /= m##i;

#if P_REDUCE

__kernel void scatter_elements(RANK_UP(ELEMENT_PARAMS) const idx axis, const idx s_axis,
                               const idx m_axis, const idx t_axis, const int chunk,
                               const int owners, const idx per_owner, __global const number *index,
                               const long index_off, __global const elem *x, const long x_off,
                               __global elem *y, const long y_off, __global int *fault,
                               const int code)
{
    const idx n = 1 RANK_UP(ELEMENT_COUNT);
    x += x_off;
    y += y_off;
    index += index_off;
    for (idx owner = get_global_id(1); owner < owners; owner += get_global_size(1))
        for (idx begin = (idx)get_global_id(0) * chunk; begin < n;
             begin += (idx)get_global_size(0) * chunk)
            for (idx i = begin; i < min(begin + chunk, n); ++i) {
                idx rest = i, from = 0, to = 0;
                RANK_DOWN(ELEMENT_PLACE)
                for (idx k = 0; k < m_axis; ++k, from += t_axis) {
                    const idx at = place(index[from], axis, fault, code);
                    if (at >= 0 && at / per_owner == owner)
                        reduce_into(y + to + at * s_axis, x + from);
                }
            }
}

#else

__kernel void scatter_elements(RANK_UP(ELEMENT_PARAMS) const idx axis, const idx s_axis,
                               const idx m_axis, const idx t_axis, const int chunk,
                               __global const number *index, const long index_off,
                               __global const word *x, const long x_off, __global word *y,
                               const long y_off, __global int *fault, const int code)
{
    const idx n = 1 RANK_UP(ELEMENT_COUNT);
    x += x_off;
    y += y_off;
    index += index_off;
    for (idx begin = (idx)get_global_id(0) * chunk; begin < n;
         begin += (idx)get_global_size(0) * chunk)
        for (idx i = begin; i < min(begin + chunk, n); ++i) {
            idx rest = i, from = 0, to = 0;
            RANK_DOWN(ELEMENT_PLACE)
            const idx at = place(index[from], axis, fault, code);
            if (at >= 0) y[to + at * s_axis] = x[from];
        }
}

#endif
#endif
