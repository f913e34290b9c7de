# SPDX-License-Identifier: Apache-2.0

# Prints a Python that has PyTorch; returns 77, with a message, if there is none. Debian's PyTorch
# belongs to Debian's own Python, which need not be the first one.
torch_python() {
  local candidate
  for candidate in "${CLG_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import torch' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "skipped: no Python with PyTorch; on Debian it is in python3-torch (CLG_PYTHON names another)" >&2
  return 77
}
