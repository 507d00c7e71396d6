"""Names that C, C++ or the project itself takes: nothing that reaches C can be called so."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import chain, count
from pathlib import Path

import yaml

TABLE = Path(__file__).with_name("reserved_words.yaml")
_REASONS = {"keywords": "a keyword of {}", "macros": "a macro of {}", "generated": "a name in the generated {}"}
_FILE_SCOPE = {**_REASONS, "declarations": "declared by {}"}

# What no table could list.
PATTERNS = {
    r"_[A-Z].*|.*__.*": "kept for compilers and their headers",
    r"(?i:diopi).*": "kept for the contract's own names",
    r".*_t": "kept for types",
    r"kRule\d+": "a name in the generated adaptor",
    r"[A-Z0-9_]*_H_?": "kept for include guards",
}


def taken_by_languages(name: str, *, at_file_scope: bool) -> str | None:
    """Why even the contract's own declarations cannot have that name. e.g. "declared by math.h"."""
    return _words(at_file_scope).get(name)


def reserved(name: str) -> str | None:
    """Why nothing can have that name. e.g. "a keyword of C++98"; None where it can."""
    return _words(False).get(name) or next((why for form, why in PATTERNS.items() if re.fullmatch(form, name)), None)


def free_name(name: str, taken: Iterable[str] = ()) -> str:
    """`name` with a suffix that makes it one that can be used and is not `taken`. e.g. "new_"."""
    plain = re.sub(r"__+|\W+", "_", name)
    stem = re.sub(r"^_*(?i:diopi)?_*|_+t$|_+$", "", plain)
    stem = stem if stem[:1].isalpha() else f"value{stem}"
    known = set(taken)
    candidates = chain((plain, stem, f"{stem}_"), (f"{stem}_{n}" for n in count(2)))
    return next(c for c in candidates if c not in known and reserved(c) is None and c.isidentifier())


@cache
def _words(at_file_scope: bool) -> dict[str, str]:
    table = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    found: dict[str, str] = {}
    for group, reason in (_FILE_SCOPE if at_file_scope else _REASONS).items():
        for owner, words in table.get(group, {}).items():
            found |= {word: reason.format(owner) for word in words.split()}
    return found
