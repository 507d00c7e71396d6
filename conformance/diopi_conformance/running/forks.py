"""Work spread over copies of this process, which have every import and the plan already.

Parent and copies talk over pipes, a line of JSON at a time; nothing is pickled. Copies are made before any thread runs.
"""

import json
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from diopi_conformance.process.session import killed

Message = dict[str, Any]
Work = Callable[[int], Iterator[Message]]  # the messages of one item
Last = Callable[[], Iterator[Message]]  # what a copy says when there is no item left


class ForkDied(Exception):
    """A copy ended before its work did; the text says how."""


class ForkFailed(Exception):
    """The work of a copy failed; the text is its traceback."""


class Forks:
    """`count` copies of this process that share the items 0 to `items` - 1, one at a time each."""

    def __init__(self, count: int, items: int, start: Callable[[], tuple[Work, Last]]) -> None:
        """`start` is called in each copy and gives what to do there."""
        self._items = iter(range(items))
        self._copies: list[_Copy] = []
        for _ in range(min(count, max(1, items))):
            self._copies.append(_Copy(start, self._copies))

    def messages(self) -> Iterator[Message]:
        """What the copies say, as it comes. Raises ForkDied and ForkFailed. Ended early, it ends the copies too."""
        with selectors.DefaultSelector() as ready:
            try:
                for copy in self._copies:
                    ready.register(copy.answers, selectors.EVENT_READ, copy)
                    self._next(copy)
                while ready.get_map():
                    for key, _ in ready.select():
                        yield from self._heard(ready, key.data)
            finally:
                for copy in self._copies:
                    copy.end()

    def _heard(self, ready: selectors.BaseSelector, copy: "_Copy") -> Iterator[Message]:
        lines, ended = copy.heard()
        for line in lines:
            message = json.loads(line)
            if "done" in message:
                self._next(copy)
            elif "failed" in message:
                raise ForkFailed(message["failed"])
            else:
                yield message
        if ended:
            ready.unregister(copy.answers)
            if code := copy.end(kill=False):
                raise ForkDied(f"a process of the run {f'was {killed(-code)}' if code < 0 else f'ended with {code}'}")

    def _next(self, copy: "_Copy") -> None:
        copy.ask(next(self._items, None))


class _Copy:
    """One copy, seen from the parent."""

    def __init__(self, start: Callable[[], tuple[Work, Last]], earlier: Sequence["_Copy"]) -> None:
        asked, self._asks = os.pipe()
        self.answers, answered = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._rest = b""
        self._pid = os.fork()
        if self._pid == 0:
            for other in (*earlier, self):
                os.close(other._asks)
                os.close(other.answers)
            _serve(start, asked, answered)
        os.close(asked)
        os.close(answered)

    def ask(self, item: int | None) -> None:
        """Give the copy its next item, or None if there is none."""
        try:
            os.write(self._asks, b"end\n" if item is None else b"%d\n" % item)
        except BrokenPipeError:
            return  # it died; the end of its answers tells

    def heard(self) -> tuple[list[bytes], bool]:
        """The whole lines that have come, and whether none will come any more."""
        chunk = os.read(self.answers, 1 << 20)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return lines, not chunk

    def end(self, kill: bool = True) -> int:
        """Wait until the copy has ended; its exit code, negative for a signal. Safe to call twice."""
        if self._pid == 0:
            return 0
        pid, self._pid = self._pid, 0
        os.close(self._asks)
        if kill:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        os.close(self.answers)
        return os.waitstatus_to_exitcode(status)


def _serve(start: Callable[[], tuple[Work, Last]], asked: int, answered: int) -> None:
    """The life of a copy; it never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    code = 1
    try:
        with os.fdopen(asked, "rb") as items, os.fdopen(answered, "wb") as answers:
            code = _served(start, items, answers)
    finally:
        os._exit(code)


def _served(start: Callable[[], tuple[Work, Last]], items: IO[bytes], answers: IO[bytes]) -> int:
    def say(message: Message) -> None:
        answers.write(json.dumps(message).encode() + b"\n")
        answers.flush()

    try:
        work, last = start()
        for line in items:
            if line == b"end\n":
                break
            for message in work(int(line)):
                say(message)
            say({"done": True})
        for message in last():
            say(message)
        return 0
    except BrokenPipeError:
        return 1  # the parent has ended the run
    except Exception:
        say({"failed": traceback.format_exc()})
        return 1
