# SPDX-License-Identifier: Apache-2.0
"""A process of the server on loopback, and requests to it by raw HTTP."""

import contextlib
import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

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
