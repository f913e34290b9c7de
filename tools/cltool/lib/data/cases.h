/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX test cases on disk.
 */
#ifndef CLTOOL_CASES_H
#define CLTOOL_CASES_H

#include "compare.h"
#include "failure.h"

typedef enum case_result { CASE_OPEN, CASE_PASS, CASE_FAIL, CASE_SKIP } case_result;

typedef struct test_case {
    char *path; /* of the folder */
    char *name; /* its last part */
    case_result result;
    char *reason; /* of a failure or skip */
    double max_abs, max_rel;
    size_t n_compared; /* outputs */
    bool differs;      /* an output has the right shape and dtype but other numbers */
} test_case;

typedef struct case_list {
    test_case *items;
    size_t count, capacity;
} case_list;

/* Appends the case in the folder, or all those below it, by name. */
int cases_find(const char *folder, case_list *list);
void cases_free(case_list *list);

#endif
