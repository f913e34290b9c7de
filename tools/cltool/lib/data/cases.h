/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the ONNX test cases in a folder, and keeps their results.
 */
#ifndef CLTOOL_CASES_H
#define CLTOOL_CASES_H

#include "compare.h"
#include "failure.h"

typedef enum case_result { CASE_OPEN, CASE_PASS, CASE_FAIL, CASE_SKIP } case_result;

typedef struct test_case {
    char *path; /* of the case's folder */
    char *name; /* the last part of path */
    case_result result;
    char *reason;            /* of a failure or skip */
    double max_abs, max_rel; /* largest errors of all compared outputs */
    size_t n_compared;       /* number of outputs that were compared */
    bool differs;            /* an output has the right shape and dtype but wrong values */
} test_case;

typedef struct case_list {
    test_case *items;
    size_t count, capacity;
} case_list;

/* Appends the case in `folder`, or if that is no case, all cases below it, sorted by name. */
int cases_find(const char *folder, case_list *list);
void cases_free(case_list *list);

#endif
