/* SPDX-License-Identifier: Apache-2.0
 *
 * A context on PoCL; see pocl_context.h.
 */
#include "support/pocl_context.h"

#include "support/ocl_platforms.h"

#include <clgraph/inspect.h>

#include <stdio.h>

clg_context *context;

int open_context(void **state)
{
    (void)state;
    ocl_platforms_show_pocl();
    if (clg_context_create("pocl", NULL, &context) == CLG_OK) return 0;
    (void)fprintf(stderr, "%s\n", clg_last_error());
    return -1;
}

static bool close_and_tell(void)
{
    clg_counters counters = CLG_COUNTERS_INIT;
    const bool ran =
        clg_context_counters(context, &counters) == CLG_OK && counters.kernels_launched > 0;
    clg_context_free(context);
    context = NULL;
    return ran;
}

int close_context(void **state)
{
    (void)state;
    if (close_and_tell()) return 0;
    (void)fprintf(stderr, "no kernel ran\n");
    return -1;
}

int close_host_context(void **state)
{
    (void)state;
    if (!close_and_tell()) return 0;
    (void)fprintf(stderr, "a kernel ran: close_context is for that\n");
    return -1;
}
