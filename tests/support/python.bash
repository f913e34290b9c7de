# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Finds a Python with a module. Debian's modules belong to Debian's own Python, which need not be
# the first one of PATH.

# Prints a Python that can import MODULE; returns 77, with a message, if there is none. CLG_PYTHON
# is tried first.
python_with() { # MODULE PACKAGE
  local candidate
  for candidate in "${CLG_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -n "$candidate" ] && "$candidate" -c "import $1" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "skipped: no Python with $1; on Debian it is in $2 (CLG_PYTHON names another)" >&2
  return 77
}
