# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of language models: text to ids and back, from a tokenizer.json file."""

import ctypes
import os
from typing import List, Optional, Sequence, Union

from ._library import Handle, check, encode_name, lib, string


class Tokenizer:
    """A tokenizer of a tokenizer.json file, or of the folder that has one.

    Threads may share it. What of these files is supported: docs/tokenizers.md. Raises Unsupported
    for a part that is not.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"]):
        out = ctypes.c_void_p()
        check(lib.clg_tokenizer_open(encode_name(os.fspath(path), "a path"), ctypes.byref(out)))
        self._handle = Handle(out.value, lib.clg_tokenizer_free)

    def __len__(self) -> int:
        """Returns the number of ids."""
        return lib.clg_tokenizer_size(self._handle.pointer)

    def encode(self, text: Union[str, bytes], add_special: bool = True) -> List[int]:
        """Returns the ids of a text, with the special tokens around it unless add_special is False.

        Of bytes, those that are not UTF-8 count as U+FFFD, as surrogates of a str do.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        ids, n = ctypes.c_void_p(), ctypes.c_size_t()
        check(
            lib.clg_tokenizer_encode(
                self._handle.pointer,
                data,
                len(data),
                add_special,
                ctypes.byref(ids),
                ctypes.byref(n),
            )
        )
        try:
            return list((ctypes.c_int64 * n.value).from_address(ids.value))
        finally:
            lib.clg_ids_free(ids)

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """Returns the text of ids, without that of special tokens unless skip_special is False."""
        array = (ctypes.c_int64 * len(ids))(*ids)
        out, n = ctypes.c_void_p(), ctypes.c_size_t()
        check(
            lib.clg_tokenizer_decode(
                self._handle.pointer,
                array,
                len(ids),
                skip_special,
                ctypes.byref(out),
                ctypes.byref(n),
            )
        )
        try:
            return ctypes.string_at(out.value, n.value).decode()
        finally:
            lib.clg_text_free(out)

    def token(self, id: int) -> Optional[str]:
        """Returns the token of an id as the file spells it; None: there is none."""
        token = lib.clg_tokenizer_token(self._handle.pointer, id)
        return None if token is None else string(token)

    def id(self, token: str) -> int:
        """Returns the id of a token as the file spells it."""
        out = ctypes.c_int64()
        name = encode_name(token, "a token")
        check(lib.clg_tokenizer_id(self._handle.pointer, name, ctypes.byref(out)))
        return out.value

    def special_id(self, role: str) -> int:
        """Returns the id of a special token by its role: "bos", "eos", "pad", "unk"."""
        out = ctypes.c_int64()
        name = encode_name(role, "a role")
        check(lib.clg_tokenizer_special_id(self._handle.pointer, name, ctypes.byref(out)))
        return out.value

    def is_special(self, id: int) -> bool:
        """Returns whether an id is that of a special token."""
        return lib.clg_tokenizer_is_special(self._handle.pointer, id)

    def stream(self, skip_special: bool = True) -> "TokenStream":
        """Returns a stream that gives text token by token."""
        return TokenStream(self, skip_special)


class TokenStream:
    """The text of tokens that come one by one; for one thread at a time."""

    def __init__(self, tokenizer: Tokenizer, skip_special: bool = True):
        out = ctypes.c_void_p()
        pointer = tokenizer._handle.pointer
        check(lib.clg_token_stream_create(pointer, skip_special, ctypes.byref(out)))
        self._handle = Handle(out.value, lib.clg_token_stream_free)

    def push(self, id: int) -> str:
        """Adds a token; returns the text that is complete with it, "" while a character is not."""
        out, n = ctypes.c_void_p(), ctypes.c_size_t()
        pointer = self._handle.pointer
        check(lib.clg_token_stream_push(pointer, id, ctypes.byref(out), ctypes.byref(n)))
        return ctypes.string_at(out.value, n.value).decode()

    def end(self) -> str:
        """Returns what is left, U+FFFD for a character that is not complete, and starts anew."""
        out, n = ctypes.c_void_p(), ctypes.c_size_t()
        check(lib.clg_token_stream_end(self._handle.pointer, ctypes.byref(out), ctypes.byref(n)))
        return ctypes.string_at(out.value, n.value).decode()
