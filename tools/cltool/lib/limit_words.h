/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the option --limits.
 */
#ifndef CLTOOL_LIMIT_WORDS_H
#define CLTOOL_LIMIT_WORDS_H

#include <clgraph/clgraph.h>

/* Parses limits such as "memory=1g,steps=1000,compile=30s,run=500ms", or "untrusted", which later
 * ones change. */
int limits_parse(const char *text, clg_limits *out_limits);

#endif
