#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tree holds no path of the machine it was written on.
set -euo pipefail
cd "${CLG_SOURCE_DIR:-$(dirname "$0")/../..}"

# Folders that differ from machine to machine, at the start of an absolute path; /mnt/models is where
# KServe puts models in every container.
if grep -rnIE --exclude-dir=.git --exclude=.git --exclude-dir='build*' --exclude=LICENSE \
  '(^|[^A-Za-z0-9_.~/*-])/(home|Users|root|work|mnt|srv)/[A-Za-z0-9_.-]+' . |
  grep -vE '/mnt/models($|[^A-Za-z0-9_.-])'; then
  echo "Paths of one machine do not belong in the tree."
  exit 1
fi
