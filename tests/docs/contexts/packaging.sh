# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
cp examples/installed/predict.c program.c
