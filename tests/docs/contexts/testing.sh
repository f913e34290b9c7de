# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
ln -s models FOLDER
cp models/linear.onnx model.onnx
