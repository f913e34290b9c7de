#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ctest: timeout 900
# Gradients of networks against PyTorch's (torch_gradients.py). Networks may be named.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname -- "${BASH_SOURCE[0]}")/torch.bash"
run_with_torch torch_gradients.py "$@"
