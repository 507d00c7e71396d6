"""Runs that keep results, after edit upon edit: the same files and findings as of a run that keeps nothing."""

import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.commands.generate import Request, generate
from diopigen.diagnostics import Diagnostics
from diopigen.emit.outputs import VENDOR_TARGETS
from diopigen.project import Project
from tests.golden.conftest import lay_out

EDITS = 12
_OF_A_PLACE = (".depfile", ".fresh.json", ".last.kept")  # name the folder that they lie in

Lines = list[str]


def doc(lines: Lines, chance: random.Random) -> Lines:
    at = _one(lines, r"  doc: ", chance)
    return [*lines[:at], f"{lines[at]} Once more, {chance.randrange(1000)}.", *lines[at + 1 :]]


def kernel(lines: Lines, chance: random.Random) -> Lines:
    at = _one(lines, r"  kernel: ", chance)
    return [*lines[:at], f"{lines[at]} + {chance.randrange(2, 9)}", *lines[at + 1 :]]


def sizes(lines: Lines, chance: random.Random) -> Lines:
    """Another length in a case."""
    at = _one(lines, r"    - \{.*\[\d", chance)
    return [*lines[:at], re.sub(r"\[\d+", f"[{chance.randrange(2, 99)}", lines[at]), *lines[at + 1 :]]


def repeated(lines: Lines, chance: random.Random) -> Lines:
    """A case twice: what follows has other numbers and stands a line lower."""
    at = _one(lines, r"    - \{", chance)
    return [*lines[:at], lines[at], *lines[at:]]


def removed(lines: Lines, chance: random.Random) -> Lines:
    at = _one(lines, r"    - \{", chance)
    return [*lines[:at], *lines[at + 1 :]]


def default(lines: Lines, chance: random.Random) -> Lines:
    """Another value of an argument that need not be given: of the headers, wrappers, graphs and cases."""
    at = _one(lines, r"    \w+: .* = \d+$", chance)
    return [*lines[:at], re.sub(r"\d+$", str(chance.randrange(2, 9)), lines[at]), *lines[at + 1 :]]


def dtypes(lines: Lines, chance: random.Random) -> Lines:
    at = _one(lines, r"  where: \{", chance)
    return [
        *lines[:at],
        re.sub(r": \w+\}", f": {chance.choice(('float', 'any', 'number'))}}}", lines[at]),
        *lines[at + 1 :],
    ]


def unbound(lines: Lines, chance: random.Random) -> Lines:
    """An operator of PyTorch without a function."""
    at = _one(lines, r"  aten: \w", chance)
    return [*lines[:at], *lines[at + 1 :]]


def rule(lines: Lines, chance: random.Random) -> Lines:
    """What the vendor lacks."""
    at = _one(lines, r".*(NHWC|NCHW|float16)", chance)
    other = {"NHWC": "NCHW", "NCHW": "NHWC", "float16": "float64"}
    return [*lines[:at], re.sub("NHWC|NCHW|float16", lambda word: other[word[0]], lines[at]), *lines[at + 1 :]]


def comment(lines: Lines, chance: random.Random) -> Lines:
    return [*lines[: (at := _one(lines, r"\w", chance))], f"# {chance.randrange(1000)}", *lines[at:]]


def misspelt(lines: Lines, chance: random.Random) -> Lines:
    at = _one(lines, r"  \w+:", chance)
    return [*lines[:at], lines[at].replace(":", "s:", 1), *lines[at + 1 :]]


def unsound(lines: Lines, chance: random.Random) -> Lines:
    """A case with an argument that there is not."""
    at = _one(lines, r"    - \{", chance)
    return [*lines[:at], lines[at].replace("{", "{nothing: 1, ", 1), *lines[at + 1 :]]


def _one(lines: Lines, form: str, chance: random.Random) -> int:
    return chance.choice([at for at, line in enumerate(lines) if re.match(form, line)])


Edit = Callable[[Lines, random.Random], Lines]
OF_OPS: tuple[Edit, ...] = (
    *(doc, kernel, sizes, repeated, comment, default, dtypes, unbound),
    *(removed, misspelt, unsound),
)
OF_OTHERS: dict[str, tuple[Edit, ...]] = {
    "schemas/patterns.yaml": (doc, comment, misspelt),
    "vendors/chip/convert_config.yaml": (rule, comment),
}


class Runs:
    """A project that is generated again and again, once with what was kept and once without."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.folder, self.patch, self.capture = folder, patch, capture
        self.project: Project = lay_out(folder / "project")
        self.numbers: Iterator[int] = iter(range(1000))

    def run(self, name: str) -> tuple[int, str, dict[str, bytes]]:
        """The exit code, the findings and the files; `name` is that of the cache and of the output folder."""
        self.patch.setenv("DIOPIGEN_CACHE_DIR", str(self.folder / f"{name}-cache"))
        out = self.folder / name
        request = Request(contract=True, wrappers=True, targets=tuple(VENDOR_TARGETS), vendor="chip", out=out)
        code = generate(self.project, request)
        found = self.capture.readouterr().err
        paths = (path for path in out.rglob("*") if path.is_file() and path.name not in _OF_A_PLACE)
        return code, found, {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}

    def anew(self) -> tuple[int, str, dict[str, bytes]]:
        """Of what earlier runs kept only torch's schemas are there, which no edit changes."""
        name = f"anew{next(self.numbers)}"
        (self.folder / f"{name}-cache").mkdir()
        for path in (self.folder / "kept-cache").glob("aten-*"):
            shutil.copy(path, self.folder / f"{name}-cache")
        found = self.run(name)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.rmtree(self.folder / f"{name}-cache")
        return found


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, monkeypatch, capsys)


_MORE = pytest.mark.deep("fuzz", "the edits of the first seed")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=_MORE) for seed in range(1, 12))])
def test_edit_upon_edit(runs: Runs, seed: int) -> None:
    chance = random.Random(seed)
    assert runs.run("kept")[0] == 0
    ops = {file: OF_OPS for file in sorted((runs.project.schemas / "ops").glob("*.yaml"))}
    files = ops | {runs.project.root / name: edits for name, edits in OF_OTHERS.items()}
    codes = []
    while len(codes) < EDITS:
        path = chance.choice(list(files))
        before = path.read_text(encoding="utf-8")
        edit = chance.choice(files[path])
        try:
            after = "\n".join(edit(before.splitlines(), chance)) + "\n"
        except IndexError:  # no such line in this file
            continue
        if after == before:  # and a run with nothing to do tells nothing
            continue
        path.write_text(after, encoding="utf-8")
        code, found, written = runs.run("kept")
        code_anew, found_anew, written_anew = runs.anew()
        assert (code, found) == (code_anew, found_anew), edit.__name__
        if code == 0:
            assert written == written_anew, edit.__name__
        else:
            path.write_text(before, encoding="utf-8")
        codes.append(code)
    assert codes.count(0) >= EDITS // 4 and 1 in codes


@pytest.mark.parametrize("edit", [doc, kernel, sizes])
def test_what_an_entry_alone_says_is_replaced_and_no_pass_runs(runs: Runs, edit: Edit) -> None:
    assert runs.run("kept")[0] == 0
    path = next(p for p in sorted((runs.project.schemas / "ops").glob("*.yaml")) if _fits(edit, p))
    before = path.read_text(encoding="utf-8")
    sound = 0
    for number in range(6):
        path.write_text("\n".join(edit(before.splitlines(), random.Random(number))) + "\n", encoding="utf-8")
        expected = runs.anew()
        if expected[0] == 0:
            sound += 1
            with runs.patch.context() as patch:
                patch.setattr(pipeline, "run", None)
                assert runs.run("kept") == expected
    assert sound > 1


@pytest.mark.parametrize("edit", [default, dtypes, unbound, misspelt, unsound])
def test_the_passes_run_where_more_follows(runs: Runs, edit: Edit) -> None:
    assert runs.run("kept")[0] == 0
    _change(runs, edit)
    runs.patch.setattr(pipeline, "run", None)
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        runs.run("kept")


def test_an_output_that_was_edited_by_hand_is_left_as_it_is(runs: Runs) -> None:
    assert runs.run("kept")[0] == 0
    _change(runs, doc)
    output = runs.folder / "kept" / "chip" / "kernels" / "elementwise_activation.cpp"
    output.write_text(f"{output.read_text(encoding='utf-8')}// mine\n", encoding="utf-8")
    code, found, written = runs.run("kept")
    assert code == 1 and f"{output} was edited by hand; nothing is written" in found
    assert written["chip/kernels/elementwise_activation.cpp"].endswith(b"// mine\n")


def test_a_damaged_record_of_the_last_run_is_reported_and_made_anew(runs: Runs) -> None:
    assert runs.run("kept")[0] == 0
    _change(runs, doc)
    last = runs.folder / "kept" / "chip" / ".last.kept"
    last.write_text(last.read_text(encoding="utf-8").replace("doc: ", "dog: "), encoding="utf-8")
    code, found, written = runs.run("kept")
    assert code == 0 and ".last.kept:1:1: warning[damaged-cache]: this cache is damaged and was rebuilt" in found
    _, found_anew, written_anew = runs.anew()
    assert written == written_anew and "damaged" not in found_anew
    _change(runs, kernel)
    assert runs.run("kept") == runs.anew()


def _change(runs: Runs, edit: Edit) -> None:
    path = next(p for p in sorted((runs.project.schemas / "ops").glob("*.yaml")) if _fits(edit, p))
    lines = edit(path.read_text(encoding="utf-8").splitlines(), random.Random(0))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _fits(edit: Edit, path: Path) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        return edit(lines, random.Random(0)) != lines
    except IndexError:  # no such line in this file
        return False


@pytest.mark.parametrize(
    ("edit", "alike"),
    [
        *((edit, True) for edit in (doc, sizes, repeated, comment)),
        *((edit, False) for edit in (kernel, default, dtypes)),
    ],
)
def test_what_code_follows_from(tmp_path: Path, edit: Edit, alike: bool) -> None:
    project = lay_out(tmp_path / "project")
    before = _code_of(project)
    for path in sorted((project.schemas / "ops").glob("*.yaml")):
        try:
            lines = edit(path.read_text(encoding="utf-8").splitlines(), random.Random(0))
        except IndexError:  # no such line in this file
            continue
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert (_code_of(project) == before) is alike


def _code_of(project: Project) -> object:
    """What keys of kept code are made of."""
    program = pipeline.run(project, Diagnostics())
    assert program is not None
    return program.bare().said


def test_a_damaged_file_of_kept_results_is_made_anew(runs: Runs) -> None:
    written = runs.run("kept")[2]
    cases = runs.folder / "kept-cache" / "cases.kept"
    cases.write_text(cases.read_text(encoding="utf-8").replace("f32", "f64"), encoding="utf-8")
    path = next((runs.project.schemas / "ops").glob("*.yaml"))
    path.write_text(f"# edited\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    code, found, again = runs.run("kept")
    assert code == 0 and "cases.kept:1:1: warning[damaged-cache]: this cache is damaged and was rebuilt" in found
    assert again["chip/conformance/plan.json"] == written["chip/conformance/plan.json"]
    assert "damaged" not in runs.anew()[1]
