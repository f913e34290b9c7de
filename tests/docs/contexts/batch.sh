# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
cp models/images.onnx model.onnx
cp models/columns.onnx columns.onnx
