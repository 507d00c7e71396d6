"""Calls of random functions that are made again: from the same state, from the state that is left, from other seeds."""

from collections.abc import Callable
from typing import Any

Called = Callable[[dict[str, Any]], tuple[dict[str, Any], list[bytes], list[list[int]]]]

SAME, NEXT, OTHER = "same", "next", "other"


def drawn_again(
    request: dict[str, Any], states: list[list[int]], called: Called, found: list[bytes]
) -> list[dict[str, Any]]:
    """Makes the calls, adds the storages that the request names in "written" to `found`, and says what each call was.

    The first is from the state of the first call, the next ones from the state that the call before has left, the last
    from the seeds that follow.
    """
    made: list[dict[str, Any]] = []
    kinds = [SAME, *[NEXT] * request["draws"]["next"], OTHER]
    for kind in kinds:
        again = request if kind == SAME else _from_states(request, states if kind == NEXT else None)
        head, blobs, left = called(again)
        made.append({"kind": kind, "status": head.get("status"), "synchronized": head.get("synchronized", False)})
        if head.get("status") != 0 or not head["synchronized"]:
            break
        found += [blobs[index] for index in request["draws"]["written"]]
        states = left if kind == NEXT else states
    return made


def _from_states(request: dict[str, Any], states: list[list[int]] | None) -> dict[str, Any]:
    """The request with the generators in other states; without states, with the next seeds."""
    rest = iter(states or [])

    def other(seed: int | None) -> Any:
        if seed is None:
            return None
        return seed + 1 if states is None else next(rest)

    args = []
    for arg in request["args"]:
        match arg["pass"]:
            case "generator":
                args.append({**arg, "value": other(arg["value"])})
            case "generator*":
                args.append({**arg, "value": [other(seed) for seed in arg["value"]]})
            case _:
                args.append(arg)
    return {**request, "args": args}
