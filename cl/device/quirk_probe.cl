// SPDX-License-Identifier: Apache-2.0
//
// Kernels that src/ocl/probe_quirks.c times. Results do not matter.
//
// Parameters
//   P_NONCE  a number that no build had before, so that no cache of the driver's has the program
// Kernels
//   few, many  a launch with 2 arguments, and with 33. NDRange: one work-item
//
// @variant P_NONCE=1

__kernel void few(__global int *y, const int a) { y[0] = a + P_NONCE; }

#define EIGHT(n)                                                                                   \
    const int n##0, const int n##1, const int n##2, const int n##3, const int n##4,                \
        const int n##5, const int n##6, const int n##7
#define SUM(n) (n##0 + n##1 + n##2 + n##3 + n##4 + n##5 + n##6 + n##7)

__kernel void many(__global int *y, EIGHT(a), EIGHT(b), EIGHT(c), EIGHT(d))
{
    y[0] = SUM(a) + SUM(b) + SUM(c) + SUM(d) + P_NONCE;
}
