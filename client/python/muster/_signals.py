# SPDX-License-Identifier: MIT
"""Errors that handlers of signals raise, and that wait for the end of what must not be done in
part."""
from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any, Iterator, List


@contextlib.contextmanager
def not_in_the_middle() -> Iterator[None]:
    """Ctrl-C comes after what is done here, so that a version is applied whole; the second one at
    once. Where the program handles SIGINT itself, it does so as ever. What a handler of SIGCHLD
    raises comes after it too: a DataLoader has one, which tells that a worker has died."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with contextlib.ExitStack() as stack:
        if callable(signal.getsignal(signal.SIGCHLD)):
            stack.enter_context(_behind(signal.SIGCHLD))
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            stack.enter_context(_behind(signal.SIGINT, at_once=True))
        yield


@contextlib.contextmanager
def _behind(signo: int, at_once: bool = False) -> Iterator[None]:
    """The handler runs after what is done here. at_once: unless it is the second signal."""
    handler: Any = signal.getsignal(signo)
    came: List[int] = []

    def later(*_: Any) -> None:
        came.append(signo)
        if at_once:
            signal.signal(signo, handler)

    signal.signal(signo, later)
    try:
        yield
    finally:
        signal.signal(signo, handler)
    if came:
        handler(signo, None)
