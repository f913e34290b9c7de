/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/clgraph.hpp>

#include <cstdio>

int main()
{
    auto context = clgraph::context::create();
    clgraph::session session(context, clgraph::model("digits.onnx"));
    session.set_input("image", {1, 1, 8, 8}, std::vector<float>(64));
    /* @BLOCK@ */
    return 0;
}
