# SPDX-License-Identifier: Apache-2.0
"""Sessions over several devices: how they are created, and what each device does."""

import ctypes
import dataclasses
from typing import Any, List, Sequence

from . import _capi as c
from . import _html
from ._library import init, items, lib, string
from .device import Context
from .errors import invalid


SPLITS = {"rows": c.CLG_SPLIT_ROWS, "layers": c.CLG_SPLIT_LAYERS}


@dataclasses.dataclass(frozen=True)
class Part:
    """A device of a session, in the session's last run.

    device: its selector, "0:0", or "0:0/1" for a part of a CPU. rows: of the batch, that it
    computed. share: of the rows of a next run like this one, from 0 to 1. rows_per_s: measured
    while all devices worked; 0: not yet. busy_s: seconds of work, transfers included. idle_share:
    of the run's time, from 0 to 1. is_lost: it takes no rows until `session.recover()`, or, if it
    hung, until it answers. Sessions on one device measure nothing: rows and times are 0, the share
    is 1.

    With split="layers" rows are 0, and the share is that of the time of the last run. n_nodes,
    first_node, last_node: its part of the model. weight_bytes: of the part's constants, estimated.
    crossing_bytes: of the values that it and later parts get from earlier ones, for the declared
    shapes, free dimensions 1. With rows these are 0 and "".
    """

    device: str
    name: str
    rows: int
    share: float
    rows_per_s: float
    busy_s: float
    idle_share: float
    is_lost: bool
    n_nodes: int = 0
    first_node: str = ""
    last_node: str = ""
    weight_bytes: int = 0
    crossing_bytes: int = 0

    def _repr_html_(self) -> str:
        return _html.parts([self])


class PartList(List[Part]):
    """The devices of a session; notebooks show them as a table with bars."""

    def _repr_html_(self) -> str:
        return _html.parts(self)


def check_hang_ms(hang_ms: Any) -> int:
    """Returns hang_ms; raises InvalidArgument if it is no number of milliseconds of 32 bits."""
    if not isinstance(hang_ms, int) or not 0 <= hang_ms < 1 << 32:
        raise invalid(f"hang_ms is an integer from 0 to 2**32 - 1, not {hang_ms!r}")
    return hang_ms


def create_session(
    contexts: Sequence[Context], model: Any, options: Any, hang_ms: int, split: int, out: Any
) -> int:
    """Creates a clg_session in out: over all contexts, or on the only one; returns the status."""
    if len(contexts) == 1 and not hang_ms and split == c.CLG_SPLIT_ROWS:
        context = contexts[0]._handle.pointer
        return lib.clg_session_create(context, model, ctypes.byref(options), ctypes.byref(out))
    pointers = (ctypes.c_void_p * len(contexts))(*(x._handle.pointer for x in contexts))
    multi = init(c.clg_multi_options, hang_ms=hang_ms, split=split)
    return lib.clg_session_create_multi(
        pointers, len(contexts), model, ctypes.byref(options), ctypes.byref(multi),
        ctypes.byref(out),
    )  # fmt: skip


def read_parts(array: Any, n: Any) -> PartList:
    """Returns the array that clg_session_parts gave, and frees it."""
    try:
        found = PartList()
        for part in items(c.clg_session_part, array, n):
            info = c.clg_device_info.from_address(part.device)
            rest = (getattr(part, field.name) for field in dataclasses.fields(Part)[2:])
            texts = (string(x) if isinstance(x, bytes) else x for x in rest)
            found.append(Part(string(info.selector), string(info.name), *texts))
        return found
    finally:
        lib.clg_session_parts_free(array, n.value)
