# SPDX-License-Identifier: Apache-2.0
"""What concerns the whole process: Ctrl-C, fork, spawn, machines without OpenCL, the end."""

import os
import subprocess
import sys
import textwrap

import pytest

FOLDER = os.path.dirname(os.path.abspath(__file__))
posix = pytest.mark.skipif(os.name != "posix", reason="signals and fork of POSIX systems")


def python(code, timeout=120, **environment):
    """Runs a program in a new interpreter; returns its exit code, output and errors."""
    prelude = f"import sys; sys.path.insert(0, {FOLDER!r})\n"
    return subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
        check=False,
    )


# A thread sends SIGINT while the main thread is in a call that takes minutes, and looks at the
# clock when KeyboardInterrupt arrives.
INTERRUPT = """
    import os, signal, threading, time
    import numpy as np
    import clgraph
    from conftest import slow

    sent = []
    def press(delay=0.5):
        def later():
            time.sleep(delay)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=later, daemon=True).start()

    session = clgraph.InferenceSession(slow())
    feed = {"n": np.int64(1), "x": np.zeros((256, 256), np.float32)}
    session.run(None, feed)
    feed["n"] = np.int64(10**9)
"""


@posix
def test_ctrl_c_ends_a_run(device):
    result = python(
        INTERRUPT
        + """
    for _ in range(3):
        press()
        try:
            session.run(None, feed)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - sent[-1] < 1)
    feed["n"] = np.int64(2)
    print(session.run(None, feed)[0].shape)
    """
    )
    assert result.stdout.splitlines() == ["interrupted True"] * 3 + ["(256, 256)"], result.stderr
    assert result.returncode == 0, result.stderr


@posix
def test_a_handler_that_does_not_raise_lets_the_run_go_on(device):
    result = python(
        INTERRUPT
        + """
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(time.monotonic()))
    feed["n"] = np.int64(50)
    reader, writer = __import__("socket").socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    press(0.05)
    (y,) = session.run(None, feed)
    while not sent:
        time.sleep(0.01)
    time.sleep(0.05)
    print(len(seen), y.shape, seen[0] - sent[0] < 1)
    # The descriptor of before is in place again, and was told of the signal.
    reader.setblocking(False)
    print(signal.set_wakeup_fd(-1) == writer.fileno(), signal.SIGINT in reader.recv(16))
    """
    )
    assert result.stdout.splitlines() == ["1 (256, 256) True", "True True"], result.stderr


@posix
def test_ctrl_c_ends_preparation_and_loading(device):
    # What waits for the library is a thread; the call is one that never ends by itself.
    result = python(
        INTERRUPT
        + """
    from clgraph._interrupt import waiting
    ended = threading.Event()
    def cancel():
        ended.set()
    press()
    try:
        waiting(lambda: ended.wait(60), cancel)
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - sent[-1] < 1, ended.is_set())
    """
    )
    assert result.stdout == "interrupted True True\n", result.stderr
    assert result.returncode == 0, result.stderr


@posix
def test_ctrl_c_while_kernels_compile(device, tmp_path):
    result = python(
        """
    import os, signal, threading, time
    import clgraph
    from conftest import DIGITS
    context = clgraph.Context()
    session = clgraph.InferenceSession(DIGITS, context)
    def progress(what, done, total):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
    start = time.monotonic()
    try:
        session.prepare({"image": [7, 1, 8, 8]}, progress)
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - start < 20)
    print(session.run(None, {"image": [[[[0.0] * 8] * 8]]})[0].shape)
    """,
        CLG_CACHE_DIR=str(tmp_path),
    )
    assert result.stdout.splitlines() == ["interrupted True", "(1, 10)"], result.stderr


@posix
def test_a_child_after_fork_gets_an_error(device):
    result = python(
        """
    import os, signal
    import numpy as np
    import clgraph
    from conftest import unary
    session = clgraph.InferenceSession(unary("Relu"))
    feed = {"x": np.ones((2, 3), np.float32)}
    session.run(None, feed)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            session.run(None, feed)
        except clgraph.Error as e:
            print("child", e.status, "fork" in str(e), flush=True)
        try:
            session.clone()
        except clgraph.Error as e:
            print("child", e.status, flush=True)
        sys.exit(7)  # with all that happens at the end of a program
    print("parent", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    print(session.run(None, feed)[0].sum(), flush=True)
    """
    )
    assert result.stdout.splitlines()[-2:] == ["parent 7", "6.0"], result.stdout + result.stderr
    assert "fork" in result.stdout or "True" in result.stdout, result.stdout


@posix
def test_processes_that_are_spawned(device, tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import sys; sys.path.insert(0, {FOLDER!r})
            import multiprocessing
            import numpy as np
            import clgraph
            from conftest import unary

            def work(k):
                session = clgraph.InferenceSession(unary("Relu"))
                return float(session.run(None, {{"x": np.full((2, 3), k, np.float32)}})[0].sum())

            if __name__ == "__main__":
                clgraph.devices()
                with multiprocessing.get_context("spawn").Pool(2) as pool:
                    print(pool.map(work, [1, 2, 3]))
            """
        )
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert result.stdout == "[6.0, 12.0, 18.0]\n", result.stderr


def test_no_opencl():
    result = python(
        """
    import clgraph
    from conftest import unary
    for call in (clgraph.devices, clgraph.select, clgraph.selftest, clgraph.Context,
                 lambda: clgraph.InferenceSession(unary("Relu"))):
        try:
            call()
        except clgraph.NoOpenCL as e:
            print(e.status, bool(e.message), bool(e.hint))
    print(len(clgraph.diagnose()) > 20, clgraph.Model(unary("Relu")).inputs[0].name)
    """,
        OCL_ICD_VENDORS="/nonexistent",
        OCL_ICD_FILENAMES="",
    )
    assert result.stdout.splitlines() == ["CLG_ERROR_NO_OPENCL True True"] * 5 + ["True x"], (
        result.stdout + result.stderr
    )


def test_no_library(tmp_path):
    # A copy of the package without the library, and a library that is not there.
    import shutil

    import clgraph

    shutil.copytree(os.path.dirname(clgraph.__file__), tmp_path / "clgraph",
                    ignore=shutil.ignore_patterns("lib", "__pycache__"))  # fmt: skip
    for path, words in (("/nonexistent/libclgraph.so", "cannot be opened"), (__file__, "cannot")):
        result = subprocess.run(
            [sys.executable, "-c", "import clgraph"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "CLG_LIBRARY": path, "PYTHONPATH": str(tmp_path)},
        )
        assert "ImportError: libclgraph" in result.stderr and words in result.stderr


def test_the_end_of_a_program_that_holds_everything(device):
    result = python(
        """
    import numpy as np
    import clgraph
    from conftest import unary
    session = clgraph.InferenceSession(unary("Relu"))
    value = clgraph.Value(np.ones((2, 3), np.float32), device=session)
    host = clgraph.Value(np.ones((2, 3), np.float32))
    strings = clgraph.Value(np.array(["a"], object))
    kept = session.run(None, {"x": np.ones((2, 3), np.float32)})
    future = session.run_async(None, {"x": np.ones((2, 3), np.float32)})
    rows = clgraph.stream(session, np.ones((500, 3), np.float32))
    next(rows)
    ring = [session, value]
    ring.append(ring)
    class AtTheEnd:
        def __del__(self):
            session.cancel
    keep = AtTheEnd()
    print("end")
    """
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")


def test_memory_is_flat(device):
    """10,000 runs, of changing shapes too. CLG_TEST_RUNS=100000 for more."""
    n = int(os.environ.get("CLG_TEST_RUNS", "10000"))
    result = python(
        f"""
    import gc, os
    import numpy as np
    import clgraph
    from conftest import add
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    session = clgraph.InferenceSession(add())
    def some(count):
        for i in range(count):
            a = np.ones((1 + i % 3, 3), np.float32)
            session.run(None, {{"a": a, "b": a}})
            if i % 100 == 0:
                session.run(None, {{"a": clgraph.Value(a), "b": clgraph.Value(a, device=session)}})
                session.clone().close()
                try:
                    session.run(None, {{"a": a}})
                except clgraph.InvalidArgument:
                    pass
    some({n} // 4)
    gc.collect()
    before = resident()
    some({n})
    gc.collect()
    print(resident() - before)
    """,
        timeout=1200,
    )
    assert result.returncode == 0, result.stderr
    # An object of 100 bytes a run would be 1 MB.
    assert int(result.stdout) < max(1 << 20, 8 * n), result.stdout
