#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Presets, --resize short:N and --crop beside torchvision's transforms.
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/images.bash"
compare_images torchvision python3-torchvision images_torchvision.py
