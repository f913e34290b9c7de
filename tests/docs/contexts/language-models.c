/* SPDX-License-Identifier: Apache-2.0 */
#include <clgraph/clgraph.h>
#include <clgraph/generate.h>

#include <stdio.h>

int main(void)
{
    clg_context *context = NULL;
    clg_generator *generator = NULL;
    clg_generator_end end = CLG_END_NONE;
    if (clg_context_create(NULL, NULL, &context) != CLG_OK) return 1;
    /* @BLOCK@ */
    const int failed = end != CLG_END_EOS || clg_generator_n_tokens(generator) != 8;
    clg_generator_free(generator);
    clg_context_free(context);
    return failed;
}
