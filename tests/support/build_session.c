/* SPDX-License-Identifier: Apache-2.0
 *
 * See build_session.h.
 */
#include "support/build_session.h"

#include "support/unit.h"

clg_builder *start_graph(void)
{
    clg_builder *g;
    assert_ok(clg_builder_create(13, &g));
    return g;
}

clg_session *build_session(clg_context *c, clg_builder *g, const clg_session_options *options)
{
    clg_model *m;
    clg_session *s;
    assert_ok(clg_builder_build(g, &m));
    clg_builder_free(g);
    assert_ok(clg_session_create(c, m, options, &s));
    clg_model_free(m); /* the session keeps it */
    return s;
}
