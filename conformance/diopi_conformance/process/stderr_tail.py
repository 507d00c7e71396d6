"""What a worker writes to its standard error: the first of it is passed on, the last kept for when the worker dies."""

import contextlib
import os
import re
import subprocess
import threading

from diopi_conformance.process.library import error_text

_KEPT = 8192  # bytes
_PASSED_ON = 1 << 20  # bytes
_WAIT = 2.0  # seconds for what was written to arrive; a child of the library may hold the pipe open
# e.g. "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no such kernel\n"
_THROWN = re.compile(r"terminate called after throwing an instance of '([^']+)'(?:\s+what\(\):\s+(.*))?")

# e.g. "SUMMARY: ThreadSanitizer: data race kernels/sort.cpp:61 in operator()\n"
_SUMMARY = re.compile(r"^SUMMARY: (\w+Sanitizer: .*)$", re.MULTILINE)


class StderrTail:
    """Listens to one process until it ends."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._kept = b""
        self._thread = threading.Thread(target=self._listen, args=(process,), daemon=True)
        self._thread.start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        heard = 0
        with process.stderr as stream:
            while chunk := os.read(stream.fileno(), 65536):
                _pass_on(chunk[: max(0, _PASSED_ON - heard)])
                self._kept = (self._kept + chunk)[-_KEPT:]
                heard += len(chunk)
        if heard > _PASSED_ON:
            _pass_on(
                b"\ndiopi-conformance: %d more bytes that the library printed are left out\n" % (heard - _PASSED_ON)
            )

    def all(self) -> str:
        """What was written last, once the process has ended."""
        self._thread.join(timeout=_WAIT)
        return self._kept.decode(errors="replace")

    def summary(self) -> str:
        """What a sanitizer found before it ended the process, in one line; empty if none did."""
        found = _SUMMARY.findall(self.all())
        return str(found[-1]) if found else ""

    def exception(self) -> str:
        """Which C++ exception ended the process, empty if none did."""
        thrown = _THROWN.findall(self.all())
        if not thrown:
            return ""
        kind, what = thrown[-1]
        what = error_text(what.encode())
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} left the function" + (f": {what}" if what else "")


def _pass_on(chunk: bytes) -> None:
    with contextlib.suppress(OSError):  # what nobody can hear must be read all the same, or the worker waits
        os.write(2, chunk)
