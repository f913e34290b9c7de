/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX Runtime's tables of functions, and errors and log messages on the way between it, the
 * provider and the library. Inside of the provider a function returns a clg_status and records its
 * message as src/base/error.h says; what ONNX Runtime and the library report is copied there.
 */
#ifndef CLG_ONNXRUNTIME_EP_HOST_H
#define CLG_ONNXRUNTIME_EP_HOST_H

#include "base/error.h"

#include <onnxruntime_c_api.h>

/* The oldest version of the tables with all that the provider calls: ONNX Runtime 1.23. A newer
 * ONNX Runtime gives the table of this version too. */
#define EP_API_VERSION 23
#define EP_NAME "ClgraphExecutionProvider"

typedef struct ep_host {
    const OrtApi *api;
    const OrtEpApi *ep_api;
    const OrtLogger *logger; /* a session's, or the default one; may be NULL */
    int minor;               /* of ONNX Runtime's version, 23 for 1.23.2 */
} ep_host;

/* Versions of ONNX Runtime that repair what the provider works around (seen with the wheels of each
 * minor version from 1.23 to 1.32):
 * before 1.24 a subgraph does not know its node, and fused nodes of two graphs get one name;
 * before 1.27 a fused node lacks inputs that only subgraphs of its nodes read. */
#define EP_KNOWS_PARENTS 24
#define EP_KNOWS_IMPLICIT_INPUTS 27

/* Records the error of a call of ONNX Runtime and releases it; returns CLG_OK for NULL. */
clg_status ep_from_ort(const ep_host *host, OrtStatus *status);
/* Copies message and hint of the library's last error; returns the status. */
clg_status ep_from_clg(clg_status status);
/* Returns a new status of ONNX Runtime with the recorded message and hint; NULL for CLG_OK. */
OrtStatus *ep_to_ort(const ep_host *host, clg_status status);

/* As CLG_TRY, for calls of ONNX Runtime and of the library. */
#define EP_TRY_ORT(host, call) CLG_TRY(ep_from_ort((host), (call)))
#define EP_TRY_CLG(call) CLG_TRY(ep_from_clg(call))
#define EP_TRY_ORT_GOTO(host, call, label) CLG_TRY_GOTO(ep_from_ort((host), (call)), label)
#define EP_TRY_CLG_GOTO(call, label) CLG_TRY_GOTO(ep_from_clg(call), label)

/* Sends the library's log to ONNX Runtime's default logger, host->logger, with its level as it is
 * now, unless the application has a callback of its own. `host` stays where it is until
 * ep_log_detach. */
void ep_log_attach(ep_host *host);
void ep_log_detach(ep_host *host);
/* Logs "clgraph: ..." if the logger takes messages of that level. Failures are ignored. */
void ep_log(const ep_host *host, OrtLoggingLevel level, const char *format, ...) CLG_PRINTF(3, 4);

#endif
