# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python print what they should."""

import re
import subprocess
import sys

import pytest
from conftest import SOURCE

EXAMPLES = SOURCE / "examples" / "python"


def output(name):
    result = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_digits(device):
    assert float(re.match(r"([0-9.]+)% of 360 digits are right", output("digits.py"))[1]) > 90


def test_sklearn(device):
    pytest.importorskip("skl2onnx")
    pytest.importorskip("sklearn")
    found = re.match(r"([0-9.]+)% of the labels .* difference (\S+)\n", output("sklearn_model.py"))
    assert float(found[1]) >= 99 and float(found[2]) < 1e-5
