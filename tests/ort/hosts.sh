#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The provider with other ONNX Runtimes and machines: see hosts.c.
set -u
library=$CLG_BUILD_DIR/libclgraph_ort.so
if [ ! -f "$library" ]; then
  echo 'skipped: the provider is not built: onnxruntime_ep_c_api.h was not found'
  exit 77
fi
"$CLG_BUILD_DIR/tests/ort/hosts" "$library"
