// SPDX-License-Identifier: Apache-2.0
//
// Tests whether launches of parts of an NDRange see the whole (cl/lowering/launch_part.clh), which
// takes global offsets that the driver honours.
//
//   part_probe  a work-item stores what the work-item functions return, four bits each, to
//               y[global id 0 + global size 0 * global id 1]: ids and sizes below 16
// NDRange: two dimensions.
//
// @split
// @variant

__kernel void part_probe(__global uint *y)
{
    uint seen = 0;
    for (uint d = 0; d < 2; d++) {
        seen = seen << 4 | get_group_id(d);
        seen = seen << 4 | get_num_groups(d);
        seen = seen << 4 | get_global_id(d);
        seen = seen << 4 | get_global_size(d);
    }
    y[get_global_id(0) + get_global_size(0) * get_global_id(1)] = seen;
}
