# SPDX-License-Identifier: Apache-2.0
"""The server as its clients see it: a process on loopback, tritonclient and raw HTTP.

Skipped by name where KServe or tritonclient is not installed.
"""

import concurrent.futures
import importlib.util
import json
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import DIGITS, SOURCE, model, rows, save, slow, unary
from onnx import TensorProto, helper
from server_process import WAIT_S, Server, serving

import clgraph
from clgraph.serve._errors import Refused, refused
from clgraph.serve._options import Options

# Not imported: its gRPC messages and tritonclient's have the same names, and one process has one.
if importlib.util.find_spec("kserve") is None:
    pytest.skip("KServe is not installed (pip install clgraph[serve])", allow_module_level=True)
http_client = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
grpc_client = pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed")
ServerError = pytest.importorskip("tritonclient.utils").InferenceServerException


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
        [helper.make_node("ReduceMax", ["x"], ["m"]), helper.make_node("Sub", ["x", "m"], ["y"])],
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
    assert models.call("POST", "/v1/models/added:predict", {"instances": [[1, 2, 3]]})[0] == 501
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
    assert "ReduceMax" in event["reason"]


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


# ---- load, overload, end -------------------------------------------------------------------------


def test_reload_drops_no_request(device, tmp_path):
    path, versions = tmp_path / "m.onnx", tmp_path / "v"
    save(add(1), path)
    (versions / "1").mkdir(parents=True)
    save(add(1), versions / "1" / "model.onnx")
    with serving(path, versions, "--model-control", "--device", device.device.selector) as server:
        stop, values = threading.Event(), set()

        def client(seed):
            while not stop.is_set():
                x = rows(2, 3, seed=seed)
                status, outputs = server.infer("m", {"x": x})
                assert status == 200, outputs
                value = np.unique(np.rint(outputs["y"] - x))
                assert value.size == 1 and np.allclose(outputs["y"], x + value, atol=1e-6)
                values.add(float(value[0]))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(client, seed) for seed in range(4)]
            try:
                for value in (2, 3, 4):
                    save(add(value), path)
                    status, _, answer = server.call("POST", "/v2/repository/models/m/load")
                    assert (status, answer) == (200, {"name": "m", "load": True})
                    zeros = {"x": np.zeros((1, 3), np.float32)}
                    assert (server.infer("m", zeros)[1]["y"] == value).all()
            finally:
                stop.set()
            for future in clients:
                future.result()
        assert values <= {1, 2, 3, 4}
        # A file that is no model leaves what is there.
        path.write_bytes(b"no model")
        status, _, answer = server.call("POST", "/v2/repository/models/m/load")
        assert status == 400 and answer["error"]
        assert (server.infer("m", zeros)[1]["y"] == 4).all()
        assert server.metric("clgraph_memory_bytes")['{kind="io",model="m",version="1"}'] > 0
        # A new version, by gRPC.
        (versions / "2").mkdir()
        save(add(2), versions / "2" / "model.onnx")
        with grpc_client.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as triton:
            triton.load_model("v")
            assert (server.infer("v", zeros)[1]["y"] == 2).all()
            assert (server.infer("v", zeros, "/versions/1")[1]["y"] == 1).all()
            triton.unload_model("v")
            with pytest.raises(ServerError, match="NOT_FOUND"):
                triton.load_model("none")
        assert server.infer("v", zeros)[0] == 404
        assert server.call("POST", "/v2/repository/models/v/unload")[0] == 404
        assert server.call("POST", "/v2/repository/models/..%2Fv/load")[0] == 404
        assert '"v"' not in "".join(server.metric("clgraph_memory_bytes"))
        assert server.call("GET", "/v2/health/ready")[0] == 200
        triton_load = server.call("POST", "/v2/repository/models/v/load")
        assert triton_load[0] == 200 and server.infer("v", zeros)[0] == 200


def loops(n):
    return {"n": np.array(n, np.int64), "x": np.zeros((256, 256), np.float32)}


def test_overload_is_refused_at_once(device, tmp_path):
    """One request runs for ever and two wait: the others get 429 meanwhile, and the end 503."""
    path = save(slow(), tmp_path / "slow.onnx")
    with serving(path, "--max-queue", 2, "--instances", 1, "--grace-s", 1, "--queue-timeout-ms", 0,
                 "--device", device.device.selector) as server:  # fmt: skip
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            requests = [pool.submit(server.infer, "slow", loops(2**40)) for _ in range(8)]
            refused = []
            for done in concurrent.futures.as_completed(requests):
                refused.append(done.result())
                if len(refused) == 5:
                    break
            assert {status for status, _ in refused} == {429}
            assert "2 requests are waiting" in refused[0][1]
            assert server.call("GET", "/v2/health/live")[0] == 200
            assert list(server.metric("clgraph_waiting_requests").values()) == [2]
            assert server.stop() == 0
            answers = [r.result() for r in requests]
        assert sorted(status for status, _ in answers) == [429] * 5 + [503] * 3
        server.process.returncode = None  # stopped already
        server.stop = lambda: 0


def test_a_stop_finishes_what_was_accepted(device, tmp_path):
    path = save(slow(), tmp_path / "slow.onnx")
    with serving(path, "--instances", 1, "--grace-s", 3600, "--device",
                 device.device.selector) as server:  # fmt: skip
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            requests = [pool.submit(server.infer, "slow", loops(300)) for _ in range(2)]
            while list(server.metric("clgraph_waiting_requests").values()) != [1]:
                assert not requests[0].done()
            server.process.send_signal(signal.SIGTERM)
            for request in requests:
                status, outputs = request.result()
                assert status == 200 and (outputs["y"] == 0).all()


def test_a_stop_while_models_are_loaded(tmp_path):
    """The server ends with 0, whether its models were ready or not."""
    server = Server(DIGITS, env={"CLG_CACHE_DIR": str(tmp_path)})
    server.wait_for("loading")
    assert server.stop() == 0 and server.events("stopped")


def test_memory_of_a_model_is_limited(device, tmp_path):
    path = save(unary("Relu", shape=("n", 1000)), tmp_path / "m.onnx")
    threads = ["--cpu-threads", 1] if device.device.kind == "CPU" else []
    with serving(path, *threads, "--memory", "2m", "--device", device.device.selector) as server:
        assert server.infer("m", {"x": rows(1, 1000)})[0] == 200
        status, message = server.infer("m", {"x": np.zeros((2000, 1000), np.float32)})
        assert status == 413 and "max_memory_bytes" in message
        assert server.infer("m", {"x": rows(1, 1000)})[0] == 200
    server = Server(path, "--memory", "10k", "--device", device.device.selector)
    assert "max_memory_bytes" in server.wait_for("a model cannot be loaded")["error"]
    assert server.process.wait(WAIT_S) == 1


def test_models_that_cannot_be_served(device, tmp_path):
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
    proto = model([helper.make_node("SequenceLength", ["x"], ["y"])], [sequence],
                  [("y", TensorProto.INT64, [])])  # fmt: skip
    pool = model([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3])],
                 [("x", TensorProto.FLOAT, ["n", 1, "h", "w"])],
                 [("y", TensorProto.FLOAT, ["n", 1, "a", "b"])])  # fmt: skip
    for given, message in ((proto, "seq(tensor(float))"), (pool, "--shape NAME=DIMS")):
        server = Server(save(given, tmp_path / "m.onnx"), "--device", device.device.selector)
        assert message in server.wait_for("a model cannot be loaded")["error"]
        assert server.process.wait(WAIT_S) == 1
    with serving(tmp_path / "m.onnx", "--shape", "x=1,1,8,8", "--device", device.device.selector,
                 "--body-timeout-s", 5, "--split") as server:  # fmt: skip
        x = rows(2, 1, 4, 4)
        status, outputs = server.infer("m", {"x": x})
        assert status == 200 and np.allclose(outputs["y"][0, 0, 0, 0], x[0, 0, :3, :3].mean())
        status, answer = server.begin("/v2/models/m/infer", {"Content-Length": "9"}, b"{")
        assert status == 408 and "did not arrive in time" in answer["error"]


def test_the_cache_is_filled_before(device, tmp_path):
    """After --prepare-only a server without HOME compiles nothing: its cache stays as it is."""
    env = {"CLG_CACHE_DIR": str(tmp_path / "cache"), "HOME": ""}
    arguments = [DIGITS, "--device", device.device.selector]
    server = Server("--prepare-only", *arguments, env=env)
    assert server.process.wait(WAIT_S) == 0

    def files():
        return sorted(str(p) for p in (tmp_path / "cache").rglob("*") if p.is_file())

    before = files()
    assert before
    with serving(*arguments, env=env) as server:
        assert server.infer("digits", {"image": IMAGES[:3].astype(np.float32)})[0] == 200
    assert files() == before


READY = """
import asyncio, sys
from clgraph.serve._options import Options
import clgraph.serve._server
from clgraph.serve._errors import Refused
from clgraph.serve._repository import Plane, Repository

async def run():
    repository = Repository(Options(sys.argv[1:]))
    plane = Plane(repository)
    assert not await plane.ready()
    try:
        repository.find("m")
        assert False
    except Refused as e:
        assert e.http == 503 and "m is being loaded" in e.message
    await repository.load_all()
    assert await plane.ready() and await plane.model_ready("m")
    repository.is_stopping = True
    assert not await plane.ready() and not await plane.model_ready("m")
    await repository.close(0)

asyncio.run(run())
"""


def test_ready_is_after_loading(device, tmp_path):
    """The server is not ready before all models are, and not while it stops."""
    path = save(unary("Relu"), tmp_path / "m.onnx")
    subprocess.run([sys.executable, "-c", READY, path], check=True)


@pytest.mark.parametrize(
    "before, after, message",
    [
        ("", "", None),
        ("containerPort: 8080", 'containerPort: "x"', "expected int"),
        ("httpGet:", "httpget:", "has no field httpget"),
        ("multiModel: false", 'multiModel: "no"', "expected bool"),
        ("- name: kserve-container", "- tty: true", "name"),
    ],
)
def test_kubernetes_objects(tmp_path, before, after, message):
    """The objects are those of the schema; what is changed in one is found."""
    folder = SOURCE / "examples" / "serving"
    changed = tmp_path / "changed.yaml"
    changed.write_text((folder / "servingruntime.yaml").read_text().replace(before, after))
    tool = SOURCE / "python" / "tools" / "check_serving_yaml.py"
    command = [sys.executable, tool, changed, folder / "inferenceservice.yaml"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == (1 if message else 0), done.stderr
    assert (message or "2 files are right") in done.stdout


def test_lost_devices(device, tmp_path, monkeypatch):
    """A run is repeated on a device that opens again; until it does, requests get 503."""
    _model = pytest.importorskip("clgraph.serve._model")
    monkeypatch.setattr(_model, "_RETRY_S", 0.01)
    state = {"losses": 0, "is_gone": False}
    run, session = clgraph.InferenceSession.run, clgraph.InferenceSession

    def lose(self, *arguments):
        if state["losses"] or state["is_gone"]:
            state["losses"] -= 1
            raise clgraph.DeviceLost("lost", "CLG_ERROR_DEVICE_LOST")
        return run(self, *arguments)

    def recover(self):
        if state["is_gone"]:
            raise clgraph.DeviceLost("gone", "CLG_ERROR_DEVICE_LOST")

    path = save(add(1), tmp_path / "m.onnx")
    model = _model.LoadedModel("lost", "1", path, [device], Options([path]), lambda: False)
    try:
        monkeypatch.setattr(session, "run", lose)
        monkeypatch.setattr(session, "recover", recover)
        feeds = {"x": rows(2, 3)}

        def submit():
            return model.submit(feeds, ["y"]).future

        state["losses"] = 1
        assert np.allclose(submit().result(WAIT_S)[0], feeds["x"] + 1)
        state["is_gone"] = True
        assert refused(submit().exception(WAIT_S)).http == 503
        assert not model.is_healthy
        with pytest.raises(Refused, match="device of the model is lost") as e:
            submit()
        assert e.value.http == 503
        state.update(losses=0, is_gone=False)
        while not model.is_healthy:
            pass
        assert np.allclose(submit().result(WAIT_S)[0], feeds["x"] + 1)
    finally:
        model.close(WAIT_S)
