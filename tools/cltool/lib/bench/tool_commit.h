/* SPDX-License-Identifier: Apache-2.0
 *
 * The commit that cltool was built from. cmake/write_commit.cmake generates the definition.
 */
#ifndef CLTOOL_TOOL_COMMIT_H
#define CLTOOL_TOOL_COMMIT_H

/* Twelve hexadecimal digits, "-dirty" after them if files were changed; "" when it is unknown. */
extern const char tool_commit[];

#endif
