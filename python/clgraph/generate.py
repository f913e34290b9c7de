# SPDX-License-Identifier: Apache-2.0
"""Generation of tokens by decoder language models."""

import ctypes
import dataclasses
import os
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _capi as c
from ._interrupt import guarded, on_main_thread, waiting
from ._library import Handle, check, init, lib, names_array, string
from .device import KERNELS, enum_value, shared_context
from .model import new_cancel
from .session import PRECISIONS

CACHES = {
    "auto": c.CLG_CACHE_AUTO,
    "growing": c.CLG_CACHE_GROWING,
    "reserved": c.CLG_CACHE_RESERVED,
}
_CACHE_NAMES = {**{number: name for name, number in CACHES.items()}, c.CLG_CACHE_NONE: "none"}
_ENDS = {
    c.CLG_END_NONE: None,
    c.CLG_END_EOS: "eos",
    c.CLG_END_LENGTH: "length",
    c.CLG_END_STOP: "stop",
}


@dataclasses.dataclass(frozen=True)
class GeneratorStats:
    """Sums over the calls so far, as clg_generator_stats; times are in seconds."""

    n_prompt_tokens: int
    prompt_s: float
    n_new_tokens: int
    new_s: float
    sampling_s: float
    n_runs: int
    n_cached: int
    capacity: int
    cache_bytes: int

    @property
    def prompt_tokens_per_s(self) -> float:
        return self.n_prompt_tokens / self.prompt_s if self.prompt_s else 0.0

    @property
    def new_tokens_per_s(self) -> float:
        seconds = self.new_s + self.sampling_s
        return self.n_new_tokens / seconds if seconds else 0.0


class Generator:
    """A decoder language model with a sequence of tokens, which it continues.

    folder: of onnxruntime-genai (genai_config.json) or Optimum (config.json and model.onnx).
    device: as of InferenceSession, but one device. max_context: tokens of a sequence at most, 0:
        the model's. chunk: tokens of a prompt that one run computes, 0: 256. cache: "auto",
        "growing" or "reserved" (see clg_generator_cache).

    Iterating over it yields tokens until one of them ends the text:

        generator = clgraph.Generator("folder")
        generator.append(prompt)
        for token in generator:
            ...

    text() yields pieces of text instead, where the folder has tokenizer.json.

    One call at a time: others raise Busy.
    """

    def __init__(
        self,
        folder: Union[str, os.PathLike],
        device: Any = None,
        precision: str = "fp32",
        *,
        max_context: int = 0,
        chunk: int = 0,
        cache: str = "auto",
        kernels: str = "auto",
        read_file: bool = False,
    ):
        cancel = new_cancel()
        session = init(
            c.clg_session_options,
            kernels=enum_value(KERNELS, kernels, "kernels"),
            precision=enum_value(PRECISIONS, precision, "precision"),
            cancel=cancel.pointer,
        )
        options = init(
            c.clg_generator_options,
            session=ctypes.addressof(session),
            max_context=max_context,
            chunk=chunk,
            cache=enum_value(CACHES, cache, "cache"),
            read_files=bool(read_file),
        )
        self.context = shared_context(device)
        context_pointer, encoded = self.context._handle.pointer, os.fsencode(folder)

        def work() -> Handle:
            out = ctypes.c_void_p()
            check(
                lib.clg_generator_open(
                    context_pointer, encoded, ctypes.byref(options), ctypes.byref(out)
                )
            )
            return Handle(out.value, lib.clg_generator_free)

        self._cancel = cancel
        self._handle = waiting(work, lambda: lib.clg_cancel_trigger(cancel.pointer))
        info = init(c.clg_generator_info)
        check(lib.clg_generator_describe(self._handle.pointer, ctypes.byref(info)))
        self.model_type = string(info.model_type)
        self.vocabulary, self.max_context = info.vocabulary, info.max_context
        self.n_layers, self.cache = info.n_layers, _CACHE_NAMES[info.cache]
        self.bos: Optional[int] = info.bos if info.bos >= 0 else None
        self.pad: Optional[int] = info.pad if info.pad >= 0 else None
        self.eos: Tuple[int, ...] = (
            tuple((ctypes.c_int64 * info.n_eos).from_address(info.eos)) if (info.n_eos) else ()
        )
        self.end: Optional[str] = None

    def _run(self, function: Any, *arguments: Any) -> None:
        """Calls a function of the generator; Ctrl-C ends it."""
        arguments = (self._handle.pointer, *arguments)
        if on_main_thread():
            check(guarded(function, arguments, lib.clg_generator_cancel))
        else:
            check(function(*arguments))

    def set_sampling(
        self,
        temperature: float = 0.0,
        *,
        top_k: int = 0,
        top_p: float = 0.0,
        min_p: float = 0.0,
        repetition_penalty: float = 0.0,
        seed: int = 0,
        max_new: int = 0,
    ) -> None:
        """Says how next tokens are chosen, as clg_sampling; without arguments the most likely one.

        At first the settings of the folder apply.
        """
        sampling = init(
            c.clg_sampling, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
            repetition_penalty=repetition_penalty, seed=seed, max_new=max_new,
        )  # fmt: skip
        check(lib.clg_generator_set_sampling(self._handle.pointer, ctypes.byref(sampling)))

    def append(self, tokens: Sequence[int]) -> None:
        """Appends tokens to the sequence; the next call that needs them computes them.

        Integers of shape [n] or [1, n].
        """
        given = np.asarray(tokens)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"tokens are integers, not {given.dtype}")
        if given.ndim != 1 and (given.ndim != 2 or given.shape[0] != 1):
            raise ValueError(f"tokens have the shape [n] or [1, n], not {list(given.shape)}")
        array = np.ascontiguousarray(given.reshape(-1), np.int64)
        check(lib.clg_generator_append(self._handle.pointer, array.ctypes.data, array.size))
        self.end = None

    def next(self) -> int:
        """Chooses the next token and appends it; `end` is then None, "eos" or "length".

        After an end it returns -1.
        """
        token, end = ctypes.c_int64(), ctypes.c_int()
        self._run(lib.clg_generator_next, ctypes.byref(token), ctypes.byref(end))
        self.end = _ENDS[end.value]
        return token.value

    def __iter__(self) -> Iterator[int]:
        while self.end is None:
            token = self.next()
            if token >= 0:
                yield token

    def append_text(self, text: str) -> None:
        """Appends the tokens of a text; to an empty sequence with the special tokens around it.

        As all functions of text, this needs tokenizer.json in the folder. Surrogates count as
        U+FFFD.
        """
        encoded = text.encode("utf-8", "surrogatepass")
        check(lib.clg_generator_append_text(self._handle.pointer, encoded, len(encoded)))
        self.end = None

    def set_stops(self, *texts: str) -> None:
        """Sets the texts before which generated text ends."""
        array, n = names_array(texts, "a stop text")
        address = ctypes.addressof(array) if array else None
        check(lib.clg_generator_set_stops(self._handle.pointer, address, n))

    def next_text(self) -> str:
        """Chooses the next token and returns the text that is certain with it; "" if none is yet.

        `end` is then None, "eos", "length" or "stop".
        """
        text, n, end = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_int()
        self._run(
            lib.clg_generator_next_text, ctypes.byref(text), ctypes.byref(n), ctypes.byref(end)
        )
        self.end = _ENDS[end.value]
        return ctypes.string_at(text.value, n.value).decode(errors="replace") if n.value else ""

    def text(self) -> Iterator[str]:
        """Yields pieces of text until it ends."""
        while self.end is None:
            piece = self.next_text()
            if piece:
                yield piece

    def logits(self) -> np.ndarray:
        """Returns the logits after the last token of the sequence, float32 [vocabulary]."""
        out = np.empty(self.vocabulary, np.float32)
        self._run(lib.clg_generator_logits, out.ctypes.data, out.size)
        return out

    def rewind(self, n_tokens: int = 0) -> None:
        """Cuts the sequence to its first n_tokens; what was computed of them is kept."""
        self._run(lib.clg_generator_rewind, n_tokens)
        self.end = None

    @property
    def tokens(self) -> List[int]:
        """A copy of the sequence."""
        pointer = self._handle.pointer
        n = lib.clg_generator_n_tokens(pointer)
        address = lib.clg_generator_tokens(pointer)
        return list((ctypes.c_int64 * n).from_address(address)) if n else []

    def cancel(self) -> None:
        """Ends the call that another thread is in, which then raises Cancelled."""
        lib.clg_generator_cancel(self._handle.pointer)

    @property
    def stats(self) -> GeneratorStats:
        out = init(c.clg_generator_stats)
        check(lib.clg_generator_get_stats(self._handle.pointer, ctypes.byref(out)))
        return GeneratorStats(
            *(getattr(out, field.name) for field in dataclasses.fields(GeneratorStats))
        )
