/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that exports two functions with OpenCL's names and nothing else.
 */
int clFlush(void);
int clFinish(void);

int clFlush(void) { return 11; }
int clFinish(void) { return 12; }
