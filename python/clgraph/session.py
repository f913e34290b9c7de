# SPDX-License-Identifier: Apache-2.0
"""Sessions: a model on a device."""

import collections
import concurrent.futures
import ctypes
import dataclasses
import os
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import _capi as c
from . import _dtypes, _html
from ._interrupt import waiting
from ._library import Handle, check, encode_name, init, items, lib, names_array, plain, string, text
from ._slot import Slot
from .device import KERNELS, Context, Device, Progress, enum_value, shared_contexts
from .errors import DeviceLost, Error, InvalidArgument, Unsupported, invalid
from .model import Model, ModelMetadata, NodeArg, limits_struct, new_cancel
from .multi import SPLITS, PartList, check_hang_ms, create_session, read_parts
from .value import Value, address, dims_of, from_python, wrap_memory

EP_NAME = "ClgraphExecutionProvider"
PRECISIONS = {
    "fp32": c.CLG_PRECISION_FP32,
    "fp16": c.CLG_PRECISION_FP16,
    "auto": c.CLG_PRECISION_AUTO,
}
_PRECISION_NAMES = {number: name for name, number in PRECISIONS.items()}
_PLACES = {
    "device": "on the device",
    "host": "on the host",
    "load": "when the model is loaded",
    "shape": "while planning",
    "view": "as a view: no data move",
    "fused": "in another node's kernel",
}


@dataclasses.dataclass(frozen=True)
class Memory:
    """Device memory of a session for its shapes, in bytes.

    weight: on the device now, packed copies included; all of them after a run. slab: intermediate
    values. io: inputs and outputs. largest_buffer: the largest of these. live: intermediate values
    that are live at the peak, a lower bound for slab.
    """

    weight_bytes: int
    slab_bytes: int
    io_bytes: int
    largest_buffer_bytes: int
    live_bytes: int


@dataclasses.dataclass(frozen=True)
class Node:
    """A node and where it is computed: "device", "load", "shape", "view", "host" or "fused"."""

    name: str
    domain: str
    op_type: str
    opset: int
    supported: bool
    place: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of a run. Times in us on the device's clock; flops and bytes are estimates."""

    node: str
    op_type: str
    kernel: str
    impl: str
    start_us: float
    duration_us: float
    queued_us: float
    flops: float
    bytes: float


class Profile(List[Step]):
    """The steps of the last run, in order; notebooks show them with bars."""

    @property
    def total_us(self) -> float:
        """Time of work on the device, in microseconds."""
        return sum(step.duration_us for step in self)

    def _repr_html_(self) -> str:
        return _html.profile(self, self.total_us)


class InferenceSession:
    """A model on one device or several, with the interface of onnxruntime.InferenceSession.

    model: a path, bytes, an onnx.ModelProto or a clgraph.Model.
    device: a selector ("gpu", "cpu", "pocl", "0:1", a part of a name), a Device or a Context; None:
        $CLG_DEVICE, else the best device. Sessions with the same device and options share it.
        "all", a list ("gpu,cpu/0"), or a list of Contexts or Devices: each run divides the rows of
        the batch among them, as their speeds are. The model's rows must not depend on each other
        (Model.batch): else Unsupported is raised, which names the node. Such a session has no links
        and no outputs in device memory; the rows of a lost device are computed by the others.
    split: "rows", or "layers": each device computes a part of the model's nodes, for models that do
        not fit one; any model will do. Calls of run() by several threads overlap.
    precision: "fp32", "fp16" or "auto": how float32 values are stored between nodes.
    providers, provider_options, sess_options: ignored; so that calls written for onnxruntime work.

    Keyword options: kernels ("auto", "simd", "simt"), strict (refuse operators with numeric data
    that run on the host), keep_fp32 (names of nodes, with "*"), disabled_passes, preferred_impls,
    no_blas, max_iterations (of loops), limits (Limits or "untrusted"), read_file (see Model),
    progress(what, done, total) while kernels compile: returning False cancels; hang_ms
    (milliseconds after which a device that has not finished its rows counts as lost, 0: never; with
    it a session on one device too is one as over several). For the contexts: profiling, cache_dir,
    cpu_threads, fallback, selftest.

    run() may be called by several threads at a time: each gets a clone, which shares weights and
    kernels, up to `max_clones`; with links, bound outputs or set inputs, calls run one by one.
    """

    max_clones = max(8, os.cpu_count() or 1)

    def __init__(
        self,
        model: Any,
        device: Union[None, str, Device, Context, Sequence[Union[Context, Device]]] = None,
        precision: str = "fp32",
        *,
        kernels: str = "auto",
        strict: bool = False,
        keep_fp32: Sequence[str] = (),
        disabled_passes: Sequence[str] = (),
        preferred_impls: Sequence[str] = (),
        no_blas: bool = False,
        max_iterations: int = 0,
        limits: Any = None,
        read_file: bool = False,
        hang_ms: int = 0,
        split: str = "rows",
        progress: Optional[Callable[[str, int, int], Optional[bool]]] = None,
        profiling: bool = False,
        cache_dir: Optional[str] = None,
        cpu_threads: int = 0,
        fallback: Optional[str] = None,
        selftest: Optional[bool] = None,
        providers: Any = None,
        provider_options: Any = None,
        sess_options: Any = None,
    ):
        # First what costs nothing to check.
        precision_number = enum_value(PRECISIONS, precision, "precision")
        kernel_class = enum_value(KERNELS, kernels, "kernels")
        limit, hang_limit = limits_struct(limits), check_hang_ms(hang_ms)
        split_number = enum_value(SPLITS, split, "split")
        lists = [
            names_array(names, "the name of a " + what)
            for names, what in (
                (keep_fp32, "node"), (disabled_passes, "pass"), (preferred_impls, "implementation")
            )
        ]  # fmt: skip
        if isinstance(model, Model):
            self.model = model
        else:
            self.model = Model(model, read_file=read_file, limits=limits)
        self.contexts = shared_contexts(
            device, profiling=profiling, cache_dir=cache_dir, cpu_threads=cpu_threads,
            fallback=fallback, selftest=selftest,
        )  # fmt: skip
        (keep, n_keep), (passes, n_passes), (impls, n_impls) = (
            (ctypes.addressof(array) if array else None, n) for array, n in lists
        )
        state = Progress(progress)
        # With a token, runs on fast devices wait often enough for Ctrl-C (session.h).
        cancel = new_cancel()
        options = init(
            c.clg_session_options,
            kernels=kernel_class, no_blas=bool(no_blas), strict=bool(strict),
            disabled_passes=passes, n_disabled_passes=n_passes,
            preferred_impls=impls, n_preferred_impls=n_impls,
            precision=precision_number, keep_fp32=keep, n_keep_fp32=n_keep,
            max_iterations=max_iterations, cancel=cancel.pointer,
            limits=ctypes.addressof(limit) if limit else None,
            progress=state.callback if progress else c.clg_progress_callback(),
        )  # fmt: skip

        def work() -> Handle:
            out = ctypes.c_void_p()
            model_pointer = self.model._handle.pointer
            state.check(
                create_session(
                    self.contexts, model_pointer, options, hang_limit, split_number, out
                )
            )
            return Handle(out.value, lib.clg_session_free)

        handle = waiting(work, lambda: lib.clg_cancel_trigger(cancel.pointer))
        self._init_state(handle)

    @classmethod
    def _of_trainer(cls, model: Model, context: Context, handle: Handle) -> "InferenceSession":
        """Wraps a clg_session of a trainer: inputs that are not the model's are set."""
        session = cls.__new__(cls)
        session.model, session.contexts = model, [context]
        session._init_state(handle)
        session._is_stateful = True
        return session

    def _init_state(self, handle: Handle) -> None:
        self._main = Slot(handle, self.model)
        self._idle: List[Slot] = [self._main]  # not in a run
        self._slots = [self._main]
        self._changed = threading.Condition()
        self._n_waiting = 0  # threads that wait for a slot
        self._is_stateful = False  # links, bound outputs, set inputs: no clones
        self._is_closed = False
        self._bound: Dict[bytes, Any] = {}
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._all_outputs = [port.encoded for port in self.model._outputs]
        self._encoded = {port.name: port.encoded for port in self.model._outputs}

    # ---- slots -----------------------------------------------------------------------------------

    def _take(self) -> Slot:
        if not self._is_stateful:
            try:
                return self._idle.pop()
            except IndexError:
                pass
        return self._wait_for(lambda: self._take_main() if self._is_stateful else self._take_any())

    def _take_main(self) -> Optional[Slot]:
        try:
            self._idle.remove(self._main)
        except ValueError:
            return None
        return self._main

    def _take_any(self) -> Optional[Slot]:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        if len(self._slots) >= self.max_clones:
            return None
        slot = Slot(self._clone_handle(), self.model)
        self._slots.append(slot)
        return slot

    def _wait_for(self, take: Callable[[], Optional[Slot]]) -> Slot:
        with self._changed:
            # Counted before looking: _give appends a slot before it looks at the count.
            self._n_waiting += 1
            try:
                while True:
                    self._check_open()
                    slot = take()
                    if slot is not None:
                        return slot
                    self._changed.wait()
            finally:
                self._n_waiting -= 1

    def _give(self, slot: Slot) -> None:
        self._idle.append(slot)
        if self._n_waiting or self._is_closed:
            with self._changed:
                if self._is_closed:
                    self._free_idle()
                self._changed.notify_all()

    def _check_open(self) -> None:
        if self._is_closed:
            raise invalid("the session is closed")

    def _free_idle(self) -> None:
        while self._idle:
            self._idle.pop().handle.free()

    def _clone_handle(self) -> Handle:
        out = ctypes.c_void_p()
        check(lib.clg_session_clone(self._main.handle.pointer, ctypes.byref(out)))
        return Handle(out.value, lib.clg_session_free)

    def _with_main(self, call: Callable[[int], Any]) -> Any:
        """Returns call(clg_session *) of the first session, which no run uses meanwhile."""
        self._wait_for(self._take_main)
        try:
            return call(self._main.handle.pointer)
        finally:
            self._give(self._main)

    # ---- what there is ---------------------------------------------------------------------------

    def get_inputs(self) -> List[NodeArg]:
        return self.model.inputs

    def get_outputs(self) -> List[NodeArg]:
        return self.model.outputs

    def get_modelmeta(self) -> ModelMetadata:
        return self.model.metadata

    def get_providers(self) -> List[str]:
        return [EP_NAME]

    @property
    def context(self) -> Context:
        """The context, of several the first."""
        return self.contexts[0]

    @property
    def device(self) -> Device:
        """The device, of several the first."""
        return self.context.device

    def parts(self) -> PartList:
        """Returns what each device did in the last run; one part for a session on one device.

        Waits for the runs of the session's first clone; of several threads' runs, the last of that
        clone counts.
        """
        array, n = ctypes.c_void_p(), ctypes.c_size_t()

        def work(pointer: int) -> PartList:
            check(lib.clg_session_parts(pointer, ctypes.byref(array), ctypes.byref(n)))
            return read_parts(array, n)

        return self._with_main(work)

    @property
    def precision(self) -> str:
        """ "fp32" or "fp16": also what "auto" chose."""
        return self._with_main(lambda pointer: _PRECISION_NAMES[lib.clg_session_precision(pointer)])

    # ---- runs ------------------------------------------------------------------------------------

    def run(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        run_options: Any = None,
    ) -> List[Any]:
        """Runs the model and returns a list of outputs; None: all, in the model's order.

        input_feed: a name for each array of the declared dtype and shape; lists and numbers are
        converted. Sequences are lists, maps dicts, strings arrays of str. Values stay on their
        device. Outputs are new arrays (sequences: lists, maps: dicts). run_options is ignored.
        """
        if output_names:
            names = self._names(output_names)
        else:
            names = self._all_outputs
        if type(input_feed) is not dict:
            if not isinstance(input_feed, collections.abc.Mapping):
                raise invalid(
                    f"input_feed is a dict of arrays by name, not {type(input_feed).__name__}"
                )
            input_feed = dict(input_feed)
        slot = self._take()
        try:
            return slot.run(names, input_feed, self.model._input_ports, self._bound)
        finally:
            self._give(slot)

    def _names(self, names: Sequence[str]) -> List[bytes]:
        if isinstance(names, str):
            raise invalid(f'output_names is a list of names: ["{names}"]')
        known = self._encoded
        return [known[n] if n in known else encode_name(n, "the name of an output") for n in names]

    def run_async(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        callback: Optional[Callable[..., Any]] = None,
        user_data: Any = None,
        run_options: Any = None,
    ) -> "concurrent.futures.Future[List[Any]]":
        """Starts a run on a thread of the session; `.result()` gives what run() returns.

        Runs of a session start one after another, in the order of these calls. Arrays must not
        change before the result is there. callback(results, user_data, error), if given, is called
        with error "" or the message, as onnxruntime does.
        """
        with self._changed:
            self._check_open()
            if self._executor is None:
                self._executor = concurrent.futures.ThreadPoolExecutor(1, "clgraph-run")
            future = self._executor.submit(self.run, output_names, input_feed)
        if callback is not None:

            def done(f: "concurrent.futures.Future[List[Any]]") -> None:
                error = f.exception()
                callback([] if error else f.result(), user_data, str(error) if error else "")

            future.add_done_callback(done)
        return future

    def cancel(self) -> None:
        """Ends the runs in progress, which raise Cancelled. Of any thread; else does nothing."""
        with self._changed:
            for slot in self._slots:
                if slot.handle.pointer is not None:
                    lib.clg_session_cancel(slot.handle.pointer)

    def prepare(
        self,
        shapes: Optional[Mapping[str, Sequence[int]]] = None,
        progress: Optional[Callable[[str, int, int], Optional[bool]]] = None,
    ) -> None:
        """Plans and compiles for shapes ({input: shape}): their runs then compile nothing."""
        state = Progress(progress)

        def work(pointer: int) -> None:
            _set_shapes(pointer, shapes)
            state.check(lib.clg_session_prepare(pointer, state.callback, None))

        self._waiting(work)

    def _waiting(self, work: Callable[[int], Any]) -> Any:
        return self._with_main(
            lambda pointer: waiting(lambda: work(pointer), lambda: lib.clg_session_cancel(pointer))
        )

    # ---- state on the device ---------------------------------------------------------------------

    def _make_stateful(self) -> None:
        with self._changed:
            self._is_stateful = True

    def link(self, output: str, input: Optional[str] = None) -> None:
        """Feeds an output of a run to an input of the next one, on the device.

        The first run's input_feed has the initial state; later ones leave it out, or give it to
        start over. link(None, input) unlinks. Runs of the session are one by one from then on.
        """
        first = None if output is None else encode_name(output, "the name of an output")
        second = encode_name(input, "the name of an input")
        self._make_stateful()
        self._with_main(lambda pointer: check(lib.clg_session_link(pointer, first, second)))

    def set_input(self, name: str, data: Any) -> None:
        """Sets an input that later runs leave out of their input_feed; None unsets it.

        An array is referred to, and each run reads it again.
        """
        value = None
        if data is not None:
            port = self.model._input_ports.get(name)
            value = (
                data if isinstance(data, Value) or port is None else from_python(data, port, name)
            )
            if port is None and not isinstance(data, Value):
                value = Value(data)
        self._make_stateful()
        encoded = encode_name(name, "the name of an input")
        self._with_main(
            lambda p: check(
                lib.clg_session_set_input(p, encoded, None if value is None else value.pointer)
            )
        )

    def bind_output(self, name: str, out: Union[None, np.ndarray, Value]) -> None:
        """Has later runs write an output into an array or Value, which run() then returns.

        out: of the output's dtype and shape; an array is contiguous and writable. None unbinds.
        """
        encoded = encode_name(name, "the name of an output")
        value: Any = out
        if isinstance(out, np.ndarray):
            number = _dtypes.from_numpy(out.dtype)
            wanted = [port.dtype for port in self.model._outputs if port.name == name]
            if (
                number == c.CLG_STRING
                or number in _dtypes.BITS
                or number not in (wanted or [number])
            ):
                raise invalid(
                    f"output {name} cannot be written into an array of {out.dtype}",
                    "CLG_ERROR_UNSUPPORTED_DTYPE",
                )
            if not (out.flags.c_contiguous and out.flags.writeable):
                raise invalid(f"out for {name} must be contiguous and writable")
            value = Value._own(
                wrap_memory(number, out.shape, address(out) if out.size else None, out.nbytes, out)
            )
        elif out is not None and not isinstance(out, Value):
            raise invalid(f"out is an array or a clgraph.Value, not {type(out).__name__}")
        self._make_stateful()

        def work(pointer: int) -> None:
            check(
                lib.clg_session_bind_output(
                    pointer, encoded, None if value is None else value.pointer
                )
            )
            self._bound.pop(encoded, None)
            if out is not None:
                self._bound[encoded] = out

        self._with_main(work)

    def get_output_device(self, name: str) -> Value:
        """Returns an output of the last run in device memory, which the next run overwrites.

        For sessions whose runs are one by one; of several threads' runs, the last of the first
        session counts.
        """
        encoded, out = encode_name(name, "the name of an output"), ctypes.c_void_p()
        self._with_main(
            lambda p: check(lib.clg_session_get_output_device(p, encoded, ctypes.byref(out)))
        )
        return Value._own(out.value, self.context)

    # ---- inspection ------------------------------------------------------------------------------

    def memory(self, shapes: Optional[Mapping[str, Sequence[int]]] = None) -> Memory:
        """Returns the device memory needed for shapes ({input: shape}), else for the last run's."""
        out = init(c.clg_memory_estimate)

        def work(pointer: int) -> None:
            _set_shapes(pointer, shapes)
            check(lib.clg_session_memory(pointer, ctypes.byref(out)))

        self._waiting(work)
        return Memory(*(getattr(out, f.name) for f in dataclasses.fields(Memory)))

    def profile(self) -> Profile:
        """Returns the steps of the last run, of a session made with profiling=True."""
        array, n = ctypes.c_void_p(), ctypes.c_size_t()

        def work(pointer: int) -> Profile:
            check(lib.clg_session_profile(pointer, ctypes.byref(array), ctypes.byref(n)))
            try:
                steps = items(c.clg_step_profile, array, n)
                names = [f.name for f in dataclasses.fields(Step)]
                return Profile(
                    Step(**{k: plain(getattr(step, k)) for k in names}) for step in steps
                )
            finally:
                lib.clg_session_profile_free(array, n.value)

        return self._with_main(work)

    def nodes(self) -> List[Node]:
        """Returns the model's nodes and where each is computed, for the shapes that are set."""
        array, n = ctypes.c_void_p(), ctypes.c_size_t()

        def work(pointer: int) -> List[Node]:
            check(lib.clg_session_nodes(pointer, ctypes.byref(array), ctypes.byref(n)))
            try:
                infos = items(c.clg_node_info, array, n)
                return [
                    Node(string(i.name), string(i.domain), string(i.op_type), i.opset, i.supported,
                         string(lib.clg_place_name(i.place)), string(i.reason))
                    for i in infos
                ]  # fmt: skip
            finally:
                lib.clg_node_list_free(array, n.value)

        return self._waiting(work)

    def plan(self) -> str:
        """Returns the plan for the shapes that are set, as text."""
        out = ctypes.c_void_p()
        self._waiting(lambda p: check(lib.clg_session_plan_text(p, ctypes.byref(out))))
        return text(out.value)

    # ---- life ------------------------------------------------------------------------------------

    def clone(self) -> "InferenceSession":
        """Returns a session over the same weights and kernels, with nothing set or linked."""
        with self._changed:
            self._check_open()
            handle = self._clone_handle()
        other = InferenceSession.__new__(type(self))
        other.model, other.contexts = self.model, self.contexts
        other._init_state(handle)
        return other

    def recover(self) -> None:
        """Opens the device again after DeviceLost; sessions on it are rebuilt by their next run.

        Of several devices those that are lost; the error of one that is gone is raised after the
        others were tried.
        """
        errors = []
        for context in self.contexts:
            try:
                context.recover()
            except Error as e:
                errors.append(e)
        if errors:
            raise errors[0]

    @property
    def _device_names(self) -> str:
        return ", ".join(context.device.name for context in self.contexts)

    def close(self) -> None:
        """Frees the session: runs in progress end first, later calls raise an Error."""
        with self._changed:
            self._is_closed = True
            self._free_idle()
            executor, self._executor = self._executor, None
            self._changed.notify_all()
        if executor:
            executor.shutdown(wait=False)

    def __enter__(self) -> "InferenceSession":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._is_closed:
            return "<clgraph.InferenceSession, closed>"
        name = self.model.metadata.graph_name
        return f"<clgraph.InferenceSession {name!r} on {self._device_names}>"

    def _repr_html_(self) -> str:
        self._check_open()
        places: Dict[str, int] = {}
        memory = None
        try:  # for the shapes that are known before a run
            for node in self.nodes():
                place = _PLACES.get(node.place, node.place)
                places[place] = places.get(place, 0) + 1
            if len(self.contexts) == 1:  # of several it is an estimate that none of them needs
                m = self.memory()
                memory = [("weights", m.weight_bytes), ("intermediate values", m.slab_bytes),
                          ("inputs and outputs", m.io_bytes)]  # fmt: skip
        except (InvalidArgument, DeviceLost, Unsupported):  # the last: layers have no one plan
            pass
        html = _html.session(
            self.model.metadata.graph_name or "model", self._device_names, self.precision,
            self.get_inputs(), self.get_outputs(), memory, places,
        )  # fmt: skip
        return html + (_html.parts(self.parts()) if len(self.contexts) > 1 else "")


def _set_shapes(pointer: int, shapes: Optional[Mapping[str, Sequence[int]]]) -> None:
    for name, shape in (shapes or {}).items():
        try:
            dims = dims_of(shape)
        except TypeError:
            raise invalid(f"the shape of {name} is a list of integers, not {shape!r}") from None
        check(
            lib.clg_session_set_input_shape(
                pointer, encode_name(name, "the name of an input"), len(shape), dims
            )
        )
