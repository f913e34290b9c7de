#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The models of CLG_TEST_MODELS through ONNX Runtime, to their tolerances. Prints how many nodes
# each provider has.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
if [ ! -f "$CLG_TEST_MODELS/tolerance.json" ]; then
  echo "skipped: there are no models in $CLG_TEST_MODELS"
  exit 77
fi
"$python" "$here/verify.py" "$library" --tolerance "$CLG_TEST_MODELS/tolerance.json" "$CLG_TEST_MODELS"
