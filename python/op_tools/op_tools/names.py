"""Lists of operators as people write them: names of torch's functions, of overloads, of the contract, or patterns.

An operator answers to four names: its overload (`aten.addmm.default`), its packet (`aten.addmm`), the function of the
contract behind it (`diopiAddmm`) and the function of torch that the program called (`torch.nn.functional.linear`). A
list names one of them, or holds regular expressions that match one of them from its first to its last character.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class NameList:
    """One list, e.g. NameList.of("torch.add, aten.addmm.*")."""

    names: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, text: str | Iterable[str]) -> "NameList":
        """The list that `text` says, names parted by commas. Raises ValueError for what is no regular expression."""
        entries = text.split(",") if isinstance(text, str) else text
        return _parsed(tuple(entry.strip() for entry in entries if entry.strip()))

    def __bool__(self) -> bool:
        return bool(self.names)

    def matches(self, names: Iterable[str]) -> bool:
        """Whether one of an operator's names is in the list."""
        return any(name in self.names or any(p.fullmatch(name) for p in self.patterns) for name in names if name)

    @property
    def names_functions(self) -> bool:
        """Whether it may mean functions of torch, which only a look at the program's own calls tells apart."""
        return any(entry != ".*" and not entry.startswith(("aten", "diopi")) for entry in self.names)


@lru_cache(maxsize=256)
def _parsed(entries: tuple[str, ...]) -> NameList:
    patterns = []
    for entry in entries:
        try:
            patterns.append(re.compile(entry))
        except re.error as error:
            raise ValueError(
                f"'{entry}' is neither the name of an operator nor a regular expression: {error}"
            ) from None
    return NameList(frozenset(entries), tuple(patterns))
