#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Images of 500 sizes, and files of many formats, beside Pillow.
set -u
# shellcheck source=/dev/null
source "$(dirname "$0")/images.bash"
compare_images PIL python3-pil images_pillow.py
