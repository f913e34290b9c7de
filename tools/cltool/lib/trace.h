/* SPDX-License-Identifier: Apache-2.0
 *
 * A timeline for Chrome's and Perfetto's viewers: JSON of "complete" events, a row for the host and
 * one for the device.
 */
#ifndef CLTOOL_TRACE_H
#define CLTOOL_TRACE_H

#include "failure.h"

typedef struct trace {
    json_t *events; /* NULL: switched off */
} trace;

void trace_begin(trace *t, bool on);
/* Add an event in the row of the host or the device; times in microseconds, of one clock. */
void trace_host(trace *t, const char *name, double start_us, double duration_us);
void trace_device(trace *t, const char *name, const char *node, const char *op_type,
                  double start_us, double duration_us);
int trace_write(const trace *t, const char *path);
void trace_free(trace *t);

#endif
