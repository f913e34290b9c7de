// SPDX-License-Identifier: Apache-2.0
//
// Packs matrices and weights into panels, the order in which the kernels of matrix products and
// convolutions for CPUs read them: a panel has `width` adjacent lines, stored element by element,
//
//   packed[z][panel][slice][row][column][i][line], with zeros for lines that do not exist, and for
//   channels that do not: channel slice * depth + i, i < depth
//
// A line is a row of A, a column of B, or an output channel; slices, rows, columns and depth number
// its elements: all of k, or input channels and the window.
//
// Parameters: those of common/types.clh; P_VEC is 1
//
// Arguments. Strides and offsets are in elements of x, from one to the next; sizes are >= 1.
//   batch, batch_in       matrices: z = z0 * batch_in + z1
//   lines, width          of a matrix, and of a panel
//   slices, rows, columns, depth
//   channels              > (slices - 1) * depth
//   length                elements of a line in a whole panel. A launch may pack only some of them:
//                         packed_off is then the offset of its first one
//   x, x_off, x_b0, x_b1, x_line, x_slice, x_row, x_column, x_channel
//   packed, packed_off    does not overlap x
//
// NDRange: one work-item per work-group. Dimension 0 covers panels, 1 slices, 2 batch; each may be
// any number >= 1. Local and private memory: none.
//
// @split
// @cpu
// @variant P_T=1 P_FMA=1 P_VEC=1
// @variant P_T=10 P_FMA=1 P_VEC=1
// @variant P_T=16 P_FMA=1 P_VEC=1

#include "common/types.clh"
#include "common/work_group.clh"

WORK_GROUP_SIZE(1, 1, 1)
__kernel void pack_panels(const int batch, const int batch_in, const int lines, const int width,
                          const int slices, const int rows, const int columns, const int depth,
                          const int channels, const int length, __global const elem *x,
                          const long x_off, const long x_b0, const long x_b1, const long x_line,
                          const long x_slice, const long x_row, const long x_column,
                          const long x_channel, __global elem *packed, const long packed_off)
{
    const int panels = (lines + width - 1) / width;
    for (int z = get_group_id(2); z < batch; z += get_num_groups(2))
        for (int panel = get_group_id(0); panel < panels; panel += get_num_groups(0)) {
            const int present = min(lines - panel * width, width);
            __global const elem *from = x + x_off + z / batch_in * x_b0 + z % batch_in * x_b1 +
                                        (long)panel * width * x_line;
            for (int slice = get_group_id(1); slice < slices; slice += get_num_groups(1)) {
                __global elem *to =
                    packed + packed_off +
                    (((long)z * panels + panel) * length + (long)slice * rows * columns * depth) *
                        width;
                for (int row = 0; row < rows; ++row)
                    for (int column = 0; column < columns; ++column)
                        for (int i = 0; i < depth; ++i, to += width) {
                            const int n = slice * depth + i < channels ? present : 0;
                            __global const elem *at = from + slice * x_slice + row * x_row +
                                                      column * x_column + i * x_channel;
                            for (int line = 0; line < n; ++line)
                                STORE1(LOAD1(at + line * x_line), to + line);
                            for (int line = n; line < width; ++line) STORE1(0.0f, to + line);
                        }
            }
        }
}
