/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells clang-tidy that these functions of src/base return an error: the analyzer sees one file at
 * a time and would otherwise assume that they may return CLG_OK. Included before the files of src/
 * by tools/lint.sh.
 */
#include "../../src/base/cancel.h"
#include "../../src/base/error.h"
#include "../../src/base/system.h"

#define error_set_v(status, ...) ((void)error_set_v((status), __VA_ARGS__), (status))
#define error_prefix(status, ...) ((void)error_prefix((status), __VA_ARGS__), (status))
#define limits_leave(scope, status) ((void)limits_leave((scope), (status)), (status))
#define error_no_memory(bytes) ((void)error_no_memory(bytes), CLG_ERROR_OUT_OF_HOST_MEMORY)
#define sys_error(...) ((void)sys_error(__VA_ARGS__), CLG_ERROR_IO)
