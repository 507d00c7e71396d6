"""The spellings of schemas/patterns.yaml as Python: functions that are compiled, and computed in float64."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dicp.patterns import Pattern

_LISTED = {"ones", "zeros", "full"}  # factories whose sizes are a list
_PLACED = {*_LISTED, "arange"}  # what makes tensors out of nothing
_OWN = {"cast", "item", "list"}


@dataclass(frozen=True)
class Variant:
    """One way to write an idiom: a spelling, and which way each part is written."""

    pattern: Pattern
    source: str
    inputs: tuple[str, ...]  # that it reads
    sets: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.pattern.name}: {self.source}"

    @property
    def examples(self) -> list[dict[str, Any]]:
        """The rows that have a value for all that it reads."""
        return [row for row in self.pattern.examples if all(name in row for name in self.inputs)]

    def function(self, torch: Any, wide: bool = False) -> Callable[..., Any]:
        """The idiom of the inputs by name; `wide` computes everything in float64."""
        body = f"def idiom({', '.join(self.inputs)}):\n    return {self.source}\n"
        kinds = {} if wide else {"f32": torch.float32, "f16": torch.float16}
        names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "f32": torch.float64, **kinds}
        exec(body, names)
        made: Callable[..., Any] = names["idiom"]
        return made


def variants(pattern: Pattern) -> Iterator[Variant]:
    """Every spelling with the first way of each part, and then each other way of each part."""
    seen: set[str] = set()
    for spelling in pattern.match:
        others = [(name, way) for name, ways in pattern.parts.items() for way in range(1, len(ways))]
        for name, way in itertools.chain([("", 0)], others):
            printer = _Printer(pattern, {name: way})
            source = printer.text(spelling.tree)
            if source not in seen:
                seen.add(source)
                inputs = tuple(given for given in pattern.inputs if given in printer.read)
                yield Variant(pattern, source, inputs, spelling.sets)


class _Printer:
    """Trees as Python; notes which inputs they read."""

    def __init__(self, pattern: Pattern, ways: dict[str, int]) -> None:
        self._pattern, self._ways = pattern, ways
        self.read: set[str] = set()
        self._first = next(iter(pattern.inputs))

    def text(self, tree: Any) -> str:
        match tree:
            case ("input", name):
                if self._pattern.inputs[name].kind == "float" and self._pattern.inputs[name].default == float("-inf"):
                    return "-torch.inf"
                self.read.add(name)
                return str(name)
            case ("part", name):
                ways = self._pattern.parts[name]
                return self.text(ways[self._ways.get(name, 0)])
            case ("number" | "word", value):
                return repr(value)
            case ("element", _):
                self.read.add(self._first)
                return f"{self._first}.dtype"
            case ("dtype", dtype):
                return {"torch.float32": "f32"}.get(str(dtype), str(dtype))
            case ("call", op, *args):
                return self._call(op, [arg for arg in args if arg != ("anything",)])
        raise AssertionError(f"a tree of the kind {tree}")

    def _call(self, op: str, args: list[Any]) -> str:
        texts = [self.text(arg) for arg in args]
        match op:
            case "cast":
                return f"({texts[0]}).to({texts[1]})"
            case "item":
                return f"({texts[0]})[{texts[1]}]"
            case "index":
                return f"({texts[0]})[{texts[1]}]".replace("[[", "[").replace("]]", "]")
            case "list":
                return f"[{', '.join(texts)}]"
            case "linear" | "silu":
                return f"F.{op}({', '.join(texts)})"
            case "var":
                return f"torch.var({texts[0]}, {texts[1]}, correction={texts[2]}, keepdim={texts[3]})"
            case "slice":
                last = "" if len(texts) < 5 else texts[3]
                return f"{texts[0]}[..., {texts[2]}:{last}]"
            case "neg":
                return f"(-{texts[0]})"
            case "split" | "reciprocal" | "sqrt" | "rsqrt" | "pow" | "mean":
                return f"({texts[0]}).{op}({', '.join(texts[1:])})"
        if op in _PLACED:
            self.read.add(self._first)
            kind = ", dtype=torch.bool" if op == "ones" else ""
            texts.append(f"device={self._first}.device{kind}")
        operators = {"add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "matmul": "@"}
        if op in operators:
            return f"({texts[0]} {operators[op]} {texts[1]})"
        return f"torch.{op}({', '.join(texts)})"
