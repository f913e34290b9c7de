# SPDX-License-Identifier: Apache-2.0
"""Sizes of the small decoder of decoder.py, which PyTorch's Python reads as well."""

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD, MIDDLE, VOCABULARY = 3, 128, 8, 2, 16, 320, 256
PLACES = 96  # the most tokens of prompt and text
EPSILON, BASE = 1e-5, 10000.0  # of RMSNorm; of the rotary embedding
