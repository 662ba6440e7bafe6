# SPDX-License-Identifier: MIT
"""Ctrl-C that waits for the end of what must not be done in part."""
from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any, Iterator, List


@contextlib.contextmanager
def not_in_the_middle() -> Iterator[None]:
    """Ctrl-C comes behind what is done here, so that a version is applied whole; the second one at
    once. Where the program handles SIGINT itself, it does so as ever."""
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        yield
        return
    came: List[int] = []

    def later(signo: int, _: Any) -> None:
        came.append(signo)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
