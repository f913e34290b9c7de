# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and other signals during calls of the library.

Python runs signal handlers between bytecodes of the main thread, hence not while a call of the
library lasts. Two mechanisms, for calls of the main thread only:

- `waiting` has a worker thread make a call that may take seconds (loading, compiling) while the
  main thread waits in a way that signals interrupt. If a handler raises, the call is cancelled.
- `guarded` is for runs, where changing threads would cost more than the call. While one lasts,
  the wakeup descriptor of `signal` is ours: a thread that reads it cancels the run when SIGINT
  arrives. The call then returns, and Python's handler raises KeyboardInterrupt. If the
  handler does not raise, the run is repeated, as Python repeats system calls (PEP 475). Signals
  are passed on to the descriptor that was set before, such as asyncio's.
"""

import atexit
import os
import signal
import socket
import threading
import time

from ._capi import CLG_ERROR_CANCELLED
from ._library import lib

_get_ident = threading.get_ident
_main_ident = threading.main_thread().ident


def on_main_thread():
    return _get_ident() == _main_ident


def waiting(work, cancel=None):
    """Returns work(), which a worker thread calls if this is the main thread.

    When a signal handler raises meanwhile, cancel() is called if given, and the result of work is
    dropped; without cancel, work ends in the background.
    """
    if not on_main_thread():
        return work()
    result, done = [], threading.Event()

    def body():
        try:
            result.append((work(), None))
        except BaseException as e:  # raised again in the main thread
            result.append((None, e))
        finally:
            done.set()

    thread = threading.Thread(target=body, name="clgraph", daemon=True)
    try:
        thread.start()
        done.wait()
    except BaseException:
        if cancel:
            cancel()
            done.wait(0.5)
        if not done.is_set():
            # Drivers unload at exit, which must not happen under a thread that compiles, and what
            # it uses must not be freed before: handlers run in the reverse order.
            atexit.register(thread.join, 30)
        raise
    value, error = result.pop()
    if error is not None:
        raise error
    return value


class _Watcher:
    """A thread that cancels the run of the main thread when SIGINT arrives."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = None  # what the main thread runs: a pointer, and what cancels it
        self.previous = -1  # wakeup descriptor to pass signals on to
        self.fired = False
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.fd = self.writer.fileno()
        threading.Thread(target=self.watch, name="clgraph-sigint", daemon=True).start()

    def watch(self):
        while True:
            numbers = self.reader.recv(64)
            if not numbers:
                return
            if self.previous != -1:
                try:
                    os.write(self.previous, numbers)
                except OSError:
                    pass  # full or closed, as when Python itself writes to it
            if signal.SIGINT in numbers:
                self.cancel_run()

    def cancel_run(self):
        # More than once: the first time the call may not have reached the library yet.
        running = self.running
        while running is not None:
            with self.lock:
                if self.running is not running:
                    return
                self.fired = True
                pointer, cancel = running
                cancel(pointer)
            time.sleep(0.02)


_watcher = None


def _forget_watcher():
    global _watcher, _main_ident
    _watcher = None  # threads do not survive fork(), but for the one that calls it
    _main_ident = _get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_watcher)


def guarded(call, arguments, cancel=lib.clg_session_cancel):
    """Returns call(*arguments), which cancel(arguments[0]) ends, as SIGINT then does.

    Of the main thread only.
    """
    global _watcher
    if _watcher is None:
        if not callable(signal.getsignal(signal.SIGINT)):
            return call(*arguments)
        _watcher = _Watcher()
    watcher = _watcher
    if watcher.running is not None:  # a signal handler that runs a model during a run
        return call(*arguments)
    while True:
        watcher.fired = False
        watcher.previous = signal.set_wakeup_fd(watcher.fd)
        watcher.running = (arguments[0], cancel)
        try:
            status = call(*arguments)
        finally:
            with watcher.lock:
                watcher.running = None
            signal.set_wakeup_fd(watcher.previous)
        if status != CLG_ERROR_CANCELLED or not watcher.fired:
            return status
