/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/clgraph.hpp>

#include <iostream>

int main()
{
    clgraph::context context("auto");
    /* @BLOCK@ */
    return generator.tokens().size() == 8 ? 0 : 1;
}
