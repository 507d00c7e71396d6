"""DICP_PROFILE: each instruction of a program is a range of torch.profiler."""

from collections.abc import Callable
from typing import Any

from torch.profiler import record_function


def profiled(run: Callable[[list[Any]], Any], executable: Any, phase: str) -> Callable[[list[Any]], Any]:
    """`run` with a range around it, e.g. "dicp forward", and one inside for each instruction, by its name."""
    titles = executable.instructions()

    def run_profiled(arguments: list[Any]) -> Any:
        ranges: list[Any] = []

        def begin(index: int) -> None:
            if index < len(titles):
                ranges.append(record_function(titles[index]))
                ranges[-1].__enter__()

        def end() -> None:
            if ranges:
                ranges.pop().__exit__(None, None, None)

        def watch(instruction: int) -> None:
            end()
            begin(instruction + 1)

        with record_function(f"dicp {phase}"):
            executable.set_watch(watch)
            begin(0)
            try:
                return run(arguments)
            finally:
                end()
                executable.set_watch(None)

    return run_profiled
