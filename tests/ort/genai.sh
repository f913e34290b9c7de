#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# onnxruntime-genai's text through the provider, with tensors in memory of the host and of the
# device: see genai.py.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
CLG_ORT_MEMORY=host "$python" "$here/genai.py" "$library" &&
  CLG_ORT_MEMORY=device "$python" "$here/genai.py" "$library"
