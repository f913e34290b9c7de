// SPDX-License-Identifier: Apache-2.0
//
// Keeps a thread of a CPU device's driver awake between two runs (src/ocl/queue/spin_wait.c).
//
//   spin_wait  returns as soon as *word is not `expected`, and after n_reads reads at the latest.
//              The host changes the word while the kernel runs, hence volatile. The address of each
//              read depends on the value read before, so that a read takes the latency of a cache,
//              about 5 cycles, and leaves the rest of the core to its other thread
// NDRange: one work-item.
//
// @variant

__kernel void spin_wait(__global const volatile int *word, const int expected, const int n_reads)
{
    int difference = 0;
    for (int i = 0; i < n_reads && difference == 0; i++) difference = word[difference] ^ expected;
}
