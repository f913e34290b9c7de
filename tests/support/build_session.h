/* SPDX-License-Identifier: Apache-2.0
 *
 * From a builder to a session, for tests to whom the model in between is nothing.
 */
#ifndef CLG_TESTS_BUILD_SESSION_H
#define CLG_TESTS_BUILD_SESSION_H

#include <clgraph/clgraph.h>

/* A builder of opset 13 with nothing in it. */
clg_builder *start_graph(void);
/* Frees the builder. Options may be NULL. */
clg_session *build_session(clg_context *c, clg_builder *g, const clg_session_options *options);

#endif
