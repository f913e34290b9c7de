/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads CLG_TEST_SHARE. See case_share.h.
 */
#include "support/case_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void case_share_read(unsigned default_n, unsigned *out_i, unsigned *out_n)
{
    const char *given = getenv("CLG_TEST_SHARE");
    *out_i = 0;
    *out_n = !given ? default_n : 1;
    if (!given || strcmp(given, "all") == 0) return;
    if (sscanf(given, "%u/%u", out_i, out_n) == 2 && *out_i < *out_n) return;
    (void)fprintf(stderr, "CLG_TEST_SHARE is '%s', neither all nor like 1/8\n", given);
    exit(1);
}

static unsigned common_divisor(unsigned a, unsigned b)
{
    while (b > 0) {
        const unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool case_share_takes(size_t k, unsigned of)
{
    unsigned i, n;
    case_share_read(1, &i, &n);
    n = common_divisor(of, n);
    return k % n == i % n;
}

bool case_share_takes_class(size_t k, bool second_class, bool alone)
{
    return case_share_takes(alone ? k / 2 : k + second_class, 2);
}

size_t case_share_next(size_t k, unsigned of)
{
    do k++;
    while (!case_share_takes(k + (CLG_TEST_SANITIZED ? 1 : 0), of));
    return k;
}
