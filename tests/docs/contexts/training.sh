# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
cltool new mlp 1x28x28,16,10 -o model.onnx
cltool new cnn 3x224x224 --conv 2 --pool 16 --dense 7 -o resnet18.onnx
