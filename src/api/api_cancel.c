/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_cancel_*.
 */
#include "api/arguments.h"
#include "base/cancel.h"

clg_status clg_cancel_create(clg_cancel **out_cancel)
{
    API_REQUIRE(out_cancel);
    return cancel_create(out_cancel);
}

void clg_cancel_trigger(clg_cancel *cancel)
{
    if (cancel) cancel_trigger(cancel);
}

void clg_cancel_reset(clg_cancel *cancel)
{
    if (cancel) cancel_reset(cancel);
}

bool clg_cancel_is_triggered(const clg_cancel *cancel)
{
    return cancel && cancel_is_triggered(cancel);
}

void clg_cancel_free(clg_cancel *cancel) { cancel_free(cancel); }
