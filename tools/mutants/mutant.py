"""What a mutant is, and the files that list them: one YAML file per source."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from diopigen.diagnostics import Diagnostics, Span
from diopigen.source.yaml.nodes import Leaf, Mapping, Node, Sequence, read_yaml

FOLDER = Path(__file__).parent / "kernels"

KINDS = (
    "off by one",
    "wrong stride",
    "dropped tail",
    "swapped operands",
    "wrong accumulation",
    "missing broadcast",
    "stale output",
    "wrong tie",
    "NaN mishandled",
    "block border",
    "wrong sign",
    "lost epsilon",
    "wrong rounding",
    "wrong element type",
    "aliasing",
    "wrong default",
    "lost status",
    "wrong scale",
    "wrong condition",
    "wrong formula",
    "weak randomness",
    "lost copy back",
    "wrong layout",
    "wrong conversion",
)

_FILE_KEYS = ("source", "functions", "mutants")
_KEYS = ("kind", "before", "after", "functions", "alone", "equivalent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One place of one source, before and after, and the functions that the fault may reach."""

    name: str  # e.g. "softmax/off-by-one"; a second one of a kind ends in "-2"
    kind: str  # one of KINDS
    source: str  # e.g. "runtime_cpp/kernels/normalization/softmax.cpp"
    before: str  # one place of the source; any blanks match any others
    after: str
    functions: tuple[str, ...]  # patterns, e.g. ("diopi*Softmax*",)
    span: Span
    alone: bool = False  # compiled by itself: what it changes is fixed when the source is compiled
    equivalent: str = ""  # why no library with this fault can be told from one without

    @property
    def number(self) -> int:
        """What chooses it in a library that has them all; other mutants' coming and going does not change it."""
        return crc32(self.name.encode()) & 0x7FFFFFFF


def read_mutants(folder: Path, root: Path, diagnostics: Diagnostics) -> tuple[Mutant, ...]:
    """The mutants of every file, by file name; each fault of a file is a diagnostic at its place."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.yaml")):
        shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        node = read_yaml(path, shown, diagnostics)
        if node is not None:
            found += _File(shown, path.stem, diagnostics).mutants(node)
    numbers = Counter(mutant.number for mutant in found)
    for mutant in found:
        if numbers[mutant.number] > 1:
            diagnostics.error("mutant", f"'{mutant.name}' has the number of another mutant", mutant.span, "rename it")
    return tuple(found)


class _File:
    """The reader of one file."""

    def __init__(self, shown: str, stem: str, diagnostics: Diagnostics) -> None:
        self._shown = shown
        self._stem = stem
        self._diagnostics = diagnostics
        self._kinds: Counter[str] = Counter()

    def mutants(self, node: Node) -> list[Mutant]:
        top = self._mapping(node, _FILE_KEYS)
        entries = top.get("mutants") if top is not None else None
        if top is None or not isinstance(entries, Sequence):
            self._error("a file of mutants has 'source', 'functions' and the list 'mutants'", node.span)
            return []
        source, functions = self._text(top, "source"), self._patterns(top)
        made = [self._mutant(item, source, functions) for item in entries.items]
        return [mutant for mutant in made if mutant is not None]

    def _mutant(self, node: Node, source: str, functions: tuple[str, ...]) -> Mutant | None:
        entry = self._mapping(node, _KEYS)
        if entry is None:
            return None
        kind = self._text(entry, "kind")
        if kind not in KINDS:
            self._error(f"there is no kind '{kind}': one of {', '.join(KINDS)}", node.span)
        self._kinds[kind] += 1
        count = self._kinds[kind]
        own = self._patterns(entry) if entry.get("functions") is not None else functions
        alone = entry.get("alone")
        return Mutant(
            name=f"{self._stem}/{kind.lower().replace(' ', '-')}{'' if count == 1 else f'-{count}'}",
            kind=kind,
            source=source,
            before=self._text(entry, "before"),
            after=self._text(entry, "after", empty=True),
            functions=own,
            span=node.span,
            alone=isinstance(alone, Leaf) and alone.value is True,
            equivalent=self._text(entry, "equivalent") if entry.get("equivalent") is not None else "",
        )

    def _mapping(self, node: Node, keys: tuple[str, ...]) -> Mapping | None:
        if not isinstance(node, Mapping):
            self._error("expected keys and values", node.span)
            return None
        for entry in node.entries:
            if entry.key.text not in keys:
                self._error(f"there is no key '{entry.key.text}': one of {', '.join(keys)}", entry.key.span)
        return node

    def _text(self, node: Mapping, key: str, empty: bool = False) -> str:
        value = node.get(key)
        if isinstance(value, Leaf) and (empty or value.text.strip()):
            return value.text.strip()
        self._error(f"'{key}' is missing or empty", node.span)
        return ""

    def _patterns(self, node: Mapping) -> tuple[str, ...]:
        value = node.get("functions")
        items = value.items if isinstance(value, Sequence) else (value,)
        return tuple(item.text for item in items if isinstance(item, Leaf))

    def _error(self, message: str, span: Span) -> None:
        self._diagnostics.error("mutant", message, span)
