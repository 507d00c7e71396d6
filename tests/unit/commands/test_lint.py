"""Whatever a file holds, `diopigen lint` ends with findings at their places: never with a traceback, never late."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from diopigen.project import Project
from tests.unit.commands.test_doctor import ENTRY


@pytest.fixture
def project(miniature: Callable[..., Project], checkout: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(checkout.cache))
    return miniature({"tests.yaml": ENTRY}, {"chip": {"vendor.yaml": "doc: A chip for tests.\n"}})


def lint(project: Project) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), "lint", "--vendor", "chip"], prog_name="diopigen")


def changed(old: str, new: str) -> str:
    assert old in ENTRY
    return ENTRY.replace(old, new)


OPS, VENDOR, RUNTIME, DTYPES, PATTERNS, CONFIG = (
    "schemas/ops/tests.yaml",
    "vendors/chip/vendor.yaml",
    "schemas/runtime.yaml",
    "schemas/dtypes.yaml",
    "schemas/patterns.yaml",
    "vendors/chip/convert_config.yaml",
)


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        (OPS, "zz: x\n", "1:5: error[wrong-kind]: 'zz' needs a mapping here"),
        (OPS, "zz: []\n", "1:5: error[wrong-kind]: 'zz' needs a mapping here"),
        (OPS, "zz:\n", "1:4: error[wrong-kind]: 'zz' needs a mapping here"),
        (OPS, "", "1:1: error[empty-file]: this file is empty"),
        (OPS, "[" * 3000, "1:"),  # the place and the words are those of libyaml, of some versions ours
        (OPS, "- " * 60, "1:101: error[too-deep]: lists and mappings are nested more than 50 deep"),
        (OPS, changed("{T: float}", "{T: []}"), "5:14: error[empty]: an element type is missing here"),
        (
            OPS,
            changed("[8]", "[9" + "9" * 4300 + "]"),
            "8:16: error[out-of-range]: this number has more than 200 digits",
        ),
        (OPS, changed("[8]", "[" * 45 + "]" * 45), "8:7: error[case-wrong-kind]: 'input' is a tensor: give its shape"),
        (OPS, changed("{input: [8]}", "{input: .nan}"), "8:7: error[case-wrong-kind]: 'input' is a tensor"),
        (OPS, changed("[8]", "[99999999999999]"), "8:7: error[case-wrong-length]: 'input' has 99999999999999 elements"),
        (VENDOR, "[]", "1:1: error[wrong-kind]: 'vendor.yaml' needs a mapping here"),
        (VENDOR, f"doc: A chip.\nsources: [{'a' * 4000}]", "2:11: error[missing-folder]: there is no vendors/chip/aaa"),
        (RUNTIME, "[]", "1:1: error[wrong-kind]: 'runtime.yaml' needs a mapping here"),
        (DTYPES, "[]", "1:1: error[wrong-kind]: 'dtypes.yaml' needs a mapping here"),
        (PATTERNS, "x: []", "1:4: error[wrong-kind]: 'x' needs a mapping here"),
        (PATTERNS, "x", "1:1: error[wrong-kind]: patterns.yaml is a mapping from names to patterns"),
        (PATTERNS, "", "1:1: error[empty-file]: this file is empty"),
        (CONFIG, "- {}\n", "1:3: warning[empty-entry]: this entry is empty"),
    ],
)
def test_a_file_of_any_form_is_a_finding_at_its_place(project: Project, path: str, text: str, says: str) -> None:
    (project.root / path).write_text(text, encoding="utf-8")
    result = lint(project)
    assert f"{path}:{says}" in result.output
    assert result.exit_code == (0 if "warning" in says else 1)


@pytest.mark.parametrize(
    ("path", "old", "new", "says"),
    [
        (RUNTIME, '[0, "memory of the host"]', "[]", "'diopi_host' needs at least one entry here"),
        (RUNTIME, "version: [1, 0, 0]", "version: [1, -1, 0]", "'version' needs a larger number here"),
        (DTYPES, "value: 0,", "value: 99999999999,", "'value' needs a smaller number here"),
        (DTYPES, "value: 0,", "value: 255,", "'diopi_dtype_unsupported' has the value of the dtype 'i8'"),
        (DTYPES, "index: [i32, i64]", "index: []", "an element type is missing here"),
    ],
)
def test_faults_of_the_ground_files(project: Project, path: str, old: str, new: str, says: str) -> None:
    text = (project.root / path).read_text(encoding="utf-8")
    assert old in text
    (project.root / path).write_text(text.replace(old, new, 1), encoding="utf-8")
    result = lint(project)
    assert result.exit_code == 1 and says in result.output


def test_what_is_no_file_is_a_finding(project: Project) -> None:
    path = project.root / PATTERNS
    path.unlink()
    assert (
        f"{PATTERNS}:1:1: error[unreadable]: cannot read this file: No such file or directory" in lint(project).output
    )
    path.mkdir()
    assert f"{PATTERNS}:1:1: error[unreadable]: cannot read this file: Is a directory" in lint(project).output
    path.rmdir()
    os.mkfifo(path)
    result = lint(project)
    assert f"{PATTERNS}:1:1: error[unreadable]: cannot read this file: it is not a regular file" in result.output
    assert result.exit_code == 1
    path.unlink()
    shutil.copy(Path(__file__).parents[3] / PATTERNS, path)
    os.mkfifo(project.schemas / "ops" / "pipe.yaml")
    assert (
        "schemas/ops/pipe.yaml:1:1: error[unreadable]: cannot read this file: it is not a regular file"
        in lint(project).output
    )


def test_many_mistakes_take_no_long_time(project: Project) -> None:
    (project.root / OPS).write_text(ENTRY + "".join(f"  zz{n}: 1\n" for n in range(20_000)), encoding="utf-8")
    begin = time.monotonic()
    result = lint(project)
    assert time.monotonic() - begin < 30
    assert f"{OPS}:2:3: error[too-many]: 'double' has 19900 more mistakes like these" in result.output


def test_a_dtype_that_torch_lacks_serves_no_operator_of_torch(project: Project) -> None:
    (project.root / OPS).write_text(changed("Tensor<T> like", "Tensor<tf32> like") + "  aten: abs\n", encoding="utf-8")
    result = lint(project)
    assert result.exit_code == 1
    assert "error[aten-unservable]: 'out' is of the element type tf32, which torch lacks" in result.output


def test_a_checkout_whose_name_is_not_utf8(project: Project) -> None:
    moved = project.root.rename(os.fsdecode(os.fsencode(project.root.parent) + b"/\xff"))
    result = lint(Project(root=moved))
    assert result.exit_code == 2
    assert (
        f"the name of {project.root.parent}/\\xff is not UTF-8, which compilers need; move the checkout"
        in result.output
    )


KNOWN = "- id: add/f32/0\n  reason: sums are short\n  expires: 2027-03-31\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KNOWN, []),
        ("", []),
        ("# none\n", []),
        ("\ufeff" + KNOWN.replace("\n", "\r\n"), []),
        (KNOWN.replace("reason", "raeson"), [":2:3: error[unknown-key]: 'an entry' has no property 'raeson'"]),
        (
            KNOWN.replace("2027-03-31", "soon"),
            [":3:12: error[wrong-kind]: 'expires' needs a date such as 2027-03-31 here"],
        ),
        (KNOWN + "  verdict: flail\n", [":4:12: error[unknown-word]: 'flail' is not known here"]),
        (KNOWN + "  reason: again\n", [":4:3: error[duplicate-key]: 'reason' stands twice"]),
        ("- id: add/f32/0\n  expires: 2027-03-31\n", [":1:3: error[missing-key]: 'an entry' has no 'reason'"]),
        ("id: add/f32/0\n", [":1:1: error[wrong-kind]: known_failures.yaml is a list of entries"]),
        ("\t- id: 1\n", [":1:1: error[invalid-yaml]: found character that cannot start any token"]),
    ],
)
def test_known_failures(project: Project, text: str, said: list[str]) -> None:
    path = project.vendors / "chip" / "known_failures.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    done = lint(project)
    errors = [line for line in done.output.splitlines() if ": error[" in line]
    assert errors == [f"vendors/chip/known_failures.yaml{line}" for line in said], done.output
    assert done.exit_code == int(bool(said))
