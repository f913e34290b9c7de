#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What help prints, and what wrong usage prints.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"

version() { sed -E 's/[0-9]+\.[0-9]+\.[0-9]+/VERSION/'; }

show
show version -- --version
show version -- --help
for command in devices inspect run predict merge verify diff gradient new bench profile tune selftest tokenize cache completion man; do
  show "$command" --help
done
show help cache

# Wrong usage: 2, a message, a hint.
show forecast
show run
show run a.onnx b.onnx
show run model.onnx --no-such-option
show run model.onnx --measure
show run model.onnx --top
show run model.onnx --top many
show run model.onnx --rtol -1
show run model.onnx --json=yes
show run model.onnx --precision half
show run model.onnx --kernels narrow
show bench model.onnx --json --runs 0
show cache
show cache polish
show cache warm
show cache clear all
finish
