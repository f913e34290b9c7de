# SPDX-License-Identifier: Apache-2.0
"""examples/python/ray_predict.py on a cluster of two nodes, both on this machine.

Needs `pip install "ray[data]"`, which python/test.sh does not install: skipped without it.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import clgraph
import numpy as np
import pytest

pytest.importorskip("ray.data", reason='needs pip install "ray[data]"')

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


RAY = pathlib.Path(sys.executable).with_name("ray")
ENVIRONMENT = {
    **os.environ,
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_AUTH_MODE": "disabled",  # a cluster of this test alone
    "RAY_raylet_start_wait_time_s": "120",  # busy machines
}


def start_node(device, *words):
    """Starts a node with one device; it ends with the process that is returned."""
    command = [RAY, "start", "--block", "--num-cpus=2", '--resources={"opencl": 1}',
               "--disable-usage-stats", *words]  # fmt: skip
    return subprocess.Popen(
        command, env={**ENVIRONMENT, "CLG_DEVICE": device}, stdout=subprocess.DEVNULL
    )


def wait_for_nodes(address, n, nodes):
    """Waits until the cluster has n nodes."""
    end = time.monotonic() + 180
    while True:
        status = subprocess.run(
            [RAY, "status", f"--address={address}"], env=ENVIRONMENT, text=True,
            capture_output=True, timeout=180,
        )  # fmt: skip
        if status.stdout.count(" node_") >= n:
            return
        assert all(node.poll() is None for node in nodes), "a node ended"
        assert time.monotonic() < end, status.stdout + status.stderr
        time.sleep(1)


@pytest.fixture
def cluster():
    """Two nodes with a part of the CPU each; yields the address."""
    folder = tempfile.mkdtemp(prefix="ray")  # short: the names of Ray's sockets are limited
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
    nodes = []
    try:
        port = address.split(":")[1]
        nodes.append(start_node("cpu/0", "--head", f"--port={port}", f"--temp-dir={folder}",
                                "--include-dashboard=false"))  # fmt: skip
        wait_for_nodes(address, 1, nodes)
        nodes.append(start_node("cpu/1", f"--address={address}"))
        wait_for_nodes(address, 2, nodes)
        yield address
    finally:
        for node in reversed(nodes):
            node.terminate()
        for node in nodes:
            node.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def predict(cluster, *words):
    program = EXAMPLES / "python/ray_predict.py"
    return subprocess.run(
        [sys.executable, program, EXAMPLES / "digits/digits.onnx", *words],
        env={**ENVIRONMENT, "RAY_ADDRESS": cluster},
        text=True, capture_output=True, timeout=300,
    )  # fmt: skip


def test_two_nodes(cluster, tmp_path):
    images = np.load(EXAMPLES / "digits/heldout.npy")
    rows = tmp_path / "rows"
    rows.mkdir()
    for i in range(6):
        np.save(rows / f"{i}.npy", images[i * 60 : i * 60 + 60])
    done = predict(cluster, rows, tmp_path / "results", "--batch", "20")
    assert done.returncode == 0, done.stderr
    assert "360 rows on 2 devices" in done.stdout
    used = set(re.findall(r"node (\w+): (cpu/\d)", done.stdout + done.stderr))
    assert {device for _, device in used} == {"cpu/0", "cpu/1"}
    assert len({node for node, _ in used}) == 2

    import ray.data

    table = ray.data.read_parquet(str(tmp_path / "results")).take_all()
    found = {np.asarray(r["data"]).tobytes(): np.asarray(r["probabilities"]) for r in table}
    session = clgraph.InferenceSession(EXAMPLES / "digits/digits.onnx", device="cpu/0")
    for start in range(0, 360, 20):
        part = images[start : start + 20]
        (wanted,) = session.run(None, {"image": part})
        for image, row in zip(part, wanted):
            assert np.array_equal(found[image.tobytes()], row)


def test_without_the_resource(tmp_path):
    """A cluster without devices is refused with a sentence."""
    (tmp_path / "rows").mkdir()
    done = predict("local", tmp_path / "rows", tmp_path / "results")
    assert done.returncode == 2
    assert "no node has the resource opencl" in done.stderr
