"""The published list of tests that cannot pass on a device, with the reason of each.

- test: test_view_ops.TestViewOps*.test_x_dipu_*    a test or a glob: SUITE.CLASS.TEST
  reason: reads a CPU tensor's memory through ctypes
  device: NVIDIA *                                  only on devices with such a name; left out, on all

A test of the list still runs: it counts as "listed" where it does not pass, and its entry is reported where it does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from diopi_conformance.running.yaml_places import Record, YamlError, YamlPlace, records

_OPTIONAL = "device"
_KEYS = {
    "test": "say which, e.g. 'test: test_view_ops.TestViewOps*.test_unfold_*'",
    "reason": "say what the test wants that the device cannot give",
}


class SkipsError(Exception):
    """The file is wrong; the text has a line for each mistake, with its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    pattern: str
    reason: str
    place: YamlPlace
    device: str = "*"  # a glob of the name that the device has, e.g. "NVIDIA *"

    def means(self, test: str) -> bool:
        """Whether the entry speaks of the test, e.g. "test_view_ops.TestViewOpsDIPU.test_T_dipu"."""
        return re.match(translate(self.pattern), test) is not None

    @property
    def suite(self) -> str:
        """e.g. "test_view_ops" """
        return self.pattern.partition(".")[0]


def published(device: str) -> Path | None:
    """The list that comes with the tools, if there is one for the device."""
    path = Path(__file__).resolve().parent / "skip_lists" / f"{device}.yaml"
    return path if path.exists() else None


def read_skips(path: Path) -> tuple[Skip, ...]:
    """The entries of a file. Raises SkipsError."""
    try:
        found = records(path)
    except OSError as error:
        raise SkipsError(f"{path} cannot be read: {error.strerror}") from None
    except YamlError as error:
        raise SkipsError(str(error)) from None
    mistakes: list[str] = []
    entries = [_entry(record, mistakes) for record in found]
    seen: dict[str, YamlPlace] = {}
    for entry in entries:
        if entry.pattern in seen:
            mistakes.append(f"{entry.place}: '{entry.pattern}' stands at {seen[entry.pattern]} already")
        seen.setdefault(entry.pattern, entry.place)
    if mistakes:
        raise SkipsError("\n".join(mistakes))
    return tuple(entries)


def outdated(skips: Sequence[Skip], outcomes: dict[str, str], whole: frozenset[str]) -> tuple[str, ...]:
    """A sentence for each entry of a suite in `whole` (`outcomes` has all its tests) that means no test, and for each
    that means one that passes or that torch itself skips. A test that did not run has the outcome "".
    """
    found = []
    for skip in skips:
        meant = [test for test in outcomes if skip.means(test)]
        idle = [test for test in meant if outcomes[test] in ("passed", "skipped")]
        if not meant and skip.suite in whole:
            found.append(f"{skip.place}: no test is called '{skip.pattern}': remove the entry")
        elif idle:
            more = f" and {len(idle) - 1} more" if len(idle) > 1 else ""
            found.append(f"{skip.place}: '{idle[0]}'{more} {outcomes[idle[0]]}: remove or narrow '{skip.pattern}'")
    return tuple(found)


def _entry(record: Record, mistakes: list[str]) -> Skip:
    values = {key.text: value.text.strip() for key, value in record.entries}
    for key, _ in record.entries:
        if key.text not in (*_KEYS, _OPTIONAL):
            mistakes.append(f"{key.place}: an entry has no '{key.text}'; its keys are {', '.join((*_KEYS, _OPTIONAL))}")
    for name, why in _KEYS.items():
        if not values.get(name):
            mistakes.append(f"{record.place}: the entry lacks its '{name}'; {why}")
    pattern = values.get("test", "")
    if pattern and (pattern.count(".") < 2 or re.search(r"[*?[]", pattern.partition(".")[0])):
        mistakes.append(f"{record.place}: '{pattern}' is not of the form SUITE.CLASS.TEST, the suite without a glob")
    device = values.get(_OPTIONAL) or "*"
    return Skip(pattern=pattern, reason=values.get("reason", ""), place=record.place, device=device)
