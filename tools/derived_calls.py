"""Which operators of the device each derived one calls, against the list of those that it says it needs.

    python -m tools.derived_calls [ENTRY ...]

prints, for each derived operator that torch's samples reach, what it calls and does not list (a fault: on a chip that
lacks it the operator would be a composition of fallbacks), what it lists and did not call, and the derived
operators that no sample reaches. Exits with 1 if there is a fault.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from op_tools.torch_tests.opinfo.entries import dtypes_of, entries
from op_tools.torch_tests.opinfo.entry import check_entry


@dataclass(slots=True, kw_only=True)
class Calls:
    """What one derived operator lists, and what was seen."""

    listed: frozenset[str]
    called: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)  # whose samples reached it

    @property
    def missing(self) -> list[str]:
        return sorted(self.called - self.listed)

    @property
    def unseen(self) -> list[str]:
        return sorted(self.listed - self.called)


def calls(names: Iterable[str]) -> dict[str, Calls]:
    """Runs the samples of these entries at their usual dtype, forward, backward, in place and with out=."""
    found = {name: Calls(listed=frozenset(listed)) for name, listed in torch.dipu.debug.derived_operators().items()}
    native, known = set(torch.dipu.debug.native_operators()), entries()
    for name in names:
        entry = known[name]
        dtypes = dtypes_of(entry, False)
        if not dtypes:  # the CPU has it not
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _recorded() as profiler:
                check_entry(entry, dtypes[0], "dipu")
        for caller, called in _edges(profiler.profiler.kineto_results.events(), native):
            if caller in found:
                found[caller].entries.add(name)
                found[caller].called |= {called} - {None}
    return found


def _recorded() -> Any:
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], experimental_config=config)


def _edges(events: Iterable[Any], native: set[str]) -> Iterator[tuple[str, str | None]]:
    """Each operator of the device with the next ones below it, and with None, so that one without any is there too."""
    open_: dict[int, list[tuple[int, str]]] = {}  # thread -> the end and name of what runs, the innermost last
    for event in sorted(events, key=lambda e: (e.start_ns(), -e.duration_ns())):
        name = _overload(event)
        if name not in native:
            continue
        running = open_.setdefault(event.start_thread_id(), [])
        while running and running[-1][0] <= event.start_ns():
            running.pop()
        if running and running[-1][1] != name:  # an operator is an event for autograd and one for the device
            yield running[-1][1], name
        yield name, None
        running.append((event.start_ns() + event.duration_ns(), name))


def _overload(event: Any) -> str:
    """e.g. "add.Tensor"; empty for what is no operator of ATen."""
    if not event.name().startswith("aten::"):
        return ""
    return ".".join(word for word in (event.name()[6:], event.overload_name()) if word)


def main() -> int:
    import torch_dipu

    torch_dipu.start()
    found = calls(sys.argv[1:] or entries())
    for operator, seen in found.items():
        if seen.missing:
            print(
                f"{operator} calls {', '.join(seen.missing)}, which its list lacks ({', '.join(sorted(seen.entries))})"
            )
    for operator, seen in found.items():
        if seen.entries and seen.unseen:
            print(f"{operator} did not call {', '.join(seen.unseen)}")
    print(f"no sample reaches {', '.join(operator for operator, seen in found.items() if not seen.entries)}")
    return 1 if any(seen.missing for seen in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
