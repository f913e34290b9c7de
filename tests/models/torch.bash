# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# shellcheck source=/dev/null
source "$(dirname -- "${BASH_SOURCE[0]}")/../support/python.bash"

# Prints a Python that has PyTorch; returns 77, with a message, if there is none.
torch_python() { python_with torch python3-torch; }
