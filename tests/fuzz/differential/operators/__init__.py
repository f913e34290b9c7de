# SPDX-License-Identifier: Apache-2.0
"""Generators of cases, a module for each family of operators."""

import importlib

FAMILIES = [
    "pointwise",
    "movement",
    "indexing",
    "reduce",
    "linear",
    "convolution",
    "vision",
    "recurrent",
    "attention",
    "quantized",
    "strings",
    "sequences",
    "control",
    "classic",
    "random_numbers",
    "images",
    "training",
]


def load():
    """Registers the generators of all families."""
    for family in FAMILIES:
        importlib.import_module(f"operators.{family}")
