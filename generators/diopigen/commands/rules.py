"""Everything that can be found fault with, numbered: the explanations that docs/diagnostics.yaml gives of the codes."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from diopigen.boundary import UNUSABLE
from diopigen.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One code with what it means. Numbers follow from the order, so entries are added at the end of a group only."""

    number: int  # e.g. 203: the third of the second group
    group: str  # e.g. "Ops"
    code: str  # e.g. "duplicate-function"
    means: str
    fix: str


def rules(path: Path) -> tuple[Rule, ...]:
    """The rules of the file at `path`. Raises OSError where there is none, ValueError where it has another form."""
    try:
        groups = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path.name} is no YAML: {error}") from error
    if not isinstance(groups, dict):
        raise ValueError(f"{path.name} is no mapping from groups to codes")
    return tuple(_rules(path.name, groups))


def _rules(name: str, groups: dict[str, dict[str, object]]) -> Iterator[Rule]:
    for hundreds, (group, entries) in enumerate(groups.items(), start=1):
        for position, (code, entry) in enumerate(entries.items(), start=1):
            match entry:
                case [str(means), str(fix)]:
                    yield Rule(number=100 * hundreds + position, group=group, code=code, means=means, fix=fix)
                case _:
                    raise ValueError(f"{name}: '{code}' needs two sentences, what it means and how to fix it")


def list_rules(project: Project, error_format: str) -> int:
    """Prints every rule; the exit code: 0, or 2 where the project does not explain its codes."""
    try:
        found = rules(project.home / "docs" / "diagnostics.yaml")
    except (OSError, ValueError) as error:
        print(f"the rules cannot be listed: {error}", file=sys.stderr)
        return UNUSABLE
    if error_format == "json":
        print("\n".join(json.dumps(asdict(rule), ensure_ascii=False) for rule in found))
        return 0
    width = max(len(rule.code) for rule in found)
    group = ""
    for rule in found:
        if rule.group != group:
            group = rule.group
            print(group)
        print(f"  {rule.number}  {rule.code:{width}}  {rule.means}")
    return 0
