/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a timeline in the JSON format of Chrome's trace viewer and Perfetto: "complete" events on
 * two tracks, one for the host and one for the device.
 */
#ifndef CLTOOL_TRACE_H
#define CLTOOL_TRACE_H

#include "failure.h"

typedef struct trace {
    json_t *events; /* NULL: switched off */
} trace;

void trace_begin(trace *t, bool on);
/* Adds an event to the host's track; times are in microseconds, of the same clock on both tracks.
 */
void trace_host(trace *t, const char *name, double start_us, double duration_us);
/* Adds an event to the device's track, with the name and operator of its node. */
void trace_device(trace *t, const char *name, const char *node, const char *op_type,
                  double start_us, double duration_us);
int trace_write(const trace *t, const char *path);
void trace_free(trace *t);

#endif
