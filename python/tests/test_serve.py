# SPDX-License-Identifier: Apache-2.0
"""The server as its clients see it: a process on loopback, tritonclient and raw HTTP.

Skipped by name where KServe or tritonclient is not installed.
"""

import concurrent.futures
import json

import numpy as np
import pytest
from conftest import DIGITS, rows, save, unary
from onnx import TensorProto
from server_process import ServerError, add, grpc_client, http_client, mixed, serving, table


@pytest.fixture(scope="module")
def models(device, tmp_path_factory):
    """Starts a server with several models, two of them in versions."""
    folder = tmp_path_factory.mktemp("models")
    for version in (1, 2, 10):
        path = folder / "added" / str(version)
        path.mkdir(parents=True)
        save(add(version), path / "model.onnx")
    save(mixed(), folder / "mixed.onnx")
    save(table(), folder / "table.onnx")
    save(unary("Identity", TensorProto.STRING), folder / "texts.onnx")
    with serving(folder, DIGITS, "--device", device.device.selector, "--batch-delay-ms", 20,
                 "--max-request-bytes", "1m") as server:  # fmt: skip
        yield server


IMAGES = np.load(DIGITS.parent / "heldout.npy")
PROBABILITIES = np.load(DIGITS.parent / "heldout_probabilities.npy")

# ---- protocols -----------------------------------------------------------------------------------


def test_metadata_and_health(models):
    assert models.call("GET", "/v2/health/live")[::2] == (200, {"live": True})
    assert models.call("GET", "/v2/health/ready")[::2] == (200, {"ready": True})
    status, _, found = models.call("GET", "/v2/models/digits")
    assert (status, found["versions"]) == (200, ["1"])
    assert found["inputs"] == [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}]
    assert found["outputs"] == [{"name": "probabilities", "datatype": "FP32", "shape": [-1, 10]}]
    with grpc_client.InferenceServerClient(f"127.0.0.1:{models.grpc_port}") as client:
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("digits") and client.is_model_ready("added", "2")
        found = client.get_model_metadata("added")
        assert list(found.versions) == ["1", "2", "10"] and list(found.inputs[0].shape) == [-1, 3]
        for name, version in (("none", ""), ("added", "3")):
            with pytest.raises(ServerError, match="NOT_FOUND"):
                client.get_model_metadata(name, version)
    found = models.call("POST", "/v2/repository/index")[2]
    assert {"name": "added", "version": "10", "state": "READY", "reason": ""} in found


@pytest.mark.parametrize("is_binary", [True, False])
def test_rest_client(models, is_binary):
    with http_client.InferenceServerClient(f"127.0.0.1:{models.port}") as client:
        x = http_client.InferInput("image", [9, 1, 8, 8], "FP32")
        x.set_data_from_numpy(IMAGES[:9].astype(np.float32), is_binary)
        y = http_client.InferRequestedOutput("probabilities", is_binary)
        answer = client.infer("digits", [x], request_id="7", outputs=[y])
        assert answer.get_response()["id"] == "7"
        assert np.abs(answer.as_numpy("probabilities") - PROBABILITIES[:9]).max() < 1e-5


def test_grpc_client(models):
    with grpc_client.InferenceServerClient(f"127.0.0.1:{models.grpc_port}") as client:
        x = grpc_client.InferInput("image", [9, 1, 8, 8], "FP32")
        x.set_data_from_numpy(IMAGES[:9].astype(np.float32))
        answer = client.infer("digits", [x], request_id="7")
        assert answer.get_response().id == "7" and answer.get_response().model_version == "1"
        assert np.abs(answer.as_numpy("probabilities") - PROBABILITIES[:9]).max() < 1e-5
        with pytest.raises(ServerError, match=r"INVALID_ARGUMENT.*'image' is not set"):
            client.infer("digits", [])
        x = grpc_client.InferInput("x", [1, 3], "FP32")
        x.set_data_from_numpy(np.zeros((1, 3), np.float32))
        for version, value in (("", 10), ("1", 1), ("2", 2)):
            answer = client.infer("added", [x], version)
            assert (answer.as_numpy("y") == value).all()
        with pytest.raises(ServerError, match="no version 3; it has 1, 2, 10"):
            client.infer("added", [x], "3")


def test_strings(models):
    texts = np.array([["", "ü", "a" * 300]], object)
    for module, port in ((http_client, models.port), (grpc_client, models.grpc_port)):
        with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
            x = module.InferInput("x", [1, 3], "BYTES")
            x.set_data_from_numpy(texts)
            found = client.infer("texts", [x]).as_numpy("y")
            assert [[item.decode() for item in row] for row in found] == texts.tolist()


def test_versions(models):
    x = {"x": np.zeros((2, 3), np.float32)}
    for path, value in (("", 10), ("/versions/1", 1), ("/versions/10", 10)):
        status, outputs = models.infer("added", x, path)
        assert status == 200 and (outputs["y"] == value).all()
    assert models.infer("added", x, "/versions/7")[0] == 404
    assert models.call("GET", "/v2/models/added/versions/7/ready")[0] == 404
    assert models.call("GET", "/v2/models/added/versions/2/ready")[0] == 200


# ---- wrong requests ------------------------------------------------------------------------------

X = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
BINARY = {**X, "parameters": {"binary_data_size": 12}}
del BINARY["data"]


def with_binary(entry, raw, length=None):
    text = json.dumps({"inputs": [entry]}).encode()
    return text + raw, {"Inference-Header-Content-Length": str(length or len(text))}


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"inputs":', "not JSON"),
        ([], "is an object"),
        ({}, "inputs is an array"),
        ({"inputs": 1}, "inputs is an array"),
        ({"inputs": [1]}, "an input is an object"),
        ({"inputs": []}, "'x' is not set"),
        ({"inputs": [{}]}, "no input None; it has x"),
        ({"inputs": [{**X, "name": "z"}]}, "no input z; it has x"),
        ({"inputs": [X, X]}, "twice"),
        ({"inputs": [{**X, "datatype": "INT32"}]}, "expected FP32, got INT32"),
        ({"inputs": [{**X, "shape": [2, 3]}]}, "has 6 elements, the data have 3"),
        ({"inputs": [{**X, "shape": [3]}]}, "x"),
        ({"inputs": [{**X, "shape": [3, 1]}]}, "x"),
        ({"inputs": [{**X, "data": [1, "a", 3]}]}, "input x"),
        ({"inputs": [{**X, "parameters": 1}]}, "parameters is an object"),
        ({"inputs": [{**X, "parameters": {"binary_data_size": 1}}]}, "data or binary_data_size"),
        ({"inputs": [BINARY]}, "binary_data_size is 12, 0 bytes follow"),
        ({"inputs": [X], "outputs": [{"name": "z"}]}, "no output z; it has y"),
        ({"inputs": [X], "outputs": [{"name": "y"}, {"name": "y"}]}, "twice"),
        ({"inputs": [X], "outputs": [{}]}, "has a name"),
        ({"inputs": [X], "id": 1}, "id is a string"),
        (with_binary(BINARY, b"\0" * 11), "11 bytes follow"),
        (with_binary(BINARY, b"\0" * 13), "1 bytes follow the last tensor"),
        (with_binary(BINARY, b"\0" * 12, 10**6), "the body has"),
        (with_binary(BINARY, b"\0" * 12, "-1"), "the body has"),
        (with_binary(BINARY, b"\0" * 12, "9" * 5000), "the body has"),
        (with_binary({**BINARY, "shape": [1 << 60, 0]}, b"\0" * 12), "a shape is a list"),
        (with_binary({**BINARY, "parameters": {"binary_data_size": -1}}, b""), "is -1"),
        (with_binary({**BINARY, "parameters": {"binary_data_size": True}}, b"a"), "is True"),
    ],
)
def test_malformed_requests(models, body, message):
    body, headers = body if isinstance(body, tuple) else (body, {})
    status, found, answer = models.call("POST", "/v2/models/added/infer", body, headers)
    assert (status, list(answer)) == (400, ["error"]) and message in answer["error"]
    assert found["x-request-id"]
    assert models.infer("added", {"x": np.zeros((1, 3), np.float32)})[0] == 200


def test_refused_requests(models):
    path = "/v2/models/added/infer"
    # Refused before the rest of the body is there.
    assert models.begin(path, {"Content-Length": "2000000"})[0] == 413
    chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
    status, answer = models.begin(path, {"Transfer-Encoding": "chunked"}, chunk)
    assert status == 413 and "limited to 1000000 bytes" in answer["error"]
    assert models.call("POST", path, b"a", {"Content-Encoding": "gzip"})[0] == 415
    assert models.call("POST", "/v2/models/none/infer", b"{}")[0] == 404
    assert models.call("POST", "/v2/models/..%2Fadded/infer", b"{}")[0] == 404
    assert models.call("GET", path)[0] == 405
    # No other endpoint of KServe that would read a body of any size.
    for verb in ("predict", "explain"):
        path = f"/v1/models/added:{verb}"
        assert models.begin(path, {"Content-Length": "2000000"})[0] == 404
    for verb in ("load", "unload"):
        assert models.call("POST", f"/v2/repository/models/added/{verb}")[0] == 403
    with grpc_client.InferenceServerClient(f"127.0.0.1:{models.grpc_port}") as client:
        with pytest.raises(ServerError, match="PERMISSION_DENIED"):
            client.unload_model("added")
        x = grpc_client.InferInput("x", [100000, 3], "FP32")
        x.set_data_from_numpy(np.zeros((100000, 3), np.float32))
        with pytest.raises(ServerError, match="RESOURCE_EXHAUSTED"):
            client.infer("added", [x])
    assert models.infer("added", {"x": np.zeros((1, 3), np.float32)})[0] == 200


def test_messages_are_bounded(models):
    """What a client sent is part of a message, but not all of it."""
    long = "n" * 100000
    path = "/v2/models/added/infer"
    for given in ({"name": long}, {"datatype": long}, {"shape": [-1] * 50000}):
        status, _, answer = models.call("POST", path, {"inputs": [{**X, **given}]})
        assert status == 400 and 0 < len(answer["error"]) < 2000
    with grpc_client.InferenceServerClient(f"127.0.0.1:{models.grpc_port}") as client:
        x = grpc_client.InferInput(long, [1, 3], "FP32")
        x.set_data_from_numpy(np.zeros((1, 3), np.float32))
        with pytest.raises(ServerError, match="INVALID_ARGUMENT.*no input nnn"):
            client.infer("added", [x])
    status, _, answer = models.call("POST", path, {"inputs": [X], "id": long})
    assert (status, answer["id"]) == (200, long)
    assert max(map(len, models.lines)) < 4000


VALUES = [
    None, True, -1, 0, 3, 1 << 60, 1 << 70, 1.5, 1e300, "", "x", "FP32", "é" * 9, [], [1], {},
    [[1, 2], [3]], [1, "a"], [None], [0, 1 << 61], {"data": 1}, [[[[1]]]], [True],
]  # fmt: skip


def places(thing):
    """Returns (container, key) of all that a JSON value has."""
    keys = thing.keys() if isinstance(thing, dict) else range(len(thing))
    for key in keys:
        yield thing, key
        if isinstance(thing[key], (dict, list)):
            yield from places(thing[key])


@pytest.mark.parametrize(
    "name, datatype", [("added", "FP32"), ("table", "INT64"), ("texts", "BYTES")]
)
def test_no_request_is_a_fault_of_the_server(models, name, datatype):
    """Requests with one or two values replaced are right or refused: never 500, never an end."""
    random = np.random.default_rng(7)
    seen = set()
    for _ in range(300):
        request = {"id": "1", "parameters": {"binary_data_output": False}, "inputs": [
            {"name": "x", "shape": [1, 3], "datatype": datatype, "data": [[1, 2, 3]],
             "parameters": {"p": 1}}], "outputs": [{"name": "y", "parameters": {}}]}  # fmt: skip
        for _ in range(random.integers(1, 3)):
            found = list(places(request))
            container, key = found[random.integers(len(found))]
            container[key] = VALUES[random.integers(len(VALUES))]
        status, _, answer = models.call("POST", f"/v2/models/{name}/infer", request)
        assert status in (200, 400), (request, answer)
        seen.add(status)
    assert 400 in seen


# ---- many clients --------------------------------------------------------------------------------


def test_clients_get_their_own_rows(models):
    """Requests of different sizes that run together, and malformed ones between them."""

    def client(seed):
        random = np.random.default_rng(seed)
        with http_client.InferenceServerClient(f"127.0.0.1:{models.port}") as triton:
            for _ in range(20):
                n, start = int(random.integers(1, 6)), int(random.integers(0, 50))
                x = http_client.InferInput("image", [n, 1, 8, 8], "FP32")
                x.set_data_from_numpy(IMAGES[start : start + n].astype(np.float32))
                found = triton.infer("digits", [x]).as_numpy("probabilities")
                assert np.abs(found - PROBABILITIES[start : start + n]).max() < 1e-5
                wrong = {"image": np.zeros((n, 1, 8, 7), np.float32)}
                assert models.infer("digits", wrong)[0] == 400

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(client, range(16)))


def test_a_request_that_fails_takes_no_other_with_it(models):
    """Half of the clients send an index that is not there, in runs with the other half."""

    def client(seed):
        for i in range(10):
            x = np.array([i, 100 * (seed % 2) + i, 7], np.int64)
            status, answer = models.infer("table", {"x": x})
            if seed % 2:
                assert status == 400 and "[DATA]" in answer
            else:
                assert status == 200 and answer["y"].tolist() == (x * x).tolist()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    assert not [e for e in models.events("requests are not combined") if e["model"] == "table"]


def test_dependent_rows_are_not_combined(models):
    def client(seed):
        for i in range(10):
            x = rows(1 + seed % 3, 3, seed=100 * seed + i)
            status, outputs = models.infer("mixed", {"x": x})
            assert status == 200 and np.allclose(outputs["y"], x - x.max(), atol=1e-6)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(client, range(8)))
    (event,) = [e for e in models.events("requests are not combined") if e["model"] == "mixed"]
    assert "node 'largest' (ReduceMax" in event["reason"]


def test_ids_logs_and_metrics(models):
    status, headers, _ = models.call(
        "POST", "/v2/models/added/infer", {"inputs": [X]}, {"X-Request-Id": 'a"b'}
    )
    assert (status, headers["x-request-id"]) == (200, 'a"b')
    models.call("POST", "/v2/models/added/infer", {}, {"X-Request-Id": "wrong"})
    while True:  # the line is written before the answer, but read by a thread
        found = {e["id"]: e for e in models.events("request")}
        if "wrong" in found:
            break
    good = found['a"b']
    assert (good["model"], good["version"], good["status"], good["rows"]) == ("added", "10", 200, 1)
    assert good["ms"] >= good["run_ms"] > 0 and good["level"] == "info"
    assert found["wrong"]["status"] == 400 and "inputs is an array" in found["wrong"]["error"]
    counts = models.metric("clgraph_requests_total")
    for code in ("200", "400"):
        key = f'{{model="added",protocol="rest",status="{code}",version="10"}}'
        assert counts[key] >= 1
    assert sum(models.metric("clgraph_memory_bytes").values()) > 0
    # Names that do not exist make no metrics.
    models.call("POST", "/v2/models/" + "n" * 50 + "/infer", {})
    assert "n" * 50 not in models.call("GET", "/metrics")[2].decode()
