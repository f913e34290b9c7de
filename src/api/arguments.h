/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and copies arguments of public functions.
 */
#ifndef CLG_API_ARGUMENTS_H
#define CLG_API_ARGUMENTS_H

#include "base/error.h"

/* Returns INVALID_ARGUMENT, naming the function and the argument, when a pointer is NULL. */
#define API_REQUIRE(argument)                                                                      \
    do {                                                                                           \
        if (!(argument))                                                                           \
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "%s: " #argument " is NULL", __func__);   \
    } while (0)

/* Copies a caller's option struct, as many bytes as both versions of the struct have. Rejects
 * non-zero fields that this version does not know. */
clg_status api_read_options(const char *function, const void *given, size_t given_bytes,
                            void *out_options, size_t options_bytes);
/* Copies a caller's options into `out`, which has the defaults: it keeps them if given is NULL. */
#define API_OPTIONS(given, out)                                                                    \
    do {                                                                                           \
        if (given)                                                                                 \
            CLG_TRY(                                                                               \
                api_read_options(__func__, (given), (given)->struct_size, &(out), sizeof(out)));   \
    } while (0)

/* Fills a caller's result struct, which begins with its size: copies as many bytes as both versions
 * of the struct have, and sets the rest to zero. */
clg_status api_write_result(const char *function, const void *ours, size_t ours_bytes,
                            void *out_result);

#endif
