/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/clgraph.h>

int main(void)
{
    /* @BLOCK@ */
    return 0;
}
