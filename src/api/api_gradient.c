/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements clg_model_gradient.
 */
#include "api/arguments.h"
#include "session/exec/model.h"

#include <clgraph/gradient.h>

clg_status clg_model_gradient(const clg_model *model, const char *y, const char *const *xs,
                              size_t n_xs, clg_model **out_model)
{
    API_REQUIRE(out_model);
    *out_model = NULL;
    API_REQUIRE(model);
    API_REQUIRE(y);
    if (n_xs > 0) API_REQUIRE(xs);
    return model_gradient(model, y, xs, n_xs, false, out_model);
}
