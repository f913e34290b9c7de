/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies option and result structs between the library and callers, which may have been compiled
 * with another version of the public header, where these structs are shorter or longer.
 */
#include "api/arguments.h"

#include <string.h>

clg_status api_read_options(const char *function, const void *given, size_t given_bytes,
                            void *out_options, size_t options_bytes)
{
    if (given_bytes < sizeof(size_t) || given_bytes > 4096)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "%s: struct_size of the options is %zu: start from the INIT macro",
                         function, given_bytes);
    const unsigned char *bytes = given;
    for (size_t i = options_bytes; i < given_bytes; i++)
        if (bytes[i])
            return error_set(
                CLG_ERROR_INVALID_ARGUMENT,
                "%s: the options have a field that this version of clgraph does not know",
                function);
    memcpy(out_options, given, given_bytes < options_bytes ? given_bytes : options_bytes);
    return CLG_OK;
}

clg_status api_read_limits(const char *function, const clg_limits *given, clg_limits *out_limits)
{
    *out_limits = (clg_limits)CLG_LIMITS_INIT;
    return given ? api_read_options(function, given, given->struct_size, out_limits,
                                    sizeof *out_limits)
                 : CLG_OK;
}

clg_status api_write_result(const char *function, const void *ours, size_t ours_bytes,
                            void *out_result)
{
    size_t theirs_bytes;
    memcpy(&theirs_bytes, out_result, sizeof theirs_bytes);
    if (theirs_bytes < sizeof theirs_bytes || theirs_bytes > 4096)
        return error_set(CLG_ERROR_INVALID_ARGUMENT,
                         "%s: struct_size of the result is %zu: start from the INIT macro",
                         function, theirs_bytes);
    size_t n = theirs_bytes < ours_bytes ? theirs_bytes : ours_bytes;
    memset((char *)out_result + sizeof n, 0, theirs_bytes - sizeof n);
    memcpy((char *)out_result + sizeof n, (const char *)ours + sizeof n, n - sizeof n);
    return CLG_OK;
}
