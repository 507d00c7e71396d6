"""Which tests run when: `make quick`, `make test` and `make deep-test` choose by folder and by marker.

    @pytest.mark.deep("sanitizers", "the guard bytes around each block, which every test checks")

moves a test out of `make test`: it names the kind of deep test, and what in `make test` finds the same faults. A folder
of which FOLDERS says so is part of `make quick`. Without --tier all tests that are named run. CONTRIBUTING.md lists the
tiers; `python -m tools.test_tiers` writes the list.

    make test TURN=1

takes each second file of the folders that are not quick, TURN=2 the others, TURN=today one of the two by the date: what
CI has time for on slow processors.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
TIERS = ("quick", "test", "deep")
TURNS = 2

KINDS = {
    "sanitizers": "builds with AddressSanitizer and UndefinedBehaviorSanitizer",
    "races": "builds with ThreadSanitizer, many threads and streams",
    "matrix": "other compilers, targets, chips, settings and element types than those of `make test`",
    "fuzz": "drawn and mutated inputs, many of them",
    "mutants": "planted faults, which the suites must find",
    "frameworks": "models and test suites of others",
}


@dataclass(frozen=True, slots=True)
class Folder:
    """What the tests of a folder cover, and whether `make quick` runs them."""

    covers: str
    quick: bool = False


# By path below tests/; the longest that fits counts.
FOLDERS = {
    "unit": Folder("each module of the generator, the runner and the tools by itself", quick=True),
    "unit/coverage": Folder("which function works in which element type, as tables and pages"),
    "unit/tools": Folder("builds and their time left, tiers, times"),
    "unit/conformance": Folder("cases, references, judgements, reports and journals of the conformance suite"),
    "golden": Folder("generated files, pages and explanations, to the byte", quick=True),
    "diagnostics": Folder("each error of each kind of YAML: text, place and hint", quick=True),
    "contract": Folder("the DIOPI header: names, signatures, overloads and roles as established", quick=True),
    "property": Folder("reading, formatting, comparison and compiling of schemas, with drawn documents"),
    "compile": Folder("generated headers and adaptors under each C and C++ standard"),
    "determinism": Folder("the same bytes whatever the hash seed, folder, locale and order of files"),
    "cpp": Folder("kernels, adaptor, standalone run time and droplet, called from C++ and through ctypes"),
    "conformance": Folder("vendors under the conformance suite: droplet, torch, broken and null libraries"),
    "e2e": Folder("what a vendor does: new vendors and targets, profiles, planted faults, pages"),
    "torch": Folder("the PyTorch backend: operators, gradients, memory, streams, compiled programs, processes"),
    "op_tools": Folder("capture, compare, time, fall back: the tools as commands and as modules"),
}


def folder_of(path: Path) -> str:
    """The entry of FOLDERS that a test file belongs to; KeyError for one in no such folder."""
    parts = path.relative_to(TESTS).parts[:-1]
    names = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    found = next((name for name in names if name in FOLDERS), None)
    if found is None:
        raise KeyError(f"{path} is in no folder that tests/tiers.py lists")
    return found


def kinds_of(item: pytest.Item) -> tuple[str, ...]:
    """The kinds of deep tests that an item is of; empty if `make test` runs it.

    Raises pytest.UsageError if a marker names no kind, or gives no reason.
    """
    return tuple(_kinds(item))


def _kinds(item: pytest.Item) -> Iterator[str]:
    for marker in item.iter_markers("deep"):
        if len(marker.args) != 2 or marker.args[0] not in KINDS:
            raise pytest.UsageError(
                f"{item.nodeid}: the marker is deep(kind, what `make test` has instead); kinds: {', '.join(KINDS)}"
            )
        yield marker.args[0]


def turn_of(word: str) -> int:
    """The number of a turn, from 1; "today" is one by the date."""
    return date.today().toordinal() % TURNS + 1 if word == "today" else int(word)


def of_other_turns(files: Iterable[Path], turn: int) -> set[Path]:
    """Those that are left to another turn: of the folders that are not quick, each file is of one."""
    taken = sorted({path for path in files if not FOLDERS[folder_of(path)].quick})
    return {path for number, path in enumerate(taken) if number % TURNS != turn - 1}


class Tiers:
    """Deselects what is not of the tier or of the turn, and begins no test when the time is up."""

    def __init__(self, tier: str | None, kind: str | None, limit: float | None, turn: int | None = None) -> None:
        self._tier, self._kind, self._turn = tier, kind, turn
        self._end = None if limit is None else time.monotonic() + limit

    def chosen(self, item: pytest.Item) -> bool:
        """Is the test of the tier that was asked for?"""
        kinds = kinds_of(item)
        match self._tier:
            case "deep":
                return bool(kinds) if self._kind is None else self._kind in kinds
            case "test":
                return not kinds
            case "quick":
                return not kinds and FOLDERS[folder_of(item.path)].quick
            case _:
                return True

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keeps what is chosen."""
        others = of_other_turns((item.path for item in items), self._turn) if self._turn else ()
        left_out = [item for item in items if item.path in others or not self.chosen(item)]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if self.chosen(item)]

    def pytest_report_header(self) -> str | None:
        """Says what is left out."""
        if self._turn is None:
            return None
        return f"turn {self._turn} of {TURNS}: each file of the quick folders, and of the others one in {TURNS}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Skips what would begin too late."""
        if self._end is not None and time.monotonic() > self._end:
            pytest.skip("the time is up")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --tier, --kind, --turn and --limit."""
    group = parser.getgroup("tiers", "which tests run")
    group.addoption("--tier", choices=TIERS, help="only the tests of make quick, make test or make deep-test")
    group.addoption("--kind", choices=tuple(KINDS), help="with --tier deep: only those of this kind")
    turns = ("today", *map(str, range(1, TURNS + 1)))
    group.addoption("--turn", choices=turns, help="with --tier test: of the folders that are not quick a part")
    group.addoption("--limit", type=float, metavar="SECONDS", help="no test begins after so many seconds")


def pytest_configure(config: pytest.Config) -> None:
    """Chooses tests by the options."""
    config.addinivalue_line("markers", "deep(kind, instead): left to make deep-test; what make test has instead")
    options = config.option
    if options.kind is not None and options.tier != "deep":
        raise pytest.UsageError("--kind goes with --tier deep")
    if options.turn is not None and options.tier != "test":
        raise pytest.UsageError("--turn goes with --tier test")
    turn = None if options.turn is None else turn_of(options.turn)
    options.turn = None if turn is None else str(turn)  # for workers that begin on the next day
    config.pluginmanager.register(Tiers(options.tier, options.kind, options.limit, turn), "diopigen-tiers")
