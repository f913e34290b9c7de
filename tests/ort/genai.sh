#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# onnxruntime-genai's text through the provider: see genai.py.
# shellcheck disable=SC2154 # variables of support.bash
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
"$python" "$here/genai.py" "$library"
