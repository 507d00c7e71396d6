"""Stand-alone files: they show the fault of a library, in Python and in C, and find nothing in a right one."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.cli import cli
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import prepare
from diopi_conformance.process.worker_pool import Libraries
from diopi_conformance.repro.writer import Destination, write_files

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = ROOT / "generated" / "include"

SECOND = "FAILS: so it is in the second call, on other bytes in memory that nobody wrote"

Repro = Callable[..., Result]


@pytest.fixture
def repro(plan_path: Path, runtime: Path, tmp_path: Path) -> Repro:
    """Runs the command with the library that was compiled last."""

    def run(case_id: str, *options: str) -> Result:
        words = ["repro", case_id, "--vendor", "v", "--plan", str(plan_path), "--runtime", str(runtime)]
        words += ["--libraries", str(tmp_path), "--include", str(INCLUDE), "--out", str(tmp_path / "out"), *options]
        return CliRunner().invoke(cli, words)

    return run


def alone(*command: str | Path) -> tuple[int, str]:
    """Exit code and output of a program that gets nothing from the tests' environment."""
    done = subprocess.run(
        [str(word) for word in command], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def programs(folder: Path, stem: str) -> list[tuple[str | Path, ...]]:
    """The two stand-alone programs as commands; the C file compiles without a word."""
    source, program = folder / f"{stem}.c", folder / stem
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]
    done = subprocess.run(
        ["gcc", *flags, f"-I{INCLUDE}", str(source), "-o", str(program), "-ldl", "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return [(sys.executable, "-I", "-S", folder / f"{stem}.py"), (program,)]


@pytest.mark.parametrize(
    ("fault", "case_id", "says", "size"),
    [
        ("writes_zeros", "neg/f32/0", r"FAILS: out(\[0(, 0)*\])? is -?0(\.0)?, expected .* \(1 of 1 are wrong\)", "[]"),
        ("drops_tail", "neg/f32/1", r"FAILS: out(\[0\])? is .*, expected .* \(1 of 1 are wrong\)", "[]"),
        ("zeroes_third", "neg/f32/1", r"FAILS: out\[2\] is -?0(\.0)?, expected .* \(1 of 3 are wrong\)", "[3]"),
        ("ignores_strides", "neg/f32/strided/one/1", r"FAILS: .*out", None),
        ("writes_behind", "neg/f32/0", r"FAILS: bytes around 'out' were overwritten", None),
        ("changes_input", "neg/f32/0", r"FAILS: 'input' was changed, at storage element 0", None),
        ("returns_status", "neg/f32/0", r"FAILS: status 1\b.*", None),
        ("reads_temporary", "neg/f32/0", rf"FAILS: out.*\n{SECOND}$", None),
        ("reads_output", "neg/f32/0", rf"FAILS: out.*\n{SECOND}$", None),
        ("fails_on_other_bytes", "neg/f32/0", rf"FAILS: status 1\b.*\n{SECOND}$", None),
        ("crashes", "neg/f32/0", r"FAILS: killed by (SIGSEGV|signal 11)", None),
        ("exits", "neg/f32/0", r"FAILS: the process ended with code 0", None),
    ],
)
def test_both_files_show_the_fault_and_that_it_is_mended(
    fault: str, case_id: str, says: str, size: str | None, repro: Repro, faulty: Callable[[str], Path], tmp_path: Path
) -> None:
    faulty(fault)
    found = repro(case_id)
    assert found.exit_code == 1, found.output
    assert "warning" not in found.output
    stem = case_id.replace("/", "_")
    texts = [(tmp_path / "out" / f"{stem}{suffix}").read_text(encoding="utf-8") for suffix in (".py", ".c")]
    assert not any("diopi_conformance" in line for text in texts for line in text.splitlines() if "import" in line)
    if size is not None:
        assert f"sizes={size}" in texts[0]
    both = programs(tmp_path / "out", stem)
    for program in both:
        code, text = alone(*program)
        assert code == 1 and re.match(says, text), text
    faulty("none")
    assert [alone(*program) for program in both] == [(0, "right\n")] * 2


def test_a_hang_is_shown_in_time(repro: Repro, faulty: Callable[[str], Path], tmp_path: Path) -> None:
    faulty("hangs")
    found = repro("neg/f32/0", "--timeout", "1", "--no-shrink")
    assert found.exit_code == 1 and "timeout: no answer in 1 s" in found.output
    for program in programs(tmp_path / "out", "neg_f32_0"):
        assert alone(*program) == (1, "FAILS: no answer in 1 s\n")


def test_libraries_are_arguments_and_variables(
    repro: Repro, faulty: Callable[[str], Path], runtime: Path, tmp_path: Path
) -> None:
    vendor = faulty("none")
    assert repro("neg/f32/0", "--force").exit_code == 0
    (tmp_path / "elsewhere.so").write_bytes(vendor.read_bytes())
    vendor.unlink()
    for program in programs(tmp_path / "out", "neg_f32_0"):
        code, text = alone(*program)
        assert code == 2 and text.startswith("the library does not load: ")
        assert alone(*program, runtime, tmp_path / "elsewhere.so") == (0, "right\n")
        assert alone(*program, tmp_path / "no.so")[0] == 2
        words = [str(word) for word in program]
        environment = {"DIOPI_LIBRARY": str(tmp_path / "elsewhere.so"), "PATH": os.environ["PATH"]}
        assert subprocess.run(words, env=environment, capture_output=True, check=False).returncode == 0


def test_what_passes_is_not_written_unless_asked_for(
    repro: Repro, faulty: Callable[[str], Path], tmp_path: Path
) -> None:
    faulty("none")
    found = repro("neg/f32/0")
    assert (found.exit_code, found.output.startswith("pass: ")) == (0, True)
    assert not (tmp_path / "out").exists()
    assert "neg_f32_0.py says: right" in repro("neg/f32/0", "--force").output
    lacking = repro("sin/f32/0", "--force")
    assert (lacking.exit_code, lacking.output) == (0, "not-implemented: the library has no such function\n")


def test_the_numbers_are_those_of_the_seed(repro: Repro, faulty: Callable[[str], Path], tmp_path: Path) -> None:
    faulty("none")
    texts = []
    for seed in ("0", "1", "1"):
        assert repro("neg/f32/0", "--force", "--seed", seed).exit_code == 0
        texts.append((tmp_path / "out" / "neg_f32_0.py").read_text(encoding="utf-8"))
    assert texts[0] != texts[1] == texts[2]


def test_the_steps_are_told(repro: Repro, faulty: Callable[[str], Path]) -> None:
    faulty("zeroes_third")
    lines = repro("neg/f32/transposed/1").output.splitlines()
    assert re.match(r"fail: out\[.*\] is -?0, expected ", lines[0])
    assert lines[1] == "from f32 transposed, input 3x4x5"
    assert lines[2] == "  to f32, input 3x4x5"
    assert "  to f32, input 3" in lines
    assert re.fullmatch(r"\d+ simpler cases tried; the smallest: out\[2\] is .*", lines[-3])
    limited = repro("neg/f32/transposed/1", "--attempts", "1").output
    assert "  the limit is reached; there may be a smaller one\n" in limited


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("neg/f32/7",), "there is no case 'neg/f32/7'; did you mean 'neg/f32/"),
        (("negg/f32/0",), "there is no case 'negg/f32/0'; did you mean 'neg/"),
        (("neg/f32/0", "--libraries", "/nowhere"), "there is no /nowhere/libdiopi_impl.so; build it"),
        (("neg/f32/0", "--plan", "/nowhere"), "there is no plan at /nowhere"),
    ],
)
def test_wrong_usage_ends_in_a_sentence(
    words: tuple[str, ...], says: str, repro: Repro, faulty: Callable[[str], Path]
) -> None:
    faulty("none")
    found = repro(*words)
    assert (found.exit_code, says in " ".join(found.output.split())) == (2, True), found.output


def test_what_a_library_says_cannot_end_a_comment(
    plan: CasePlan, runtime: Path, faulty: Callable[[str], Path], tmp_path: Path
) -> None:
    vendor = faulty("none")
    case = next(case for case in plan.cases if case.id == "neg/f32/0")
    hostile = 'oops */ int main(void) { """ \\ \n #error x ??/ é */'
    place = Destination(
        folder=tmp_path, libraries=Libraries(runtime=runtime, vendor=vendor), include=INCLUDE, seconds=5
    )
    outcome = Outcome(id=case.id, function=case.function, op="neg", verdict=Verdict.FAIL, message=hostile)
    write_files(plan, prepare(plan, case), outcome, place)
    assert [alone(*program) for program in programs(tmp_path, "neg_f32_0")] == [(0, "right\n")] * 2
