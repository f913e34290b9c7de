# SPDX-License-Identifier: Apache-2.0
"""Devices and contexts: what there is, which one a selector means, what works on it."""

import ctypes
import dataclasses
import threading
import weakref
from typing import Any, Callable, List, Optional, Sequence, Union

from . import _capi as c
from . import _html
from ._interrupt import waiting
from ._library import Handle, check, encode_name, init, items, lib, plain, string, text
from .errors import invalid

_KINDS = {
    c.CLG_DEVICE_CPU: "CPU",
    c.CLG_DEVICE_INTEGRATED_GPU: "integrated GPU",
    c.CLG_DEVICE_DISCRETE_GPU: "discrete GPU",
    c.CLG_DEVICE_ACCELERATOR: "accelerator",
}
KERNELS = {"auto": c.CLG_KERNELS_AUTO, "simd": c.CLG_KERNELS_SIMD, "simt": c.CLG_KERNELS_SIMT}
_KERNEL_NAMES = {number: name for name, number in KERNELS.items()}


@dataclasses.dataclass(frozen=True)
class Device:
    """One OpenCL device.

    selector: "0:0", platform and device, to be passed as `device=`; id: stable between programs.
    kind: "CPU", "integrated GPU", "discrete GPU" or "accelerator". Memory is in bytes. probed: the
    features after it were found by running kernels; they are False before.
    """

    selector: str
    id: str
    platform: str
    name: str
    vendor: str
    driver: str
    opencl_version: str
    quirks: str
    kind: str
    kernel_class: str
    compute_units: int
    max_clock_mhz: int
    global_mem_bytes: int
    max_alloc_bytes: int
    local_mem_bytes: int
    unified_memory: bool
    probed: bool
    fp16: bool
    fp64: bool
    subgroups: bool
    int8_dot: bool
    matrix: bool
    is_default: bool
    auto_reason: str

    def _repr_html_(self) -> str:
        return _html.devices([self])


def _device(info: Any) -> Device:
    values = {f.name: plain(getattr(info, f.name)) for f in dataclasses.fields(Device)}
    values["kind"] = _KINDS.get(info.kind, "other")
    values["kernel_class"] = _KERNEL_NAMES.get(info.kernel_class, "other")
    return Device(**values)


class DeviceList(List[Device]):
    """A list of devices that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return _html.devices(self)


def devices(probe: bool = False) -> DeviceList:
    """Lists every OpenCL device of the machine. Raises NoOpenCL if there is none.

    probe: finds fp16, fp64, subgroups, int8_dot and matrix by running small kernels; the results
    are cached. A device on which that fails keeps probed False.
    """
    array, n = ctypes.c_void_p(), ctypes.c_size_t()
    check(lib.clg_device_list(ctypes.byref(array), ctypes.byref(n)))
    try:
        infos: Any = items(c.clg_device_info, array, n)
        if probe:
            for info in infos:
                waiting(lambda info=info: lib.clg_device_probe(ctypes.addressof(info)))
        return DeviceList(_device(info) for info in infos)
    finally:
        lib.clg_device_list_free(array, n.value)


def select(selector: str = "auto", fallback: Optional[str] = None) -> DeviceList:
    """Returns the devices that a selector means, the best first. Raises NoDevice.

    selector: "auto", "gpu", "cpu", "all", a vendor ("nvidia", "pocl"), "0:0", a part of a name,
    "id:..."; "gpu,cpu" gives several. fallback: used when nothing matches.
    """
    array, n = ctypes.c_void_p(), ctypes.c_size_t()
    other = None if fallback is None else encode_name(fallback, "a selector")
    check(
        lib.clg_device_select(
            encode_name(selector, "a selector"), other, ctypes.byref(array), ctypes.byref(n)
        )
    )
    try:
        indices = list(items(ctypes.c_size_t, array, n))
    finally:
        lib.clg_indices_free(array)
    listed = devices()
    return DeviceList(listed[i] for i in indices)


def diagnose() -> str:
    """Returns a report on the state of OpenCL on this machine, to be pasted into a bug report."""
    out = ctypes.c_void_p()
    check(lib.clg_diagnose(ctypes.byref(out)))
    return text(out.value)


class Context:
    """An open device with its compiled programs; sessions on it share them.

    device: a selector or `Device`; None: $CLG_DEVICE, else the best device.
    cache_dir: folder of compiled programs; "" keeps them in memory; None: $CLG_CACHE_DIR, else the
    user's. cpu_threads: compute units of a CPU device to use, 0: all. profiling: needed by
    `InferenceSession.profile`. selftest: None: as $CLG_SELFTEST says, else whether kernels are
    tested before use. compilation: "tiered" (early results from kernels that are optimised later,
    in the background), "optimized" or "baseline" (never optimised); None: $CLG_COMPILATION, else
    "tiered". fallback: selector when nothing matches `device`.
    May be used by several threads.
    """

    def __init__(
        self,
        device: Union[None, str, Device] = None,
        *,
        fallback: Optional[str] = None,
        cache_dir: Optional[str] = None,
        cpu_threads: int = 0,
        profiling: bool = False,
        selftest: Optional[bool] = None,
        compilation: Optional[str] = None,
    ):
        selector = _selector(device)
        options = _options(fallback, cache_dir, cpu_threads, profiling, selftest, compilation)

        def work() -> Handle:
            out = ctypes.c_void_p()
            check(lib.clg_context_create(selector, ctypes.byref(options), ctypes.byref(out)))
            return Handle(out.value, lib.clg_context_free)

        self._handle = waiting(work)

    @classmethod
    def _own(cls, pointer: Any) -> "Context":
        """Takes the ownership of a clg_context."""
        self = cls.__new__(cls)
        self._handle = Handle(pointer, lib.clg_context_free)
        return self

    @classmethod
    def from_opencl(cls, context: Any, device: Any, queue: Any = None, **options: Any) -> "Context":
        """Opens a device in the OpenCL context of an application, such as pyopencl's.

        context, device, queue: pyopencl objects or addresses (int) of cl_context, cl_device_id and
        an in-order cl_command_queue, which the first session enqueues its commands in. options: as
        in Context(): cache_dir, profiling, selftest, compilation. The objects are retained.
        """
        self = cls.__new__(cls)
        struct = _options(None, options.pop("cache_dir", None), 0, options.pop("profiling", False),
                          options.pop("selftest", None),
                          options.pop("compilation", None))  # fmt: skip
        if options:
            raise TypeError(f"unknown options: {', '.join(options)}")
        pointers = [int_ptr(context), int_ptr(device), None if queue is None else int_ptr(queue)]

        def work() -> Handle:
            out = ctypes.c_void_p()
            check(lib.clg_context_create_opencl(*pointers, ctypes.byref(struct), ctypes.byref(out)))
            return Handle(out.value, lib.clg_context_free)

        self._handle = waiting(work)
        return self

    @property
    def device(self) -> Device:
        """The device, probed."""
        info = c.clg_device_info.from_address(lib.clg_context_device(self._handle.pointer))
        return _device(info)

    @property
    def cl_context(self) -> int:
        """Address of the cl_context, for `pyopencl.Context.from_int_ptr`."""
        return lib.clg_context_opencl(self._handle.pointer)

    @property
    def cl_device(self) -> int:
        """Address of the cl_device_id, for `pyopencl.Device.from_int_ptr`."""
        return lib.clg_context_opencl_device(self._handle.pointer)

    def recover(self) -> None:
        """Opens the device again after DeviceLost; does nothing if it answers."""
        check(waiting_status(lambda: lib.clg_context_recover(self._handle.pointer)))

    def counters(self) -> dict:
        """Returns counters since the context's creation: programs compiled, device_bytes, ..."""
        out = init(c.clg_counters)
        check(lib.clg_context_counters(self._handle.pointer, ctypes.byref(out)))
        return {name: getattr(out, name) for name, *_ in out._fields_ if name != "struct_size"}

    def measure(self) -> dict:
        """Measures the device's peak performance, in about a second: GFLOP/s, GB/s, us a launch."""
        out = init(c.clg_measurement)
        pointer = self._handle.pointer
        check(waiting_status(lambda: lib.clg_context_measure(pointer, ctypes.byref(out))))
        return {name: getattr(out, name) for name, *_ in out._fields_ if name != "struct_size"}

    def __repr__(self) -> str:
        device = self.device
        return f"<clgraph.Context {device.selector} {device.name}>"


def waiting_status(call: Callable[[], int]) -> int:
    """Has `waiting` make a call; raises in the thread that called, which has the message."""

    def work() -> int:
        status = call()
        check(status)
        return status

    return waiting(work)


class ContextList(List[Context]):
    """Open devices, for sessions over all of them."""


def contexts(
    device: Union[None, str, Device] = None,
    *,
    fallback: Optional[str] = None,
    cache_dir: Optional[str] = None,
    cpu_threads: int = 0,
    profiling: bool = False,
    selftest: Optional[bool] = None,
    compilation: Optional[str] = None,
) -> ContextList:
    """Opens every device of a list: "all", or "gpu,cpu/0", in this order.

    A device that is named twice is opened once; None: the list in $CLG_DEVICE, else the best
    device. "cpu/0" is a part of a CPU, of cpu_threads compute units (0: one). The other options are
    those of Context. For `InferenceSession(model, device=contexts(...))`. Raises NoDevice if an
    entry matches nothing, and what Context raises for the first device that cannot be opened.
    """
    selector = _selector(device)
    options = _options(fallback, cache_dir, cpu_threads, profiling, selftest, compilation)

    def work() -> ContextList:
        array, n = ctypes.c_void_p(), ctypes.c_size_t()
        check(
            lib.clg_context_create_list(
                selector, ctypes.byref(options), ctypes.byref(array), ctypes.byref(n)
            )
        )
        pointers: Any = items(ctypes.c_void_p, array, n)
        found = ContextList()
        try:
            for i, pointer in enumerate(pointers):
                pointers[i] = None  # taken out: the list no longer frees it
                found.append(Context._own(pointer))
        finally:
            lib.clg_context_list_free(array, n.value)
        return found

    return waiting(work)


def _selector(device):
    """Returns the UTF-8 of a selector or of a Device's; None for None."""
    selector = device.selector if isinstance(device, Device) else device
    return None if selector is None else encode_name(selector, "a selector")


_COMPILATIONS = {
    None: c.CLG_COMPILATION_DEFAULT,
    "tiered": c.CLG_COMPILATION_TIERED,
    "optimized": c.CLG_COMPILATION_OPTIMIZED,
    "baseline": c.CLG_COMPILATION_BASELINE,
}


def _options(fallback, cache_dir, cpu_threads, profiling, selftest, compilation):
    if not isinstance(cpu_threads, int) or not 0 <= cpu_threads < 1 << 32:
        raise invalid("cpu_threads is an integer from 0 to 2**32 - 1")
    if compilation not in _COMPILATIONS:
        raise invalid('compilation is "tiered", "optimized" or "baseline"')
    return init(
        c.clg_context_options,
        fallback=None if fallback is None else encode_name(fallback, "a selector"),
        cache_dir=None if cache_dir is None else encode_name(str(cache_dir), "a path"),
        cpu_threads=cpu_threads,
        profiling=bool(profiling),
        selftest=c.CLG_SELFTEST_DEFAULT
        if selftest is None
        else (c.CLG_SELFTEST_ON if selftest else c.CLG_SELFTEST_OFF),
        compilation=_COMPILATIONS[compilation],
    )


# Of contexts and lists of them.
_contexts: "weakref.WeakValueDictionary[Any, Any]" = weakref.WeakValueDictionary()
_contexts_lock = threading.Lock()


def shared_context(device, **options) -> Context:
    """Returns the context of a device and options, the same one while anything uses it."""
    if isinstance(device, Context):
        return device
    if device is not None and not isinstance(device, (str, Device)):
        raise invalid(
            f"device is a selector, a clgraph.Device or a clgraph.Context, not "
            f"{type(device).__name__}"
        )
    return _shared(Context, device, options)


def _shared(open_device, device, options):
    """Returns open_device(device, **options), the same object while anything uses it."""
    selector = device.selector if isinstance(device, Device) else device
    key = (open_device, selector, *sorted(options.items()))
    with _contexts_lock:
        found = _contexts.get(key)
    if found is None:
        found = open_device(device, **options)
        with _contexts_lock:
            found = _contexts.setdefault(key, found)
    return found


def is_list(selector: str) -> bool:
    """Returns whether a selector asks for several devices: "all", "gpu,cpu/0"."""
    return "," in selector or selector.strip().lower() == "all"


def shared_contexts(device: Any, **options: Any) -> Sequence[Context]:
    """Returns the contexts of a session: several for a list, in its order, else one."""
    if isinstance(device, str) and is_list(device):
        return _shared(contexts, device, options)
    if not isinstance(device, (list, tuple)):
        return ContextList([shared_context(device, **options)])
    if not device:
        raise invalid("the list of devices is empty")
    for i, entry in enumerate(device):
        if not isinstance(entry, (Context, Device)):
            raise invalid(
                f"device: entry {i} of the list is a clgraph.Context or a clgraph.Device, not "
                f"{type(entry).__name__}",
                hint='several selectors are one text: "gpu,cpu"',
            )
    return ContextList(shared_context(entry, **options) for entry in device)


def int_ptr(thing: Any) -> int:
    """Returns the address of an OpenCL object: that of pyopencl's `int_ptr`, or an int."""
    pointer = getattr(thing, "int_ptr", thing)
    if not isinstance(pointer, int) or pointer <= 0:
        raise invalid(
            f"an OpenCL object is one of pyopencl or an address (int), not {type(thing).__name__}"
        )
    return pointer


@dataclasses.dataclass(frozen=True)
class SelftestCase:
    """One kernel on one small problem; errors are relative to the magnitude of the terms."""

    op_type: str
    problem: str
    impl: str
    kernel: str
    has_choice: bool
    passed: bool
    worst_error: float
    bound: float
    failure: str


class SelftestResult(List[SelftestCase]):
    """The cases of a self-test; true if all passed."""

    @property
    def passed(self) -> bool:
        return all(case.passed for case in self)

    def __repr__(self) -> str:
        return f"<{sum(case.passed for case in self)} of {len(self)} cases passed>"

    def _repr_html_(self) -> str:
        return _html.selftest(self)


def selftest(
    device: Union[None, str, Device, Context] = None,
    *,
    kernels: str = "auto",
    all: bool = False,
    progress: Optional[Callable[[str, int, int], Optional[bool]]] = None,
) -> SelftestResult:
    """Tests kernels on a device against the host; the results are cached and apply from now on.

    all: every kernel that has a reference, not those alone that have a replacement. kernels:
    "auto", "simd" or "simt". progress(what, done, total): returning False cancels (Cancelled).
    """
    context = shared_context(device)
    array, n = ctypes.c_void_p(), ctypes.c_size_t()
    state = Progress(progress)

    def work() -> SelftestResult:
        state.check(
            lib.clg_context_selftest(
                context._handle.pointer,
                enum_value(KERNELS, kernels, "kernels"),
                bool(all),
                state.callback,
                None,
                ctypes.byref(array),
                ctypes.byref(n),
            )
        )
        try:
            cases = items(c.clg_selftest_case, array, n)
            names = [f.name for f in dataclasses.fields(SelftestCase)]
            return SelftestResult(
                SelftestCase(*(plain(getattr(case, name)) for name in names)) for case in cases
            )
        finally:
            lib.clg_selftest_free(array, n.value)

    return waiting(work, state.cancel)


def enum_value(values: dict, name: Any, what: str) -> int:
    """Returns the number of a word such as "simd"; raises InvalidArgument with the words."""
    if not isinstance(name, str) or name.lower() not in values:
        raise invalid(f"{what} is one of {', '.join(values)}, not {name!r}")
    return values[name.lower()]


class Progress:
    """Calls a Python function from the library; keeps what it raises for check()."""

    def __init__(self, function):
        self.error, self.is_cancelled, function_given = None, False, function

        def report(_user, what, done, total):
            if self.is_cancelled:
                return False
            try:
                return (
                    function_given is None or function_given(string(what), done, total) is not False
                )
            except BaseException as e:  # raised by check()
                self.error = e
                return False

        self.callback = c.clg_progress_callback(report)

    def cancel(self):
        self.is_cancelled = True

    def check(self, status):
        if self.error is not None:
            raise self.error
        check(status)
