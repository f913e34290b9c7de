/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/clgraph.hpp>

#include <algorithm>
#include <cstdio>

int main()
{
    auto context = clgraph::context::create();
    clgraph::model model("digits.onnx");
    std::vector<float> image(64);
    /* @BLOCK@ */
    return left == 0 ? 0 : 1;
}
