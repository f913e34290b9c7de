#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_script.sh SCRIPT: runs a test script in a fresh folder, which it knows as $WORK and which is
# removed afterwards.
set -u
script=$1
WORK=$(mktemp -d) || exit 1
export WORK
trap 'rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1
bash "$script"
