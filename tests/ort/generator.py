#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clgraph's generator beside ONNX Runtime: 200 steps with the same tokens, at least 50 of them
different, on small decoders with made-up weights (tests/models/decoder.py), in float32 and with
weights of 4 bits, with caches that grow and with reserved ones; each by tests/bench/generate.py.
"""

import logging
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))

import onnx  # noqa: E402  pylint: disable=wrong-import-position

import decoder  # noqa: E402  pylint: disable=wrong-import-position
import decoder_sizes  # noqa: E402  pylint: disable=wrong-import-position
import genai  # noqa: E402  pylint: disable=wrong-import-position

TOLERANCE = "1e-5"  # of the largest logit: sums in another order


def main():
    logging.disable(logging.INFO)  # of the quantiser
    genai.onnx, genai.sizes = onnx, decoder_sizes
    weights = decoder.make_weights()
    models = {
        "rotated": decoder.make_contrib(weights, False, genai.PLACES),
        "packed": decoder.make_contrib(weights, True, genai.PLACES),
        "int4": decoder.quantise(decoder.make_contrib(weights, False, genai.PLACES), True),
    }
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        for name, model in models.items():
            folder = pathlib.Path(made) / name
            folder.mkdir()
            genai.write_folder(folder, model)
            for cache in "growing", "reserved":
                failed += subprocess.call(
                    [sys.executable, HERE.parent / "bench" / "generate.py", folder, "--check-only",
                     "--cache", cache, "--chunk", "7", "--tolerance", TOLERANCE],
                    env={**os.environ, "POCL_MAX_PTHREAD_COUNT": "1"},
                )  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
