"""A part of the tests, for machines that share a run."""

import hashlib
import re
from dataclasses import dataclass


class BadShard(ValueError):
    """The text names no shard; the message says what does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One of `count` parts. Each test is in exactly one of them, which its name alone decides."""

    number: int  # from 1
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, test: str) -> bool:
        """Whether the test is in this part, e.g. "view_ops.TestViewRulesDIPU.test_versions_dipu"."""
        digest = hashlib.sha256(test.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1


WHOLE = Shard(number=1, count=1)


def shard_of(text: str) -> Shard:
    """e.g. "2/4" is the second of four. Raises BadShard."""
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
    if found is None:
        raise BadShard(f"'{text}' is not of the form i/n, e.g. '2/4' for the second of four parts")
    number, count = (int(digits) for digits in found.groups())
    if not 1 <= number <= count:
        parts = f"the parts are 1/{count} to {count}/{count}" if count else "there is one part at least, '1/1'"
        raise BadShard(f"there is no part {text.strip()}: {parts}")
    return Shard(number=number, count=count)
