// SPDX-License-Identifier: Apache-2.0
//
// Keeps a thread of a CPU device's driver awake between two runs (src/ocl/queue/spin_wait.c).
//
//   spin_wait  returns as soon as words[1] is not `expected`, after n_rounds rounds at the latest.
//              The host changes words[1] while the kernel runs, hence volatile. words[0] is 0; the
//              address of each read depends on the one before, so that a round takes the latency
//              of the cache, about 5 cycles, and leaves the rest of the core to its other thread
// NDRange: one work-item.
//
// @variant

__kernel void spin_wait(__global const volatile int *words, const int expected, const int n_rounds)
{
    int at = 0;
    for (int i = 0; i < n_rounds && words[at + 1] == expected; i++) at = words[at];
}
