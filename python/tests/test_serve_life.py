# SPDX-License-Identifier: Apache-2.0
"""The life of a server: start, loading and reloading, overload, lost devices, end.

Skipped by name where KServe or tritonclient is not installed.
"""

import concurrent.futures
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from conftest import DIGITS, SOURCE, model, rows, save, slow, unary
from onnx import TensorProto, helper
from server_process import WAIT_S, Server, ServerError, add, grpc_client, serving, tensor

import clgraph
from clgraph.serve import _model
from clgraph.serve._errors import Refused, refused
from clgraph.serve._options import Options

IMAGES = np.load(DIGITS.parent / "heldout.npy")


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


def test_requests_wait_no_longer_than_they_may(device, tmp_path):
    """Though the only instance stays busy: they are not refused by it when it is free."""
    path = save(slow(), tmp_path / "slow.onnx")
    with serving(path, "--instances", 1, "--grace-s", 1, "--queue-timeout-ms", 500, "--device",
                 device.device.selector) as server:  # fmt: skip
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            requests = [pool.submit(server.infer, "slow", loops(2**40)) for _ in range(2)]
            done, running = concurrent.futures.wait(requests, 60, "FIRST_COMPLETED")
            server.process.send_signal(signal.SIGTERM)
            assert len(running) == 1
            status, answer = done.pop().result()
            assert status == 503 and "waited too long" in answer
            assert running.pop().result()[0] == 503


def test_a_client_that_has_gone_frees_its_place(device, tmp_path):
    path = save(slow(), tmp_path / "slow.onnx")
    with serving(path, "--max-queue", 1, "--instances", 1, "--grace-s", 1, "--queue-timeout-ms", 0,
                 "--device", device.device.selector) as server:  # fmt: skip
        feeds = [tensor(name, array) for name, array in loops(2**40).items()]
        body = json.dumps({"inputs": feeds}).encode()
        running = server.post("slow", body)
        server.until("clgraph_running", 1)
        gone = server.post("slow", body)
        server.until("clgraph_waiting_requests", 1)
        gone.close()
        server.until("clgraph_waiting_requests", 0)
        with grpc_client.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
            inputs = []
            for name, array in loops(2**40).items():
                datatype = "INT64" if name == "n" else "FP32"
                inputs.append(grpc_client.InferInput(name, array.shape, datatype))
                inputs[-1].set_data_from_numpy(array)
            call = client.async_infer("slow", inputs, lambda result, error: None)
            server.until("clgraph_waiting_requests", 1)
            call.cancel()
            server.until("clgraph_waiting_requests", 0)
        server.post("slow", body[:9], len(body)).close()  # within its body
        server.process.send_signal(signal.SIGTERM)
        assert server.answer(running)[0] == 503
    found = server.events("request")
    assert sorted((e["protocol"], e["status"]) for e in found) == [
        ("grpc", 499), ("rest", 499), ("rest", 499), ("rest", 503)
    ]  # fmt: skip


def test_bytes_in_progress_are_limited(device, tmp_path):
    path = save(add(1), tmp_path / "m.onnx")
    with serving(path, "--max-request-bytes", "1m", "--max-total-bytes", "1m",
                 "--device", device.device.selector) as server:  # fmt: skip
        body = json.dumps({"inputs": [tensor("x", rows(2, 3))]}).encode().ljust(600000)
        held = server.post("m", body, len(body) + 1)  # its last byte does not come
        for _ in range(1000):
            status, _, answer = server.call("POST", "/v2/models/m/infer", body)
            if status != 200:
                break
        assert status == 429 and "bytes" in answer["error"]
        held.sendall(b" ")
        assert server.answer(held)[0] == 200
        assert server.call("POST", "/v2/models/m/infer", body)[0] == 200


def test_a_version_is_replaced_while_a_request_arrives(device, tmp_path):
    """A request without a version, which version 1 would have answered, is answered by 2."""
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    save(add(1), folder / "1" / "model.onnx")
    with serving(folder, "--model-control", "--device", device.device.selector) as server:
        zeros = {"x": np.zeros((1, 3), np.float32)}
        body = json.dumps({"inputs": [tensor("x", zeros["x"])]}).encode()
        late = server.post("m", body[:-1], len(body))
        assert server.infer("m", zeros)[1]["y"].max() == 1  # hence the first is read as well
        (folder / "1").rename(folder / "2")
        save(add(2), folder / "2" / "model.onnx")
        assert server.call("POST", "/v2/repository/models/m/load")[0] == 200
        assert server.infer("m", zeros, "/versions/1")[0] == 404
        late.sendall(body[-1:])
        status, answer = server.answer(late)
        assert status == 200 and answer["outputs"][0]["data"] == [2, 2, 2]


def test_a_reload_finishes_what_was_accepted(device, tmp_path):
    """One request runs and one waits while their model is replaced."""
    path = save(slow(), tmp_path / "slow.onnx")
    with serving(path, "--instances", 1, "--grace-s", 3600, "--model-control", "--device",
                 device.device.selector) as server:  # fmt: skip
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            requests = [pool.submit(server.infer, "slow", loops(1000)) for _ in range(2)]
            server.until("clgraph_waiting_requests", 1)
            assert server.call("POST", "/v2/repository/models/slow/load")[0] == 200
            for request in requests:
                status, outputs = request.result()
                assert status == 200 and (outputs["y"] == 0).all()


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


def test_signals_until_the_end():
    """However many signals come and when, the server ends with 0."""
    server = Server(DIGITS).start()
    while server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.005)  # so that it has time for more than signals
    assert server.process.returncode == 0


@pytest.mark.parametrize(
    "option, message",
    [("--port", "address already in use"), ("--grpc-port", "gRPC cannot listen at 127.0.0.1:")],
)
def test_a_port_that_is_in_use(option, message):
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = Server(DIGITS, option, other.getsockname()[1])
        assert server.process.wait(WAIT_S) == 1
        server._reader.join(WAIT_S)
    assert all(line.startswith("{") for line in server.lines), "".join(server.lines)
    assert message in "".join(server.lines) and not server.events("listening")


def test_memory_of_a_model_is_limited(device, tmp_path):
    path = save(unary("Relu", shape=("n", 1000)), tmp_path / "m.onnx")
    threads = ["--cpu-threads", 1] if device.device.kind == "CPU" else []
    with serving(path, *threads, "--memory", "2m", "--device", device.device.selector) as server:
        assert server.infer("m", {"x": rows(1, 1000)})[0] == 200
        status, message = server.infer("m", {"x": np.zeros((2000, 1000), np.float32)})
        assert status == 413 and "max_memory_bytes" in message
        assert server.infer("m", {"x": rows(1, 1000)})[0] == 200
    # Of one model, which is not the other's.
    server = Server(path, "--memory", "2m", "--memory", "m=10k", "--device", device.device.selector)
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
                 "--body-timeout-s", 1, "--split") as server:  # fmt: skip
        x = rows(2, 1, 4, 4)
        status, outputs = server.infer("m", {"x": x})
        assert status == 200 and np.allclose(outputs["y"][0, 0, 0, 0], x[0, 0, :3, :3].mean())
        status, answer = server.begin("/v2/models/m/infer", {"Content-Length": "9"}, b"{")
        assert status == 408 and "did not arrive in time" in answer["error"]


def test_the_cache_is_filled_before(device, tmp_path):
    """After --prepare-only a server without HOME compiles nothing, whatever the number of rows is:
    its cache stays as it is."""
    env = {"CLG_CACHE_DIR": str(tmp_path / "cache"), "HOME": ""}
    max_batch = 9
    arguments = [DIGITS, "--device", device.device.selector, "--max-batch", max_batch]
    server = Server("--prepare-only", *arguments, env=env)
    assert server.process.wait(WAIT_S) == 0

    def files():
        return sorted(str(p) for p in (tmp_path / "cache").rglob("*") if p.is_file())

    before = files()
    assert before
    with serving(*arguments, env=env) as server:
        for n in range(1, max_batch + 1):
            assert server.infer("digits", {"image": IMAGES[:n].astype(np.float32)})[0] == 200
    assert files() == before


READY = """
import asyncio, sys
from clgraph.serve._options import Options
import clgraph.serve._server
from clgraph.serve import _model
from clgraph.serve._errors import Refused
from clgraph.serve._model import LoadedModel
from clgraph.serve._repository import Plane, Repository

async def run():
    repository = Repository(Options(sys.argv[1:]))
    steps = []

    def spy(self, *arguments, prepare=LoadedModel._prepare):
        steps.append(repository.is_ready)
        prepare(self, *arguments)
        steps.append(self._sessions[0].memory().weight_bytes)
        steps.append(repository.is_ready)

    LoadedModel._prepare = spy
    plane = Plane(repository)
    assert not await plane.ready()
    try:
        repository.find("m")
        assert False
    except Refused as e:
        assert e.http == 503 and "m is being loaded" in e.message
    await repository.load_all()
    assert len(steps) == 3 and not steps[0] and not steps[2]
    assert await plane.ready() and await plane.model_ready("m")
    repository.is_stopping = True
    assert not await plane.ready() and not await plane.model_ready("m")
    await repository.close(0)

asyncio.run(run())
"""


REPLACED = """
import asyncio, sys, types
from clgraph.serve._options import Options
import clgraph.serve._server
from clgraph.serve._infer import Call, Parsed
from clgraph.serve._logs import configure
from clgraph.serve._repository import Repository
import numpy as np

async def run():
    first, second = (Repository(Options([path])) for path in sys.argv[1:])
    await first.load_all()
    await second.load_all()
    answers, parsed = iter([first, second, second, second]), []
    repository = types.SimpleNamespace(find=lambda *names: next(answers).find(*names))

    def parse(model):
        parsed.append(model)
        (name,) = model.inputs
        return Parsed(None, {name: np.zeros((1, 3), np.float32)}, list(model.outputs))

    model, _, (y,) = await Call("rest", "m", None).run(repository, 1 << 20, parse)
    assert parsed == [first.find("m"), second.find("m")] and model is parsed[1]
    assert (y == 2).all()
    await first.close(0)
    await second.close(0)
    configure("info")
    try:
        raise ValueError("secret")
    except ValueError as e:
        found = Call("rest", "m", None).fail(e)
    assert found.http == 500 and "secret" not in found.message

asyncio.run(run())
"""


def test_a_model_is_replaced_while_a_request_is_parsed(device, tmp_path):
    """The request is parsed again for the new model; a fault is in the log with its traceback."""
    paths = []
    for value in (1, 2):
        proto = add(value)
        if value == 2:  # has another name of its input
            proto.graph.input[0].name = proto.graph.node[0].input[0] = "other"
        (tmp_path / str(value)).mkdir()
        paths.append(save(proto, tmp_path / str(value) / "m.onnx"))
    command = [sys.executable, "-c", REPLACED, *paths]
    done = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    (event,) = [e for e in map(json.loads, done.stderr.splitlines()) if e["message"] == "request"]
    assert event["status"] == 500 and "ValueError: secret" in event["traceback"]


def test_ready_is_after_loading(device, tmp_path):
    """The server is not ready before all models are, and not while it stops."""
    path = save(unary("Relu"), tmp_path / "m.onnx")
    subprocess.run([sys.executable, "-c", READY, path], check=True)


def test_kubernetes_objects(tmp_path):
    """The objects are those of the schema; what is changed in one is found."""
    folder = SOURCE / "examples" / "serving"
    tool = [sys.executable, SOURCE / "python" / "tools" / "check_serving_yaml.py"]
    done = subprocess.run([*tool, *folder.glob("*.yaml")], capture_output=True, text=True)
    assert done.returncode == 0 and "2 files are right" in done.stdout, done.stderr
    text, changed = (folder / "servingruntime.yaml").read_text(), []
    changes = [
        ("containerPort: 8080", 'containerPort: "x"', "expected int"),
        ("httpGet:", "httpget:", "has no field httpget"),
        ("multiModel: false", 'multiModel: "no"', "expected bool"),
        ("- name: kserve-container", "- tty: true", "name"),
    ]
    for i, (before, after, _) in enumerate(changes):
        assert before in text
        changed.append(tmp_path / f"{i}.yaml")
        changed[-1].write_text(text.replace(before, after))
    done = subprocess.run([*tool, *changed], capture_output=True, text=True)
    assert done.returncode == 1
    for i, (_, _, message) in enumerate(changes):
        of_file = done.stdout.partition(f"/{i}.yaml")[2].partition(f"/{i + 1}.yaml")[0]
        assert message in of_file, done.stdout


def _loaded(name, path, device, **options):
    return _model.LoadedModel(name, "1", path, [device], Options([path], **options), lambda: False)


@pytest.mark.parametrize(
    "options, sizes",
    [
        ({"max_batch": 5}, [1, 5]),
        ({"max_batch": 5, "prepare_only": True}, [1, 2, 3, 4, 5]),
        ({"max_batch": 1, "prepare_only": True}, [1]),
    ],
)
def test_numbers_of_rows_that_are_prepared(device, tmp_path, monkeypatch, options, sizes):
    prepared, prepare = [], clgraph.InferenceSession.prepare

    def note(self, shapes, progress):
        prepared.append(shapes["x"][0])
        prepare(self, shapes, progress)

    monkeypatch.setattr(clgraph.InferenceSession, "prepare", note)
    _loaded("m", save(add(1), tmp_path / "m.onnx"), device, **options).close(WAIT_S)
    assert prepared == sizes


@pytest.mark.parametrize("fault", [clgraph.DeviceLost("gone"), RuntimeError("of a driver")])
def test_lost_devices(device, tmp_path, monkeypatch, fault):
    """A run is repeated on a device that opens again; until it does, requests get 503."""
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
            raise state["is_gone"]

    path = save(add(1), tmp_path / "m.onnx")
    model = _loaded("lost", path, device)
    try:
        monkeypatch.setattr(session, "run", lose)
        monkeypatch.setattr(session, "recover", recover)
        feeds = {"x": rows(2, 3)}

        def submit():
            return model.submit(feeds, ["y"]).future

        state["losses"] = 1
        assert np.allclose(submit().result(WAIT_S)[0], feeds["x"] + 1)
        state["is_gone"] = fault
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


def test_other_devices_take_over(device, tmp_path, monkeypatch):
    """No request fails while one device of two is lost; the model stays ready."""
    monkeypatch.setattr(_model, "_RETRY_S", 0.01)
    path = save(add(1), tmp_path / "m.onnx")
    options = Options([path])
    model = _model.LoadedModel("pool", "1", path, [device, device], options, lambda: False)
    run, session, first = clgraph.InferenceSession.run, clgraph.InferenceSession, model._sessions[0]
    n_lost = []

    def lose(self, *arguments):
        if self is first:
            n_lost.append(1)
            raise clgraph.DeviceLost("lost")
        return run(self, *arguments)

    def recover(self):
        raise clgraph.DeviceLost("gone")

    try:
        monkeypatch.setattr(session, "run", lose)
        monkeypatch.setattr(session, "recover", recover)
        while not n_lost:  # until a thread of the lost one had a request
            feeds = {"x": rows(2, 3)}
            requests = [model.submit(feeds, ["y"]) for _ in range(20)]
            for request in requests:
                assert np.allclose(request.future.result(WAIT_S)[0], feeds["x"] + 1)
        assert model.is_healthy
    finally:
        model.close(WAIT_S)


def test_a_model_that_is_closed_answers_what_waits(device, tmp_path):
    """What runs is cancelled, and what waits is refused at once, not started to be cancelled."""
    path = save(slow(), tmp_path / "m.onnx")
    model = _loaded("closed", path, device, instances=1)
    requests = [model.submit(loops(2**40), ["y"]) for _ in range(6)]
    while not model._running:
        assert not requests[0].future.done()
    model.close(0)
    errors = [request.future.exception(WAIT_S) for request in requests]
    assert isinstance(errors[0], clgraph.Cancelled)
    assert all("being unloaded" in error.message for error in errors[1:])
    with pytest.raises(Refused) as e:
        model.submit(loops(1), ["y"])
    assert e.value.http == 503


def test_a_model_whose_threads_cannot_start(device, tmp_path, monkeypatch):
    """Those that started end: they would keep the model and its sessions."""
    started = []

    class Limited(threading.Thread):
        def start(self):
            if started:
                raise RuntimeError("can't start new thread")
            started.append(self)
            super().start()

    path = save(add(1), tmp_path / "m.onnx")
    limited = types.SimpleNamespace(Thread=Limited, get_ident=threading.get_ident)
    monkeypatch.setattr(_model, "threading", limited)
    with pytest.raises(RuntimeError, match="can't start"):
        _loaded("threads", path, device)
    assert len(started) == 1 and not started[0].is_alive()
