"""The process that touches the vendor's library: gets calls, makes them, gives everything back. It has no torch.

Each call is made twice, with other bytes in memory that nobody wrote: fresh memory, and outputs. A result that depends
on them is wrong, whatever it is the first time.

Started as `python -m diopi_conformance.process.worker RUNTIME LIBRARY (REPORT | --under)`. It judges nothing. A library
that crashes takes this process with it, and only this process. Its keeper writes to the descriptor REPORT how it ended.
Under a tool it has no keeper, since tools follow one process, and does not look whether a call leaves memory behind:
the tool may keep some for each call.
"""

import gc
import os
import sys
from pathlib import Path
from typing import Any

from diopi_conformance.process import wire
from diopi_conformance.process.call import LibraryCall
from diopi_conformance.process.draws import drawn_again
from diopi_conformance.process.footprint import SHARED, Footprint
from diopi_conformance.process.leaks import LeakSanitizer
from diopi_conformance.process.library import Library, LibraryError
from diopi_conformance.process.parent import die_with_parent
from diopi_conformance.process.process_state import DESCRIPTORS, ProcessState
from diopi_conformance.process.reaper import keep
from diopi_conformance.process.wire import FRESH, ON_OTHER_BYTES, OTHER_OUTPUT, same_answer

UNDER_A_TOOL = "--under"
MUTE = 113  # the exit code of a worker whose descriptors are gone, so that nobody can speak with it
_AGAIN = 12  # calls that must all leave something behind before that is a leak: caches fill in a few


class RequestLoop:
    """Makes the calls that are asked for."""

    def __init__(self, library: Library, leaks: LeakSanitizer, context: int, counted: bool) -> None:
        self._library = library
        self._leaks = leaks
        self._context = context
        self._footprint = Footprint(library.used_memory)
        self._counted = counted

    def answer(self, request: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """The reply to one request; a failure of the runtime itself is a reply too."""
        try:
            self._library.checked("standalone_set_fresh", FRESH)
            before = self._footprint.now()
            head, found, states = self._called(request, blobs)
            if head.get("status") != 0 or not head["synchronized"]:
                return head, found
            grown = self._footprint.since(before, held=found) if self._counted else {}
            head["memory"] = grown.get("bytes", 0)
            if grown:
                again, head["leaks"] = self._left_each_time(request, blobs, grown)
                if again is not None:
                    return again
            self._library.checked("standalone_set_fresh", request["fresh"])
            if "draws" not in request:
                return self._on_other_bytes(request, blobs, head, found)
            head["draws"] = drawn_again(request, states, lambda again: self._called(again, blobs), found)
        except LibraryError as error:
            return {"outcome": "runtime-error", "error": str(error)}, []
        return head, found

    def _called(
        self, request: dict[str, Any], blobs: list[bytes]
    ) -> tuple[dict[str, Any], list[bytes], list[list[int]]]:
        """The reply to one call, and the states of its generators after it."""
        call = LibraryCall(self._library, self._leaks, self._context, request, blobs)
        try:
            head, found = call.run()
            return head, found, call.states()
        finally:
            call.close()

    def _on_other_bytes(
        self, request: dict[str, Any], blobs: list[bytes], head: dict[str, Any], found: list[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The reply with that to the second call in "other", and its storages last, where it is not the same.

        A second call that fails gives the reply.
        """
        unwritten = set(request["unwritten"])
        others = [bytes([OTHER_OUTPUT]) * len(b) if i in unwritten else b for i, b in enumerate(blobs)]
        other, storages, _ = self._called(request, others)
        if other.get("status") != 0 or not other["synchronized"]:
            return {**other, "error": ": ".join(filter(None, (ON_OTHER_BYTES, other["error"])))}, storages
        if storages == found and same_answer(head, other):
            return head, found
        return {**head, "other": other}, [*found, *storages]

    def _left_each_time(
        self, request: dict[str, Any], blobs: list[bytes], grown: dict[str, int]
    ) -> tuple[tuple[dict[str, Any], list[bytes]] | None, dict[str, int]]:
        """What every one of some more calls leaves behind, the least that it was; empty where nothing is.

        Before it the reply to the call that failed, if one did: a failed device must not be the next case's fault.
        Of the device's memory each must leave the same: others may use it meanwhile.
        """
        steps: set[int] = set()
        for _ in range(_AGAIN):
            gc.collect()  # Python's own cycles are nobody's leak
            before = self._footprint.now()
            head, found, _ = self._called(request, blobs)
            if head.get("status") != 0 or not head["synchronized"]:
                return (head, found), {}
            del found
            gc.collect()
            more = self._footprint.since(before)
            steps.add(more.get(SHARED, 0))
            if len(steps) > 1:
                more.pop(SHARED, None)
            grown = {
                kind: more[kind] if kind == SHARED else min(n, more[kind]) for kind, n in grown.items() if kind in more
            }
            if not grown:
                break
        return None, grown


def main() -> int:
    """Serve requests from standard input until it closes."""
    bare = sys.argv[3] == UNDER_A_TOOL
    if bare:
        die_with_parent()
    else:
        keep(int(sys.argv[3]))
    leaks = LeakSanitizer()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between the replies
    try:
        library = Library(Path(sys.argv[1]), Path(sys.argv[2]))
        context = library.created("standalone_context_create")
    except LibraryError as error:
        wire.send(replies, {"outcome": "unusable", "error": str(error)}, [])
        return 1
    desk = RequestLoop(library, leaks, context, counted=not bare)
    surroundings = ProcessState((0, 1, 2, replies.fileno()))
    gc.freeze()  # what was loaded stays, and need not be looked through again
    wire.send(replies, {"outcome": "ready"}, [])
    while True:
        try:
            request, blobs = wire.receive(sys.stdin.buffer)
        except wire.Closed:
            library.call("standalone_context_destroy", context)
            wire.send(replies, {"outcome": "ended", "leaks": leaks.found()}, [])
            return 0
        head, found = desk.answer(request, blobs)
        if changed := surroundings.changed():
            if DESCRIPTORS in changed:
                os._exit(MUTE)
            head["changed"] = changed
        wire.send(replies, {"id": request["id"], **head}, found)


if __name__ == "__main__":
    sys.exit(main())
