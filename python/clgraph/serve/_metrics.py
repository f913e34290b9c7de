# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics, which KServe's /metrics shows beside its own."""

from prometheus_client import Counter, Gauge, Histogram

_MODEL = ["model", "version"]
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)

REQUESTS = Counter(
    "clgraph_requests", "Requests for predictions, by their answer", [*_MODEL, "protocol", "status"]
)
REQUEST_SECONDS = Histogram(
    "clgraph_request_seconds", "From the arrival of a request to its answer", _MODEL,
    buckets=_SECONDS,
)  # fmt: skip
QUEUE_SECONDS = Histogram(
    "clgraph_queue_seconds", "Time that requests waited", _MODEL, buckets=_SECONDS
)
RUN_SECONDS = Histogram("clgraph_run_seconds", "Time of runs", _MODEL, buckets=_SECONDS)
RUN_ROWS = Histogram(
    "clgraph_run_rows", "Rows of runs, where requests are combined", _MODEL,
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
)  # fmt: skip
WAITING = Gauge("clgraph_waiting_requests", "Requests in the queue", _MODEL)
RUNNING = Gauge("clgraph_running", "Runs in progress, at most --instances a device", _MODEL)
MEMORY = Gauge(
    "clgraph_memory_bytes", "Device memory on each device, for --max-batch rows", [*_MODEL, "kind"]
)
