/* SPDX-License-Identifier: Apache-2.0
 *
 * Controls the OpenCL layer in which a device is lost (tests/layers/opencl_lost.c). The OpenCL
 * loader loads the layer.
 */
#ifndef CLG_TESTS_OPENCL_LOST_H
#define CLG_TESTS_OPENCL_LOST_H

#include <stdbool.h>

/* The calls of which the N-th loses the device. */
typedef enum opencl_lost_kind {
    OPENCL_LOST_LAUNCHES,
    OPENCL_LOST_WRITES,
    OPENCL_LOST_READS,   /* clEnqueueReadBuffer, clEnqueueMapBuffer */
    OPENCL_LOST_WAITS,   /* clFinish, clWaitForEvents: what was enqueued is lost unseen */
    OPENCL_LOST_CALLS,   /* all calls with objects, and those that create them */
    OPENCL_LOST_KERNELS, /* clCreateKernel */
    OPENCL_LOST_KINDS
} opencl_lost_kind;

/* A code that stands for several, as NVIDIA's driver returns them: CL_OUT_OF_RESOURCES from
 * transfers, waits and creations, CL_INVALID_COMMAND_QUEUE from other commands, CL_INVALID_CONTEXT
 * where programs and queues are created. */
#define OPENCL_LOST_MIXED 1

/* A code that loses nothing: the call waits for opencl_lost_release, as of a device that hangs. */
#define OPENCL_LOST_STALL 2

/* Functions of the layer. opencl_lost_arm makes the n-th call of a kind, from now on, from 0, lose
 * the device: that call and all later ones with objects that exist then fail with the OpenCL error
 * `code`. Objects of contexts that are created later work. n -1: no call. */
void opencl_lost_arm(opencl_lost_kind kind, long n, int code);
/* Makes a loss one of the objects of the call's OpenCL context alone, as of one of several devices;
 * false: of all. */
void opencl_lost_alone(bool alone);
/* Makes the call that loses the device return after another thread's call has failed, or 20 ms. */
void opencl_lost_late(bool late);
/* Lets the call go on that OPENCL_LOST_STALL keeps. */
void opencl_lost_release(void);
/* Makes the drivers list no device, and create no context. */
void opencl_lost_hide(bool hides);
bool opencl_lost_has_fired(void);                /* since the last opencl_lost_arm */
int opencl_lost_fired_code(void);                /* what the call that lost the device returned */
long opencl_lost_n_calls(opencl_lost_kind kind); /* since the last opencl_lost_arm */
/* Returns the number of calls with lost objects since the last opencl_lost_arm, without the one
 * that lost the device, releases, and one clFinish of each queue with commands in flight. */
long opencl_lost_n_touches(void);
/* Returns the number of live objects, and of those among them that are lost. */
long opencl_lost_n_live(void);
long opencl_lost_n_lost(void);

/* Pointers to the functions of the copy of the layer that the OpenCL loader has loaded. */
typedef struct opencl_lost {
    __typeof__(&opencl_lost_arm) arm;
    __typeof__(&opencl_lost_alone) alone;
    __typeof__(&opencl_lost_late) late;
    __typeof__(&opencl_lost_release) release;
    __typeof__(&opencl_lost_hide) hide;
    __typeof__(&opencl_lost_has_fired) has_fired;
    __typeof__(&opencl_lost_fired_code) fired_code;
    __typeof__(&opencl_lost_n_calls) n_calls;
    __typeof__(&opencl_lost_n_touches) n_touches;
    __typeof__(&opencl_lost_n_live) n_live;
    __typeof__(&opencl_lost_n_lost) n_lost;
} opencl_lost;

/* Installs the layer between the library and the drivers. Call before the first OpenCL call of the
 * process. Returns false when this machine's OpenCL loader does not support layers. */
bool opencl_lost_open(opencl_lost *out_lost);

#endif
