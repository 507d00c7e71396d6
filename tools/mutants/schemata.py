"""All mutants of a source in one text: each place becomes a choice that the process makes by one number.

An expression becomes `(diopi_planted == N ? (after) : (before))`, what ends like a statement an `if`. See Untch, Offutt
and Harrold, "Mutation analysis using mutant schemata", 1993.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from tools.mutants.mutant import Mutant

# Included before every source; the number is 0 where no fault is planted.
HEADER = """extern "C" {
extern __attribute__((visibility("hidden"))) int diopi_planted;
}
"""
DEFINITION = """#include <cstdlib>
extern "C" {
__attribute__((visibility("hidden"))) int diopi_planted = 0;
}
namespace {
__attribute__((constructor(101))) void choose() {
    if (const char* number = std::getenv("DIOPI_MUTANT")) diopi_planted = std::atoi(number);
}
}  // namespace
"""


_WORD = re.compile(r"\w")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


class Misplaced(Exception):
    """A mutant does not fit its source; the text begins with the mutant's place."""


@dataclass(frozen=True, slots=True)
class _Place:
    mutant: Mutant
    begin: int
    end: int


def place(mutant: Mutant, text: str) -> tuple[int, int]:
    """Where `before` stands. Raises Misplaced unless that is exactly one place."""
    found = list(re.finditer(_anyhow_folded(mutant.before), text))
    if len(found) == 1:
        return found[0].span()
    what = f"'{mutant.before}' is in {mutant.source} {len(found)} times; take more of the text around it"
    gone = f"'{mutant.before}' is gone from {mutant.source}; plant the fault anew"
    raise Misplaced(f"{mutant.span}: {what if found else gone}")


def _anyhow_folded(before: str) -> str:
    """A pattern of the same tokens with any white space between them; only two words need some."""
    pattern = ""
    for last, token in pairwise(["", *re.findall(r"\w+|[^\w\s]", before)]):
        pattern += (r"\s+" if _WORD.match(last) and _WORD.match(token) else r"\s*") if last else ""
        pattern += re.escape(token)
    return pattern


def planted(mutant: Mutant, text: str) -> str:
    """The source with this one fault. Raises Misplaced."""
    begin, end = place(mutant, text)
    return text[:begin] + mutant.after + text[end:]


def woven(mutants: tuple[Mutant, ...], text: str) -> str:
    """The source with all faults, chosen by `diopi_planted`. Raises Misplaced, also where two overlap halfway."""
    places = sorted((_Place(m, *place(m, text)) for m in mutants), key=lambda p: (p.begin, -p.end))
    parts: list[str] = []
    done = 0
    while places:
        outer = places[0]
        inner = [p for p in places if p.begin < outer.end]
        places = places[len(inner) :]
        for p in inner:
            if p.end > outer.end:
                raise Misplaced(f"{p.mutant.span}: overlaps with '{outer.mutant.name}'; make one hold the other")
        parts += [text[done : outer.begin], _choice(outer, inner, text)]
        done = outer.end
    return "".join(parts) + text[done:]


def _choice(outer: _Place, inner: list[_Place], text: str) -> str:
    original = text[outer.begin : outer.end]
    variants = [
        (p.mutant.number, text[outer.begin : p.begin] + p.mutant.after + text[p.end : outer.end]) for p in inner
    ]
    is_statement = original.endswith(";") or (original.endswith("}") and ";" in original)
    for chosen in (original, *(after for _, after in variants)):
        _check_whole(outer.mutant, chosen, is_statement)
    if is_statement:
        chosen = " else ".join(f"if (diopi_planted == {number}) {{ {after} }}" for number, after in variants)
        return f"{chosen} else {{ {original} }}"
    for number, after in reversed(variants):
        original = f"(diopi_planted == {number} ? ({after}) : ({original}))"
    return original


def _check_whole(mutant: Mutant, text: str, is_statement: bool) -> None:
    """Raises Misplaced for half an expression and for several, which C++ might take for something else."""
    bare = _QUOTED.sub('""', text)
    depth = 0
    for before, character in zip(" " + bare, bare, strict=False):
        depth += character in "([{" or (character == "<" and (before.isalnum() or before == "_"))
        depth -= character in ")]}" or (character == ">" and before not in " ->")
        if depth < 0 or (depth == 0 and character == "," and not is_statement):
            break
    else:
        if depth == 0:
            return
    raise Misplaced(f"{mutant.span}: '{text}' is no whole expression or statement; take all of it, or plant it 'alone'")
