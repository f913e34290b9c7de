# SPDX-License-Identifier: Apache-2.0
"""Sessions over several devices of which one is lost or hangs.

tests/layers/opencl_lost.c, which the build folder has beside the library, loses them; the C tests
(test_multi_lost.c) do that at every call.
"""

import pathlib

import pytest
from test_process import posix, python

import clgraph

LAYER = pathlib.Path(clgraph.library_path).parent / "tests" / "layers" / "opencl_lost.so"
pytestmark = [
    posix,
    pytest.mark.skipif(not LAYER.exists(), reason="the layer opencl_lost was not built"),
]

# lose(n, code): the n-th OpenCL call of a run, from 0, loses its device. RTLD_NOLOAD gives the copy
# of the layer that the OpenCL loader has loaded.
START = f"""
    import ctypes, os, time
    import numpy as np
    import clgraph
    from conftest import rows, unary

    clgraph.devices()
    try:
        layer = ctypes.CDLL({str(LAYER)!r}, os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        raise SystemExit(77)  # another OpenCL loader, which has no OPENCL_LAYERS
    CALLS, OUT_OF_RESOURCES, STALL = 4, -5, 2

    def lose(n, code):
        layer.opencl_lost_arm(CALLS, ctypes.c_long(n), code)

    contexts = [clgraph.Context(os.environ.get("CLG_DEVICE")) for _ in range(3)]
    layer.opencl_lost_alone(True)
    x = rows(24, 300)

    def open(**options):
        session = clgraph.InferenceSession(unary("Tanh", shape=("n", 300)), contexts, **options)
        for _ in range(3):
            expect_right(session)
        return session

    def expect_right(session):
        (y,) = session.run(None, {{"x": x}})
        assert np.allclose(y, np.tanh(x.astype(np.float64)), atol=1e-5)

    def n_lost(session):
        parts = session.parts()
        assert sum(part.rows for part in parts) == 24
        assert all(part.rows == 0 for part in parts if part.is_lost)
        return sum(part.is_lost for part in parts)
"""


def run(code):
    result = python(START + code, OPENCL_LAYERS=str(LAYER))
    if result.returncode == 77:
        pytest.skip("the OpenCL loader loads no layers")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[-1] == "done", result.stdout


def test_the_rows_of_a_lost_device_are_computed_by_the_others(device):
    run("""
    session = open()
    for n in (1, 2):
        lose(0, OUT_OF_RESOURCES)
        expect_right(session)
        assert n_lost(session) == n
    assert session._repr_html_().count(">lost<") == 2
    lose(0, OUT_OF_RESOURCES)
    try:
        expect_right(session)
    except clgraph.DeviceLost as e:
        assert "all devices" in e.message
    else:
        raise AssertionError("three devices were lost")
    lose(-1, 0)
    session.recover()
    expect_right(session)
    assert n_lost(session) == 0
    print("done")
""")


def test_a_device_that_hangs(device):
    run("""
    session = open(hang_ms=3000)
    lose(0, STALL)
    expect_right(session)
    assert n_lost(session) == 1
    layer.opencl_lost_release()
    while n_lost(session) > 0:
        time.sleep(0.01)
        expect_right(session)
    print("done")
""")
