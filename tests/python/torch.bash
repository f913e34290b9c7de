# SPDX-License-Identifier: Apache-2.0

# Runs a Python program of this folder that compares with PyTorch, with the library of this build;
# exits with 77 without PyTorch or numpy, and where the library cannot be loaded into Python.
run_with_torch() { # PROGRAM ARGUMENT...
  : "${CLG_BUILD_DIR:?the build folder}" "${CLG_SOURCE_DIR:?the source tree}"
  local python
  # shellcheck source=/dev/null
  source "$CLG_SOURCE_DIR/tests/models/torch.bash"
  python=$(torch_python) || exit
  "$python" -c 'import numpy' || { echo "skipped: $python has no numpy"; exit 77; }
  if grep -qE '^CLG_SANITIZE:[A-Z]*=(ON|on|1|thread)' "$CLG_BUILD_DIR/CMakeCache.txt"; then
    echo "the library of a build with sanitizers cannot be loaded into Python: not run"
    exit 77
  fi
  export PYTHONPATH=$CLG_SOURCE_DIR/python:$CLG_SOURCE_DIR/tests/models PYTHONDONTWRITEBYTECODE=1
  export CLG_LIBRARY=$CLG_BUILD_DIR/libclgraph.so
  exec "$python" "$CLG_SOURCE_DIR/tests/python/$1" "${@:2}"
}
