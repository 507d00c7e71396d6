"""Findings as SARIF 2.1.0, which code scanning services and editors read."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from diopigen.commands.rules import Rule
from diopigen.diagnostics import Diagnostic, Diagnostics, Span

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(diagnostics: Diagnostics, rules: Sequence[Rule]) -> str:
    """One document: every rule with its description, and the findings; columns count characters from 1."""
    driver = {"name": "diopigen", "version": version("diopigen"), "rules": [_rule(rule) for rule in rules]}
    places = {rule.code: place for place, rule in enumerate(rules)}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, places) for finding in diagnostics.ordered()],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False)


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.means},
        "help": {"text": rule.fix},
        "properties": {"number": rule.number, "group": rule.group},
    }


def _result(finding: Diagnostic, places: dict[str, int]) -> dict[str, Any]:
    related = [
        {"message": {"text": text}, "physicalLocation": _location(span), "id": number}
        for number, (text, span) in enumerate(finding.related)
    ]
    return {
        "ruleId": finding.code,
        **({"ruleIndex": places[finding.code]} if finding.code in places else {}),
        "level": finding.severity.value,
        "message": {"text": finding.message + (f"; {finding.hint}" if finding.hint else "")},
        "locations": [{"physicalLocation": _location(finding.span)}],
        **({"relatedLocations": related} if related else {}),
    }


def _location(span: Span) -> dict[str, Any]:
    path = PurePath(span.path)
    return {
        "artifactLocation": {"uri": path.as_uri() if path.is_absolute() else quote(span.path)},
        "region": {"startLine": span.line, "startColumn": span.column, "endColumn": span.column + span.length},
    }
