/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL layer that fails calls: layers/opencl_faults.c, loaded by the OpenCL loader itself.
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

/* The functions of the layer. From now on call n (from 0) that can fail fails once, with this
 * OpenCL error; n -1: none. Live objects are counted as references. */
void opencl_faults_arm(long n, int code);
long opencl_faults_n_calls(void); /* since it was armed */
bool opencl_faults_has_fired(void);
long opencl_faults_n_live(opencl_faults_kind kind);

/* The same for tests, which reach them through the loader's copy of the layer. */
typedef struct opencl_faults {
    __typeof__(&opencl_faults_arm) arm;
    __typeof__(&opencl_faults_n_calls) n_calls;
    __typeof__(&opencl_faults_has_fired) has_fired;
    __typeof__(&opencl_faults_n_live) n_live;
} opencl_faults;

/* Puts the layer between the library and the drivers. Before the first OpenCL call of the
 * process; false when this machine's OpenCL loader knows no layers. */
bool opencl_faults_open(opencl_faults *out_faults);
/* All live objects together, events and programs too. */
long opencl_faults_total_live(const opencl_faults *faults);

#endif
