/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the arguments of public functions, and copies their option and result structs.
 */
#ifndef CLG_API_ARGUMENTS_H
#define CLG_API_ARGUMENTS_H

#include "base/threads.h"

/* Makes the calling function return INVALID_ARGUMENT, with a message that names it and the
 * argument, if the argument is NULL. */
#define API_REQUIRE(argument)                                                                      \
    do {                                                                                           \
        if (!(argument))                                                                           \
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: " #argument " is NULL", __func__);   \
    } while (0)

/* As API_REQUIRE, for a context, session or stream, or a value that must be on a device: makes the
 * calling function return FORKED in the child of a fork, where they cannot be used. */
#define API_REQUIRE_DEVICE(argument)                                                               \
    do {                                                                                           \
        API_REQUIRE(argument);                                                                     \
        CLG_TRY(fork_check());                                                                     \
    } while (0)

/* Copies a caller's option struct: the bytes that both the caller's version of the struct and ours
 * have. INVALID_ARGUMENT if fields beyond ours are not zero. */
clg_status api_read_options(const char *function, const void *given, size_t given_bytes,
                            void *out_options, size_t options_bytes);
/* Copies a caller's options to `out`, which holds the defaults and is unchanged if given is NULL.
 * Makes the calling function return the status on an error. */
#define API_OPTIONS(given, out)                                                                    \
    do {                                                                                           \
        if (given)                                                                                 \
            CLG_TRY(                                                                               \
                api_read_options(__func__, (given), (given)->struct_size, &(out), sizeof(out)));   \
    } while (0)

/* Copies the limits of a caller's options; NULL: none. */
clg_status api_read_limits(const char *function, const clg_limits *given, clg_limits *out_limits);

/* Copies a result to the caller's struct, whose first member is its size: the bytes that both
 * versions of the struct have. Sets the rest of the caller's struct to zero. */
clg_status api_write_result(const char *function, const void *ours, size_t ours_bytes,
                            void *out_result);

#endif
