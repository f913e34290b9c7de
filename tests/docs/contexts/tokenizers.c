/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/tokenizer.h>

#include <stdio.h>

int main(void)
{
    /* @BLOCK@ */
    return n_ids == 2 ? 0 : 1;
}
