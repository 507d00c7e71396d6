"""`diopigen fmt` on YAML of any structure and style: no crash, no change of meaning, no lost comment, a fixed point."""

import random
from collections.abc import Callable

import pytest

from diopigen.commands.fmt import change
from diopigen.diagnostics import Diagnostics
from diopigen.source.format.op_style import canonical
from diopigen.source.yaml.nodes import parse_yaml

FILES = 300
SEEDS = 4

KEYS = ("doc", "args", "out", "aten", "backward", "cases", "where", "zeta", "order", "forward", "grads", "c", "x-y")
WORDS = ("a", "Tensor<T>", "1e-3", "true", "x y", ".nan", "null", "é ü", "word " * 40)
QUOTED = ("it''s", "a: b", "#x", "- z", "[q", "", "p,q", "{r")
BLOCK_LINES = ("text # no", "more words", "z: y", "- x", "  deeper")


class Author:
    """Writes a file as nobody should; every comment is numbered."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.comments = 0

    def file(self) -> str:
        return "\n".join(self.mapping(0, 4)) + "\n"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def comment(self, share: float, before: str = "") -> str:
        if not self.chance(share):
            return ""
        self.comments += 1
        return f"{before}# m{self.comments}."

    def between(self, indent: int) -> list[str]:
        """What stands between two entries: nothing, a comment of some depth, a blank line."""
        comment = self.comment(0.1, " " * max(0, indent + self.rng.choice([-2, 0, 0, 2])))
        return [comment] if comment else [""] * self.chance(0.05)

    def scalar(self) -> str:
        word = self.rng.choice(WORDS).strip()
        plain = self.chance(0.6)
        return word if plain else f"'{self.rng.choice((*QUOTED, word))}'" if self.chance(0.5) else f'"{word}"'

    def brackets(self, indent: int, depth: int) -> str:
        if depth == 0 or self.chance(0.4):
            return self.scalar()
        pieces = [self.brackets(indent, depth - 1) for _ in range(self.rng.randrange(4))]
        deeper = "\n" + " " * (indent + self.rng.randrange(1, 9))
        comma = self.rng.choice([", ", ",", f",{deeper}", f", {self.comment(0.3)}{deeper}"])
        if self.chance(0.5):
            return f"[{comma.join(pieces)}]"
        keys = self.rng.sample(KEYS, len(pieces))
        return "{" + comma.join(f"{key}: {piece}" for key, piece in zip(keys, pieces, strict=True)) + "}"

    def value(self, head: str, indent: int, depth: int) -> list[str]:
        side = self.comment(0.15, "  ")
        kinds: list[Callable[[], list[str]]] = [
            lambda: [f"{head} {self.scalar()}{side}"],
            lambda: [f"{head} {self.brackets(indent + 2, 2)}{side}"],
            lambda: [f"{head} {self.rng.choice(['>-', '|', '|-', '>', '|2'])}{side}", *self.block_text(indent + 2)],
            lambda: [f"{head}{side}"],
        ]
        if depth > 0:
            step = self.rng.choice([1, 2, 3, 4])
            kinds += [lambda: [f"{head}{side}", *self.mapping(indent + step, depth - 1)]] * 2
            kinds += [lambda: [f"{head}{side}", *self.sequence(indent + self.rng.choice([0, 2, 4]), depth - 1)]] * 2
        return self.rng.choice(kinds)()

    def block_text(self, indent: int) -> list[str]:
        lines = [self.rng.choice(BLOCK_LINES[: 4 if n == 0 else 5]) for n in range(self.rng.randrange(1, 4))]
        return [" " * indent + line if self.chance(0.9) else "" for line in lines]

    def mapping(self, indent: int, depth: int) -> list[str]:
        lines: list[str] = []
        for key in self.rng.sample(KEYS, self.rng.randrange(1, 5)):
            lines += [*self.between(indent), *self.value(" " * indent + key + ":", indent, depth)]
        return lines + self.between(indent)

    def sequence(self, indent: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randrange(1, 4)):
            lines += self.between(indent)
            held = self.mapping(indent + 2, depth - 1) if depth > 0 and self.chance(0.4) else []
            if held and held[0].strip() and not held[0].lstrip().startswith("#"):
                lines += [" " * indent + "- " + held[0].lstrip(), *held[1:]]
            else:
                lines += self.value(" " * indent + "-", indent, 0)
        return lines


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_yaml(seed: int) -> None:
    valid = 0
    for number in range(FILES):
        author, found = Author(seed * FILES + number), Diagnostics()
        text = author.file()
        node = parse_yaml(text, "a.yaml", found)
        if node is None or found.failed:
            continue
        valid += 1
        after = canonical(text)
        assert change(node, text, after, "a.yaml") is None, text
        for comment in range(1, author.comments + 1):
            assert after.count(f"# m{comment}.") == text.count(f"# m{comment}."), text
        assert canonical(after) == after, text
    assert valid > FILES / 2
