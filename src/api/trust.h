/* SPDX-License-Identifier: Apache-2.0
 *
 * The option `selftest` of contexts.
 */
#ifndef CLG_API_TRUST_H
#define CLG_API_TRUST_H

#include "base/files.h"

#include <string.h>

/* Options given in code win over $CLG_SELFTEST. */
static inline bool api_trusts_kernels(clg_selftest given)
{
    const char *word = given == CLG_SELFTEST_DEFAULT ? env_get("CLG_SELFTEST") : NULL;
    return given == CLG_SELFTEST_OFF || (word && strcmp(word, "off") == 0);
}

#endif
