"""Ctrl-C, and the request to end, while tests run."""

import signal
import sys
from collections.abc import Callable
from typing import Any, Self


class Interrupts:
    """While it is on, a signal calls `stop`, and goes on; where there is no `stop` yet, the process ends.

    `code` is the exit code that a signal wants, 0 where none came: 130 for Ctrl-C.
    """

    def __init__(self) -> None:
        self.stop: Callable[[], None] | None = None
        self.code = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, _: Any) -> None:
        self.code = 128 + number
        if self.stop is None:
            sys.exit(self.code)
        self.stop()
