#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ctest: timeout 900
# Training against PyTorch (torch_training.py). The number of steps may be given.
set -euo pipefail
# shellcheck source=/dev/null
source "$(dirname -- "${BASH_SOURCE[0]}")/torch.bash"
run_with_torch torch_training.py "$@"
