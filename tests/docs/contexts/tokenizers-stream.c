/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/tokenizer.h>

#include <stdio.h>

int main(void)
{
    clg_tokenizer *tokenizer;
    const int64_t ids[] = {1, 2, 3};
    const size_t n_ids = 3;
    if (clg_tokenizer_open("tokenizer.json", &tokenizer) != CLG_OK) return 1;
    /* @BLOCK@ */
    clg_tokenizer_free(tokenizer);
    return 0;
}
