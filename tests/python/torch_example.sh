#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ctest: timeout 300
# examples/python/fine_tune.py: the network that it trains knows digits that it has not seen.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname -- "${BASH_SOURCE[0]}")/torch.bash"
text=$(run_with_torch ../../examples/python/fine_tune.py)
echo "$text"
grep -qE '^(9[0-9]|100)\.[0-9]% of 60 other digits are right' <<<"$text"
