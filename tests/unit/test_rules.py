"""The list of rules: numbers that do not change, and a file that has another form."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopigen.cli import cli
from diopigen.commands.rules import rules
from diopigen.project import Project


def test_every_rule_is_listed_with_its_number_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["lint", "--list"])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "Files"
    assert lines[1].split(maxsplit=2) == ["101", "unreadable", "The file cannot be opened."]
    assert "  201  bad-name " in result.stdout


def test_programs_get_the_same_rules(checkout: Project) -> None:
    words = ["--project", str(checkout.root), "lint", "--list", "--error-format", "json"]
    listed = [json.loads(line) for line in CliRunner().invoke(cli, words).stdout.splitlines()]
    assert [rule["code"] for rule in listed] == [
        rule.code for rule in rules(checkout.root / "docs" / "diagnostics.yaml")
    ]
    assert len({rule["number"] for rule in listed}) == len(listed)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a", "diagnostics.yaml is no mapping from groups to codes"),
        ("Files:\n  odd: [one]", "diagnostics.yaml: 'odd' needs two sentences, what it means and how to fix it"),
        ("Files:\n  odd: [one, {two: three}]", "diagnostics.yaml: 'odd' needs two sentences"),
        ("Files: [", "diagnostics.yaml is no YAML"),
    ],
)
def test_another_form_is_a_sentence(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "diagnostics.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=says):
        rules(path)
