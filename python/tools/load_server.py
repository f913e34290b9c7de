#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a server of the digits network (python -m clgraph.serve), and checks each of its answers.

    python3 load_server.py soak [REQUESTS]     # 16 clients, REST and gRPC, 1 to 5 rows; 10,000
    python3 load_server.py table [REQUESTS]    # rates and latencies of 1, 4 and 16 clients; 1,600

Prints lines or a Markdown table; exits with 1 if an answer was wrong. Needs tritonclient, and
cltool beside the library for the table.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import tritonclient.grpc
import tritonclient.http

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "python" / "tests"))
from server_process import Server  # noqa: E402

import clgraph  # noqa: E402

DIGITS = SOURCE / "examples" / "digits"
IMAGES = np.load(DIGITS / "heldout.npy").astype(np.float32)
PROBABILITIES = np.load(DIGITS / "heldout_probabilities.npy")
SETTINGS = {
    "batching": [],
    "batching, delay 2 ms": ["--batch-delay-ms", "2"],
    "no batching": ["--max-batch", "1"],
}


def client(server, protocol, seed, n_requests, max_rows):
    """Returns the seconds of each request and the number of wrong answers."""
    triton = tritonclient.http if protocol == "REST" else tritonclient.grpc
    port = server.port if protocol == "REST" else server.grpc_port
    random, seconds, n_wrong = np.random.default_rng(seed), [], 0
    with triton.InferenceServerClient(f"127.0.0.1:{port}") as connection:
        for _ in range(n_requests):
            n = int(random.integers(1, max_rows + 1))
            i = int(random.integers(0, len(IMAGES) - n))
            x = triton.InferInput("image", [n, 1, 8, 8], "FP32")
            x.set_data_from_numpy(IMAGES[i : i + n])
            start = time.perf_counter()
            y = connection.infer("digits", [x]).as_numpy("probabilities")
            seconds.append(time.perf_counter() - start)
            right = y.shape == (n, 10) and np.abs(y - PROBABILITIES[i : i + n]).max() < 1e-5
            n_wrong += not right
    return seconds, n_wrong


def load(server, protocol, n_clients, n_requests, max_rows=1):
    """Returns requests a second, the 50th and 99th percentile in ms, and the wrong answers."""
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(n_clients) as pool:
        runs = [
            pool.submit(client, server, protocol, seed, n_requests // n_clients, max_rows)
            for seed in range(n_clients)
        ]
        found = [run.result() for run in runs]
    total = time.perf_counter() - start
    times = np.concatenate([seconds for seconds, _ in found]) * 1e3
    return len(times) / total, *np.percentile(times, [50, 99]), sum(n for _, n in found)


def resident_mib(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024


def soak(n_requests):
    server, n_wrong = Server(DIGITS / "digits.onnx").start(), 0
    for step in range(10):
        protocol = "REST" if step % 2 else "gRPC"
        rate, p50, p99, wrong = load(server, protocol, 16, n_requests // 10, 5)
        n_wrong += wrong
        print(f"{protocol}: {rate:.0f} requests/s, {p50:.1f} and {p99:.1f} ms, {wrong} wrong; "
              f"{resident_mib(server)} MiB resident", flush=True)  # fmt: skip
    counts = server.metric("clgraph_requests_total")
    rows, runs = (sum(server.metric(f"clgraph_run_rows_{n}").values()) for n in ("sum", "count"))
    print(f"{counts}; {rows / runs:.1f} rows a run; exit code {server.stop()}")
    return n_wrong


def table(n_requests):
    cltool = pathlib.Path(clgraph.library_path).with_name("cltool")
    bench = [cltool, "bench", DIGITS / "digits.onnx", "--batch"]
    for rows in (1, 32):
        done = subprocess.run([*bench, str(rows)], check=True, capture_output=True, text=True)
        print(done.stdout.strip())
    print(
        "\n| clients | "
        + " | ".join(f"{p}, {s}" for p in ("REST", "gRPC") for s in SETTINGS)
        + " |"
    )
    cells, n_wrong = {}, 0
    for setting, arguments in SETTINGS.items():
        server = Server(DIGITS / "digits.onnx", *arguments).start()
        load(server, "REST", 4, 200)
        for protocol in ("REST", "gRPC"):
            for n in (1, 4, 16):
                rate, p50, p99, wrong = load(server, protocol, n, n_requests)
                cells[protocol, setting, n] = f"{rate:.0f}, {p50:.1f}, {p99:.0f}"
                n_wrong += wrong
        server.stop()
    for n in (1, 4, 16):
        print(
            f"| {n} | "
            + " | ".join(cells[p, s, n] for p in ("REST", "gRPC") for s in SETTINGS)
            + " |"
        )
    return n_wrong


if __name__ == "__main__":
    kinds = {"soak": (soak, 10000), "table": (table, 1600)}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    function, default = kinds[sys.argv[1]]
    sys.exit(1 if function(int(sys.argv[2]) if len(sys.argv) > 2 else default) else 0)
