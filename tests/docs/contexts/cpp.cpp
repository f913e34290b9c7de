/* SPDX-License-Identifier: Apache-2.0 */
#include <algorithm>

int main()
{
    /* @BLOCK@ */
    return probabilities.size() == 10 ? 0 : 1;
}
