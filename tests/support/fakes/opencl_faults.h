/* SPDX-License-Identifier: Apache-2.0
 *
 * Controls the OpenCL layer that makes calls fail and counts live objects
 * (tests/layers/opencl_faults.c). The OpenCL loader loads the layer.
 */
#ifndef CLG_TESTS_OPENCL_FAULTS_H
#define CLG_TESTS_OPENCL_FAULTS_H

#include <stdbool.h>

typedef enum opencl_faults_kind {
    OPENCL_FAULTS_CONTEXTS,
    OPENCL_FAULTS_QUEUES,
    OPENCL_FAULTS_BUFFERS,
    OPENCL_FAULTS_PROGRAMS,
    OPENCL_FAULTS_KERNELS,
    OPENCL_FAULTS_EVENTS,
    OPENCL_FAULTS_SUB_DEVICES,
    OPENCL_FAULTS_KINDS
} opencl_faults_kind;

/* Functions of the layer. opencl_faults_arm makes one call return the OpenCL error `code`: the n-th
 * from now on, from 0, of those that can fail; n -1: none. */
void opencl_faults_arm(long n, int code);
long opencl_faults_n_calls(void);   /* calls that can fail, since the last opencl_faults_arm */
bool opencl_faults_has_fired(void); /* since the last opencl_faults_arm */
/* Returns the number of live objects of a kind; an object counts once per reference. */
long opencl_faults_n_live(opencl_faults_kind kind);

/* Pointers to the functions of the copy of the layer that the OpenCL loader has loaded. */
typedef struct opencl_faults {
    __typeof__(&opencl_faults_arm) arm;
    __typeof__(&opencl_faults_n_calls) n_calls;
    __typeof__(&opencl_faults_has_fired) has_fired;
    __typeof__(&opencl_faults_n_live) n_live;
} opencl_faults;

/* Installs the layer between the library and the drivers. Call before the first OpenCL call of the
 * process. Returns false when this machine's OpenCL loader does not support layers. */
bool opencl_faults_open(opencl_faults *out_faults);
/* Returns the number of live objects of all kinds. */
long opencl_faults_total_live(const opencl_faults *faults);

#endif
