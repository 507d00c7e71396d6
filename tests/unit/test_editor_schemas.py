"""The JSON Schemas for editors accept every file of their kind in the repository, and reject wrong ones."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from diopi_conformance.outcome import Verdict
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.records.known_failures import Bad
from diopigen.source.yaml.nodes import plain, root_of
from diopigen.targets.editor import FILES

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "op": ["schemas/ops/*.yaml"],
    "patterns": ["schemas/patterns.yaml"],
    "vendor": ["vendors/*/vendor.yaml", "tests/golden/project/vendors/*/vendor.yaml", "tests/vendors/*/vendor.yaml"],
    "convert_config": [
        *("vendors/*/convert_config.yaml", "vendors/*/profiles/*.yaml", "tests/cpp/adaptor/convert_config.yaml"),
        *("tests/golden/project/vendors/*/convert_config.yaml", "tests/vendors/*/convert_config.yaml"),
    ],
}
_TYPES = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool}
_NO_RULES = {"$schema", "$comment", "$defs", "title", "description", "default"}


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Whether `value` fits; a keyword of JSON Schema that the generated ones do not have is an error."""
    return all(_fits(value, key, rule, schema, root) for key, rule in schema.items() if key not in _NO_RULES)


def _fits(value: Any, key: str, rule: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    members = value if isinstance(value, dict) else {}
    patterns = schema.get("patternProperties", {})
    match key:
        case "$ref":
            return fits(value, root["$defs"][rule.removeprefix("#/$defs/")], root)
        case "anyOf":
            return any(fits(value, each, root) for each in rule)
        case "oneOf":
            return sum(fits(value, each, root) for each in rule) == 1
        case "type" if rule in ("integer", "number"):
            return isinstance(value, int if rule == "integer" else int | float) and not isinstance(value, bool)
        case "type":
            return isinstance(value, _TYPES[rule])
        case "enum":
            return value in rule
        case "const":
            return bool(value == rule)
        case "pattern":
            return not isinstance(value, str) or re.search(rule, value) is not None
        case "minLength":
            return not isinstance(value, str) or len(value) >= rule
        case "minItems":
            return not isinstance(value, list) or len(value) >= rule
        case "maxItems":
            return not isinstance(value, list) or len(value) <= rule
        case "minProperties":
            return not isinstance(value, dict) or len(value) >= rule
        case "format" if rule == "date":
            return not isinstance(value, str) or re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None
        case "items":
            return not isinstance(value, list) or all(fits(item, rule, root) for item in value)
        case "required":
            return not isinstance(value, dict) or all(name in value for name in rule)
        case "propertyNames":
            return all(fits(name, rule, root) for name in members)
        case "properties":
            return all(fits(members[name], each, root) for name, each in rule.items() if name in members)
        case "patternProperties":
            found = (
                (each, members[name]) for pattern, each in rule.items() for name in members if re.search(pattern, name)
            )
            return all(fits(member, each, root) for each, member in found)
        case "additionalProperties":
            known = {*schema.get("properties", ())}
            others = [m for n, m in members.items() if n not in known and not any(re.search(p, n) for p in patterns)]
            return all(rule is True or (rule is not False and fits(other, rule, root)) for other in others)
        case _:
            raise AssertionError(f"the keyword '{key}' is not known here")


def schema_of(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "schemas" / f"{kind}.schema.json").read_text(encoding="utf-8"))
    return found


def value_of(text: str) -> object:
    diagnostics = Diagnostics()
    node = root_of(text, "a.yaml", diagnostics)
    assert node is not None, diagnostics.found
    return plain(node)


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_fits(kind: str) -> None:
    schema = schema_of(kind)
    paths = [path for pattern in KINDS[kind] for path in sorted(ROOT.glob(pattern))]
    assert paths
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if path.parts[-2] != "duplicates":  # it has a key twice
            assert fits(value_of(text), schema, schema), path


OP = "a:\n  doc: A.\n  args: {input: Tensor<T>}\n"
PATTERN = (
    "a:\n  doc: A.\n  inputs: {x: Tensor<T>}\n  match: [x + x]\n  launches: {forward: 1}\n  examples: [{x: [4]}]\n"
)
KNOWN = "- id: add/f32/*\n  verdict: fail\n  reason: None.\n  expires: 2027-03-31\n"
CONFIG = "- diopiAdd:\n    dtype: (float64)->float32\n"


@pytest.mark.parametrize(
    ("kind", "good", "old", "new"),
    [
        ("op", OP, "  doc: A.\n", ""),
        ("op", OP, "doc", "dco"),
        ("op", OP, "Tensor<T>", "Tensr<T>"),
        ("op", OP, "Tensor<T>", "Tensor"),
        ("op", OP, "Tensor<T>", "out Tensor<T>"),
        ("op", OP, "Tensor<T>", "1"),
        ("op", OP, "{input: Tensor<T>}", "[input]"),
        ("op", OP, "doc: A.", "doc: A.\n  variants: [inplce]"),
        ("patterns", PATTERN, "launches", "launch"),
        ("patterns", PATTERN, "forward: 1", "forward: one"),
        ("patterns", PATTERN, "[{x: [4]}]", "[]"),
        ("vendor", "doc: A.\nbase: portable\n", "base", "bse"),
        ("vendor", "doc: A.\nbase: portable\n", "portable", "1"),
        ("vendor", "doc: A.\ngenerate: aten\n", "aten", "torch"),
        ("vendor", "doc: A.\nname: chip\n", "chip", "Chip"),
        ("vendor", "doc: A.\n", "doc", "about"),
        ("known_failures", KNOWN, "verdict: fail", "verdict: fial"),
        ("known_failures", KNOWN, "verdict: fail", "verdict: pass"),
        ("known_failures", KNOWN, "  reason: None.\n", ""),
        ("known_failures", KNOWN, "2027-03-31", "soon"),
        ("known_failures", KNOWN, "- id", "- case"),
        ("convert_config", CONFIG, "dtype", "dtpye"),
        ("convert_config", CONFIG, "diopiAdd", "Add"),
        ("convert_config", CONFIG, "(float64)->float32", "1"),
        ("convert_config", CONFIG, "- diopiAdd", "diopiAdd"),
        ("convert_config", "- ops: [diopiAdd]\n  contiguous: true\n", "true", "1"),
        ("convert_config", "- ops: [diopiAdd]\n  contiguous: true\n", "[diopiAdd]", "diopiAdd"),
        ("convert_config", "- diopiAdd:\n    supportComposite: true\n", "true", "maybe"),
    ],
)
def test_a_mistake_is_rejected(kind: str, good: str, old: str, new: str) -> None:
    schema = schema_of(kind)
    assert fits(value_of(good), schema, schema)
    assert good.count(old) == 1
    assert not fits(value_of(good.replace(old, new)), schema, schema)


@pytest.mark.parametrize("kind", [name.partition(".")[0] for name in FILES])
def test_every_key_has_a_description(kind: str) -> None:
    def keys(schema: object) -> list[tuple[str, dict[str, Any]]]:
        if isinstance(schema, list):
            return [found for item in schema for found in keys(item)]
        if not isinstance(schema, dict):
            return []
        own = list(schema.get("properties", {}).items())
        return own + [found for value in schema.values() for found in keys(value)]

    found = keys(schema_of(kind))
    assert found and [name for name, rule in found if "description" not in rule] == []


def test_editors_are_told_of_each_schema(checkout: Project) -> None:
    settings = json.loads((checkout.root / ".vscode" / "settings.json").read_text(encoding="utf-8"))
    assert [*settings["yaml.schemas"]] == [f"schemas/{name}" for name in FILES]
    for globs in settings["yaml.schemas"].values():
        assert all(any(checkout.root.glob(glob)) or "known_failures" in glob for glob in globs)  # none is known
    (ruler,) = settings["editor.rulers"]
    tools = tomllib.loads((checkout.root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert ruler == tools["black"]["line-length"]
    assert f"max_line_length = {ruler}" in (checkout.root / ".editorconfig").read_text(encoding="utf-8")


def test_hooks_call_commands_that_exist(checkout: Project) -> None:
    from diopigen.cli import cli

    hooks = value_of((checkout.root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert isinstance(hooks, list)
    for hook in hooks:
        program, command, *options = hook["entry"].split()
        assert program == "diopigen" and re.search(hook["files"], "vendor.yaml")
        names = {name for param in cli.commands[command].params for name in param.opts}
        assert names >= {*options}


def test_the_ways_to_fail_are_the_suite_s() -> None:
    good = {Verdict.PASS, Verdict.SKIPPED, Verdict.UNSOUND}
    assert get_args(Bad) == tuple(verdict.value for verdict in Verdict if verdict not in good)
