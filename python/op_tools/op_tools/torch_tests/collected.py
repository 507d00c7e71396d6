"""One file of tests, imported as torch's own runner does it: its tests by name, and the outcome of one."""

import importlib.util
import sys
import time
import traceback
import unittest
from pathlib import Path
from typing import Any


class Collected:
    """The tests of a file by "Class.test"; of those classes only that are made from `base`, unless `host`.

    With `hardware`, e.g. ("ACCELERATOR",), those classes alone that torch classifies so, made from `base` or generic.
    Raises whatever the import of the file raises.
    """

    def __init__(self, path: Path, base: type, host: bool, hardware: tuple[str, ...] = ()) -> None:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"'{path}' is no file of Python")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        sys.argv = [str(path)]
        spec.loader.exec_module(module)
        cases = [value for value in vars(module).values() if _is_case(value)]
        self._classes = {
            case.__name__: case
            for case in cases
            if (host or issubclass(case, base) or "GENERIC" in hardware)
            and (not hardware or classification(case) in hardware)
        }

    def names(self) -> list[str]:
        loader = unittest.TestLoader()
        return [f"{name}.{test}" for name, case in self._classes.items() for test in loader.getTestCaseNames(case)]

    def run(self, name: str) -> dict[str, Any]:
        """{"outcome", "reason", "seconds"} and, of a failure, the end of its "trace"."""
        case, _, test = name.partition(".")
        record = _Record()
        begin = time.perf_counter()
        unittest.TestSuite([self._classes[case](test)]).run(record)
        return {**record.outcome(), "seconds": round(time.perf_counter() - begin, 3)}


def classification(case: type) -> str | None:
    """What torch says of the hardware that a class of tests needs, e.g. "GENERIC"; None if nothing."""
    from torch.testing._internal.common_utils import get_hw_classification  # type: ignore[attr-defined, unused-ignore]

    found = get_hw_classification(case)
    return None if found is None else str(found.name)


def _is_case(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, unittest.TestCase)


class _Record(unittest.TestResult):
    """What one test came to."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: list[dict[str, Any]] = []
        self._skip = ""

    def addError(self, test: Any, err: Any) -> None:
        self._faults.append(_fault(err[1]))

    def addFailure(self, test: Any, err: Any) -> None:
        self._faults.append(_fault(err[1]))

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._faults.append(_fault(err[1]))

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._faults.append({"reason": "torch expects a failure, and the test passes", "trace": ""})

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._skip = "torch expects the failure"

    def addSkip(self, test: Any, reason: str) -> None:
        self._skip = reason

    def outcome(self) -> dict[str, Any]:
        if self._faults:
            return {"outcome": "failed", **self._faults[0]}
        return {"outcome": "skipped" if self._skip else "passed", "reason": self._skip}


def _fault(error: BaseException) -> dict[str, str]:
    """The first cause in a line, and the end of the trace: torch wraps what a sample raised."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    text = " ".join(str(cause).partition("\nTo execute this test, run")[0].split())
    trace = "".join(traceback.format_exception(error))
    return {"reason": f"{type(cause).__name__}: {text}"[:600], "trace": trace[-3000:]}
