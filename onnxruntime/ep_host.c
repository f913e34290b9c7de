/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors and log messages between ONNX Runtime, the provider and the library.
 */
#include "ep_host.h"

#include <stdio.h>

#define LOG_BYTES 2048

clg_status ep_from_ort(const ep_host *host, OrtStatus *status)
{
    if (status == NULL) return CLG_OK;
    error_write("ONNX Runtime: %s", host->api->GetErrorMessage(status));
    host->api->ReleaseStatus(status);
    return CLG_ERROR_INTERNAL;
}

clg_status ep_from_clg(clg_status status)
{
    if (status == CLG_OK) return CLG_OK;
    error_write("%s", clg_last_error());
    if (clg_last_hint()[0] != '\0') error_hint("%s", clg_last_hint());
    return status;
}

/* Returns the code of ONNX Runtime for a status. */
static OrtErrorCode ort_code(clg_status status)
{
    switch (status) {
    case CLG_ERROR_INVALID_ARGUMENT:
    case CLG_ERROR_SHAPE:
    case CLG_ERROR_DATA: return ORT_INVALID_ARGUMENT;
    case CLG_ERROR_INVALID_MODEL: return ORT_INVALID_GRAPH;
    case CLG_ERROR_UNSUPPORTED_OPERATOR:
    case CLG_ERROR_UNSUPPORTED_ATTRIBUTE:
    case CLG_ERROR_UNSUPPORTED_DTYPE: return ORT_NOT_IMPLEMENTED;
    case CLG_ERROR_IO: return ORT_NO_SUCHFILE;
    default: return ORT_EP_FAIL;
    }
}

OrtStatus *ep_to_ort(const ep_host *host, clg_status status)
{
    if (status == CLG_OK) return NULL;
    char text[ERROR_TEXT_BYTES + ERROR_HINT_BYTES + 64];
    const char *hint = error_hint_text();
    (void)snprintf(text, sizeof text, "clgraph: %s (%s)%s%s", error_text(), clg_status_name(status),
                   hint[0] != '\0' ? "; " : "", hint);
    return host->api->CreateStatus(ort_code(status), text);
}

void ep_log(const ep_host *host, OrtLoggingLevel level, const char *format, ...)
{
    if (host->logger == NULL) return;
    OrtLoggingLevel lowest = ORT_LOGGING_LEVEL_FATAL;
    OrtStatus *status = host->api->Logger_GetLoggingSeverityLevel(host->logger, &lowest);
    if (status == NULL && level >= lowest) {
        char text[LOG_BYTES];
        int start = snprintf(text, sizeof text, "clgraph: ");
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text + start, sizeof text - (size_t)start, format, args);
        va_end(args);
        status =
            host->api->Logger_LogMessage(host->logger, level, text, ORT_FILE, __LINE__, EP_NAME);
    }
    if (status != NULL) host->api->ReleaseStatus(status);
}

/* ---- the library's log ----------------------------------------------------------------------- */

/* The callback of clg_set_log. */
static void forward(void *user, clg_log_level level, const char *message)
{
    const OrtLoggingLevel levels[] = {ORT_LOGGING_LEVEL_ERROR, ORT_LOGGING_LEVEL_WARNING,
                                      ORT_LOGGING_LEVEL_INFO, ORT_LOGGING_LEVEL_VERBOSE};
    ep_log(user, levels[level], "%s", message);
}

void ep_log_attach(ep_host *host)
{
    static const clg_log_level levels[] = {CLG_LOG_DEBUG, CLG_LOG_INFO, CLG_LOG_WARNING,
                                           CLG_LOG_ERROR, CLG_LOG_ERROR};
    OrtLoggingLevel lowest = ORT_LOGGING_LEVEL_WARNING;
    void *user = NULL;
    clg_log_callback current = clg_get_log(&user);
    if (host->logger == NULL || (current != NULL && user != host)) return;
    OrtStatus *status = host->api->Logger_GetLoggingSeverityLevel(host->logger, &lowest);
    if (status != NULL) host->api->ReleaseStatus(status);
    if (lowest <= ORT_LOGGING_LEVEL_FATAL) clg_set_log(forward, host, levels[lowest]);
}

void ep_log_detach(ep_host *host)
{
    void *user = NULL;
    if (clg_get_log(&user) != NULL && user == host) clg_set_log(NULL, NULL, CLG_LOG_ERROR);
}
