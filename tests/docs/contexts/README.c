/* SPDX-License-Identifier: Apache-2.0 */
int main(void)
{
    /* @BLOCK@ */
    float sum = 0;
    for (int i = 0; i < 10; i++) sum += probabilities[i];
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    return sum > 0.999f && sum < 1.001f ? 0 : 1;
}
