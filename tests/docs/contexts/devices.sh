# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
cp models/linear.onnx model.onnx
