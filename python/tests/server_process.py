# SPDX-License-Identifier: Apache-2.0
"""A process of the server on loopback, requests to it by raw HTTP, and models for it."""

import contextlib
import http.client
import importlib.util
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper

# Not imported: its gRPC messages and tritonclient's have the same names, and one process has one.
if importlib.util.find_spec("kserve") is None:
    pytest.skip("KServe is not installed (pip install clgraph[serve])", allow_module_level=True)
http_client = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
grpc_client = pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed")
ServerError = pytest.importorskip("tritonclient.utils").InferenceServerException

WAIT_S = 600  # for what never takes as long; tests do not depend on it


class Server:
    """A server process; its log lines, which must all be JSON."""

    def __init__(self, *arguments, env=None):
        command = [sys.executable, "-m", "clgraph.serve", "--port", "0", "--grpc-port", "0"]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)], stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        self.lines = []
        self._events = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            try:
                self._events.put(json.loads(line))
            except ValueError:
                self._events.put({"message": "not JSON", "line": line})
        self._events.put(None)

    def wait_for(self, message):
        """Returns the next event of this message."""
        while True:
            event = self._events.get(timeout=WAIT_S)
            if event is None:
                pytest.fail(f"the server ended before '{message}':\n" + "".join(self.lines))
            if event["message"] == message:
                return event

    def start(self):
        event = self.wait_for("listening")
        self.port, self.grpc_port = event["port"], event["grpc_port"]
        self.wait_for("all models are ready")
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code

    def events(self, message):
        return [e for e in map(json.loads, self.lines) if e["message"] == message]

    def call(self, method, path, body=None, headers=None):
        """Returns status, headers and body, as JSON where it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        with contextlib.closing(connection):
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
            if response.getheader("content-type", "").startswith("application/json"):
                content = json.loads(content)
            return response.status, dict(response.getheaders()), content

    def until(self, name, value):
        """Waits until a metric, which has one model, has a value."""
        end = time.monotonic() + WAIT_S / 10
        while list(self.metric(name).values()) != [value]:
            assert time.monotonic() < end, f"{name} is {self.metric(name)}, not {value}"

    def begin(self, path, headers, content=b""):
        """Returns the answer to a POST whose body does not end."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        with contextlib.closing(connection):
            connection.putrequest("POST", path)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.send(content)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def post(self, name, body, length=None):
        """Returns a socket on which a request was sent, of `length` bytes in the end."""
        found = socket.create_connection(("127.0.0.1", self.port), WAIT_S)
        head = f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: a\r\nContent-Length: "
        found.sendall(f"{head}{length or len(body)}\r\n\r\n".encode() + body)
        return found

    @staticmethod
    def answer(connection):
        """Returns the status and the content of the answer to post()."""
        with contextlib.closing(connection):
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status, json.loads(response.read())

    def infer(self, name, inputs, path="", **more):
        """Returns the status and the outputs by name, or the message of an error."""
        request = {"inputs": [tensor(n, array) for n, array in inputs.items()], **more}
        status, _, answer = self.call("POST", f"/v2/models/{name}{path}/infer", request)
        if status != 200:
            return status, answer["error"]
        return status, {
            o["name"]: np.array(o["data"], np.float32).reshape(o["shape"])
            for o in answer["outputs"]
        }

    def metric(self, name):
        """Returns {labels: value} of a metric."""
        text = self.call("GET", "/metrics")[2].decode()
        lines = [line for line in text.splitlines() if line.startswith(name + "{")]
        return {line.rpartition(" ")[0][len(name) :]: float(line.split()[-1]) for line in lines}


def tensor(name, array):
    datatype = {"float32": "FP32", "int64": "INT64"}[array.dtype.name]
    data = array.ravel().tolist()
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": data}


@contextlib.contextmanager
def serving(*arguments, **options):
    server = Server(*arguments, **options)
    try:
        yield server.start()
        assert server.stop() == 0, "".join(server.lines)
        assert all(line.startswith("{") for line in server.lines), "".join(server.lines)
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def add(value, width=3):
    """Returns the model y = x + value."""
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [value])
    proto = model([helper.make_node("Add", ["x", "one"], ["y"])],
                  [("x", TensorProto.FLOAT, ["n", width])],
                  [("y", TensorProto.FLOAT, ["n", width])])  # fmt: skip
    proto.graph.initializer.append(one)
    return proto


def mixed():
    """Returns the model y = x - max(x), whose rows depend on each other."""
    return model(
        [
            helper.make_node("ReduceMax", ["x"], ["m"], name="largest"),
            helper.make_node("Sub", ["x", "m"], ["y"]),
        ],
        [("x", TensorProto.FLOAT, ["n", 3])],
        [("y", TensorProto.FLOAT, ["n", 3])],
    )


def table():
    """Returns the model y = the square of index x, of 100 numbers."""
    proto = model([helper.make_node("Gather", ["t", "x"], ["y"])],
                  [("x", TensorProto.INT64, ["n"])], [("y", TensorProto.FLOAT, ["n"])])  # fmt: skip
    squares = [float(i * i) for i in range(100)]
    proto.graph.initializer.append(helper.make_tensor("t", TensorProto.FLOAT, [100], squares))
    return proto
