# SPDX-License-Identifier: Apache-2.0
"""The command line of the server."""

import argparse
import dataclasses
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


@dataclasses.dataclass
class Options:
    """What the command line says; the fields are explained by its help."""

    models: List[str]
    host: str = "127.0.0.1"
    port: int = 8080
    grpc_port: int = 8081
    no_grpc: bool = False
    device: Optional[str] = None
    split: bool = False
    precision: str = "fp32"
    cache_dir: Optional[str] = None
    cpu_threads: int = 0
    instances: int = 2
    max_batch: int = 32
    batch_delay_ms: float = 0.0
    shapes: Dict[str, Tuple[int, ...]] = dataclasses.field(default_factory=dict)
    max_queue: int = 256
    queue_timeout_ms: float = 30000.0
    max_request_bytes: int = 64 * 10**6
    max_total_bytes: int = 512 * 10**6
    body_timeout_s: float = 30.0
    memory: Dict[str, int] = dataclasses.field(default_factory=dict)  # of "": all other models
    untrusted: bool = False
    model_control: bool = False
    drain_s: float = 0.0
    grace_s: int = 30
    prepare_only: bool = False
    log_level: str = "info"


def size(text: str) -> int:
    """Returns the bytes of "1500", "64m", "2g"; units are powers of 1000."""
    found = re.fullmatch(r"(\d+)([kmg]?)", text.lower())
    if not found:
        raise argparse.ArgumentTypeError(f"a size is a number with k, m or g, not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def shape(text: str) -> Tuple[str, Tuple[int, ...]]:
    """Returns the name and the shape of "x=1,3,224,224"."""
    name, equals, dims = text.rpartition("=")
    if not equals or not name or not re.fullmatch(r"\d+(,\d+)*", dims):
        raise argparse.ArgumentTypeError(f"a shape is NAME=1,3,224,224, not {text!r}")
    return name, tuple(int(d) for d in dims.split(","))


def memory(text: str) -> Tuple[str, int]:
    """Returns the name and the bytes of "digits=2g"; of "2g" the name "", for all models."""
    name, _, bytes_text = text.rpartition("=")
    return name, size(bytes_text)


def _number(kind: Callable[[str], Any], low: float) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        value = kind(text)
        if not low <= value < 1 << 31:
            raise argparse.ArgumentTypeError(f"the least is {low}, not {text}")
        return value

    convert.__name__ = "number"
    return convert


def parse(arguments: Sequence[str]) -> Options:
    """Returns the options; ends the process with a message if they are wrong."""
    parser = argparse.ArgumentParser(
        "python -m clgraph.serve",
        description="Serves ONNX models: open inference protocol v2, REST and gRPC.",
        allow_abbrev=False,
    )
    add, default = parser.add_argument, Options([])

    def option(name: str, text: str, **more: Any) -> None:
        field = name.strip("-").replace("-", "_")
        if "action" not in more and "default" not in more:
            more["default"] = getattr(default, field)
            if more["default"] is not None:
                text += " (default %(default)s)"
        add(name, help=text, **more)

    add("models", nargs="+", metavar="[NAME=]PATH",
        help="a model.onnx; a folder NAME/VERSION/model.onnx; or a folder of such")  # fmt: skip
    count, time = _number(int, 1), _number(float, 0)
    port = _number(int, 0)
    option("--host", "address to listen at; 0.0.0.0: all")
    option("--port", "port of REST; 0: a free one", type=port)
    option("--grpc-port", "port of gRPC; 0: a free one", type=port)
    option("--no-grpc", "REST alone", action="store_true")
    option("--device", 'selector of devices: "gpu", "all", "gpu,cpu"; else $CLG_DEVICE, the best')
    option("--split", "each batch is divided among the devices", action="store_true")
    option("--precision", "how float32 values are stored", choices=["fp32", "fp16", "auto"])
    option("--cache-dir", "folder of compiled kernels")
    option("--cpu-threads", "compute units of a CPU device to use; 0: all", type=_number(int, 0))
    option("--instances", "runs at a time on each device", type=count)
    option("--max-batch", "rows of requests that run together; 1: no batching", type=count)
    option("--batch-delay-ms", "time to wait for more requests of a batch", type=time)
    add("--shape", dest="shapes", action="append", type=shape, default=[], metavar="NAME=DIMS",
        help="shape of an input, for which kernels are compiled; may be repeated")  # fmt: skip
    option("--max-queue", "requests of a model that wait; more get 429", type=count)
    option("--queue-timeout-ms", "requests that waited longer get 503; 0: none", type=time)
    option("--max-request-bytes", "larger requests get 413", type=size)
    option("--max-total-bytes", "bytes of all requests in progress; more get 429", type=size)
    option("--body-timeout-s", "time for a request to arrive; then it gets 408", type=time)
    add("--memory", action="append", type=memory, default=[], metavar="[NAME=]SIZE",
        help="bytes that a model may take on each device, of one or of all; may be repeated "
        "(default no limit)")  # fmt: skip
    option("--untrusted", "limits of memory and time for models from anywhere",
           action="store_true")  # fmt: skip
    option("--model-control", "models are loaded and unloaded by requests", action="store_true")
    option("--drain-s", "time between not being ready and the end of listening", type=time)
    option("--grace-s", "time for requests in progress when the server stops", type=count)
    option("--prepare-only", "load, compile for all numbers of rows, test, end: fills the cache",
           action="store_true")  # fmt: skip
    option("--log-level", "JSON lines on stderr", choices=["debug", "info", "warning", "error"])
    found = vars(parser.parse_args(arguments))
    found["shapes"], found["memory"] = dict(found["shapes"]), dict(found["memory"])
    if found["max_total_bytes"] < found["max_request_bytes"]:
        parser.error("--max-total-bytes is at least --max-request-bytes")
    return Options(**found)
