# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Rows for a model of 64 inputs.
python -c 'import numpy; numpy.save("rows.npy", numpy.ones((800, 64), numpy.float32))'
