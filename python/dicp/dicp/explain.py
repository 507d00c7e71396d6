"""What became of each graph: launches, fused kernels, islands and why, memory."""

import itertools
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import fx

from dicp.debug.document import document
from dicp.debug.page import page
from dicp.emit.source import Emitted
from dicp.lower.state import Unsupported
from dicp.patterns.rewrite import Applied
from dicp.program import Island, Kernel, LibraryCall, Program
from diopigen.page.site import site_link

_reports: list["Report"] = []
_numbers = itertools.count()
_KINDS = {Kernel: "kernels", LibraryCall: "calls", Island: "islands"}


@dataclass(slots=True, kw_only=True)
class Report:
    """One compilation."""

    phase: str  # "forward", "backward" or "inference"
    graph: fx.GraphModule | None  # None: the cache of graphs had it
    patterns: tuple[Applied, ...] = ()  # the idioms that were found before the graph was differentiated
    program: Program | None = None
    emitted: Emitted | None = None
    suffix: str = ".cpp"
    executable: Any = None
    whole_graph: str | None = None  # why the graph runs node by node

    @property
    def source(self) -> str:
        """In the language of the target; "" where the graph runs node by node."""
        return "" if self.emitted is None else self.emitted.source

    @property
    def islands(self) -> tuple[str, ...]:
        """The operators of the framework that are left, e.g. ("aten::nonzero",)."""
        found = self.program.instructions if self.program is not None else ()
        return tuple(i.operator for i in found if isinstance(i, Island))

    def text(self) -> str:
        """A few lines that say what was fused and what was not."""
        if self.graph is None and self.emitted is not None:
            return f"{self.phase}: {len(self.emitted.specification['instructions'])} launches, from the cache of graphs"
        if self.program is None:
            return f"{self.phase}: the graph runs node by node: {self.whole_graph}"
        program = self.program
        kinds = Counter(_KINDS[type(i)] for i in program.instructions)
        lines = [
            f"{self.phase}: {len(program.instructions)} launches of {program.launches_unfused} unfused: "
            f"{kinds['kernels']} kernels, {kinds['calls']} library calls, {kinds['islands']} islands; "
            f"arena {program.arena_bytes} of {program.unplanned_bytes} bytes"
        ]
        lines += [f"  pattern {found.pattern}: {', '.join(found.nodes)} became {found.node}" for found in self.patterns]
        lines += self._replays()
        for instruction in program.instructions:
            match instruction:
                case Kernel():
                    lines.append(f"  kernel over {instruction.sizes}: {', '.join(instruction.names)}")
                case LibraryCall():
                    lines.append(f"  {instruction.symbol}: {', '.join(instruction.names)}")
                case Island():
                    lines.append(
                        f"  island {instruction.operator}: {', '.join(instruction.names)} ({instruction.reason})"
                    )
        return "\n".join(lines)

    def _replays(self) -> list[str]:
        """What mode="reduce-overhead" has come to so far."""
        if self.emitted is None or not self.emitted.specification["replays"]:
            return []
        found = self.executable.replays()
        if found is None:
            return []  # the device does not record, and a warning has said so
        refusal = f"; nothing more is recorded: {found['refusal']}" if found["refusal"] else ""
        runs = f"runs by one launch: {found['launched']}, others: {found['issued']}"
        return [f"  recordings: {found['recorded']}; {runs}{refusal}"]

    def write(self, folder: Path) -> None:
        """The graph, and what became of it, in a folder of their own."""
        place = folder / f"{next(_numbers):03d}_{self.phase}"
        place.mkdir(parents=True, exist_ok=True)
        assert self.graph is not None  # nothing is taken from the graph cache while programs are watched
        texts = {"graph.py": self.graph.print_readable(print_output=False), "explanation.txt": self.text() + "\n"}
        if self.program is not None:
            found = {**document(self.program), "patterns": [asdict(applied) for applied in self.patterns]}
            texts["program.json"] = json.dumps(found, indent=1) + "\n"
            site = site_link(place / "program.html", "torch-compile.html")
            texts["program.html"] = page(f"{place.name} on {found['device']}", found, self.text(), site)
            texts[f"program{self.suffix}"] = self.source
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")


def remember(report: Report) -> None:
    _reports.append(report)


def reports() -> tuple[Report, ...]:
    """Every compilation of this process, in order."""
    return tuple(_reports)


def forget() -> None:
    """Lets the compilations so far go, and with them what they keep."""
    _reports.clear()


def figures() -> dict[str, int]:
    """How often a graph, an instruction of each kind, and a graph that runs node by node was met."""
    counts: Counter[str] = Counter()
    for report in _reports:
        counts["graphs"] += 1
        if report.graph is None:
            counts["graphs of the cache"] += 1
            continue
        if report.program is None:
            counts[f"graphs that run node by node: {report.whole_graph}"] += 1
            continue
        counts.update(_KINDS[type(i)] for i in report.program.instructions)
    return dict(counts)


def refuse_islands(program: Program) -> None:
    """Raises Unsupported where an operator of the framework is left."""
    islands = [i for i in program.instructions if isinstance(i, Island)]
    if islands:
        named = ", ".join(f"{i.operator} ({i.reason})" for i in islands)
        raise Unsupported(f"DICP_STRICT is set, and these operators have no binding: {named}")
