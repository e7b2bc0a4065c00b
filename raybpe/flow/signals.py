"""Ctrl-C and SIGTERM: time for saving, and moments that must not be torn apart."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

END_SECONDS = 5.0  # in which an interrupted run saves what it has
HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held() -> Iterator[None]:
    """Answer Ctrl-C and SIGTERM, as the caller would, after the block; a second one at once.

    A Ray that is half started can be neither used nor ended, and starting another one ends the
    process. Ray also puts an answer to SIGTERM of its own in place, which prints a trace of its C++
    code and aborts; the caller's is put back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are answered elsewhere
        return
    before = {number: signal.getsignal(number) for number in HELD}
    came: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            _restore(before)
            signal.raise_signal(number)

    for number in HELD:
        signal.signal(number, hold)
    try:
        yield
    except SystemExit:  # how Ray answers SIGTERM while it starts
        came.append(signal.SIGTERM)
        raise
    finally:
        _restore(before)
        if came:
            signal.raise_signal(came[0])


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        if handler is not None:  # one that was not set from Python
            signal.signal(number, handler)
