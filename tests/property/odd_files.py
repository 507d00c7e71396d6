"""Files that somebody mangled: each kind that a person writes or a program keeps, changed with knowledge of its form.

`python -m tests.property.odd_files --seconds 3600` tries them until the time is over; `--seed 17` tries one again. A
command must end as docs/exit-codes.md says, without a traceback, within ten seconds; of a project that passes lint the
headers must compile.
"""

import argparse
import copy
import json
import math
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 10.0  # that a command may take

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 255, 2**31, -(2**63), 2**64, 10**199, 1.5, -0.0, math.nan, math.inf, 1e308),
    *("", " ", "*/", "/*", "\\", '"', "\n", "\t", "%", "{", "}", "[", "<", "&x", "*x", "!x", "#", ":", "- ", "?", "~"),
    *("é", "\U0001f600", "\x7f", "\u2028", "a" * 300, "../..", "/", "/dev/zero", "~/x", "0x", "1e", "-", "null", "no"),
    *("int", "class", "this", "NULL", "assert", "errno", "T", "U", "f32", "tf32", "c64", "any", "bool", "out", "self"),
    *(
        "input",
        "ctx",
        "Tensor<T>",
        "Tensor<T>[]",
        "Tensor<tf32>",
        "Tensor<promote(T, f32)>?",
        "Scalar",
        "str",
        "int[2]",
    ),
    *("Generator", "inout Tensor<T>", "new Tensor<T>", "host Tensor<T>", "Tensor<T> like input", "x" * 5000),
    *("Tensor<T> like shape(size(input, -9))", "Tensor<T> like shape(size(input, 0) * 0)", "1 / 0", "f(f(f(f(f))))"),
    *(
        [],
        {},
        [[]],
        [{}],
        {"": 1},
        {"a": {"b": {"c": []}}},
        [0],
        [-1],
        [None],
        [10**12],
        list(range(70)),
        [[1], [2, 3]],
    ),
)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_STRAY = "\x00\x01\t\n\ufeff\u2028\u0085[]{}:,&*!|>%@`\"'#-?\\ é\U0001f600"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A file of the project, and a command that reads it; `codes` are those that it may end with."""

    path: str
    command: tuple[str, ...] = ("lint", "--vendor", "chip")
    codes: tuple[int, ...] = (0, 1)
    json: bool = False


_ALL = ("all", "--vendor", "chip")
_PLAN = ("plan", "--vendor", "chip", "--plan", "{root}/generated/chip/conformance/plan.json")
_REPORT = ("report", "{root}/conformance_results/chip.json", "--html", "{root}/page.html")
_COVERAGE = ("coverage", "--vendor", "chip")
KINDS = (
    *(Kind(path=f"schemas/ops/{name}.yaml") for name in ("activation", "arithmetic", "reduction", "shape", "window")),
    Kind(path="schemas/patterns.yaml"),
    Kind(path="schemas/runtime.yaml"),
    Kind(path="schemas/dtypes.yaml"),
    Kind(path="vendors/chip/vendor.yaml"),
    Kind(path="vendors/chip/convert_config.yaml"),
    Kind(path="schemas/ops/shape.yaml", command=("fmt", "--check")),
    Kind(path="vendors/chip/convert_config.yaml", command=("fmt", "--check")),
    Kind(path="generated/MANIFEST.json", command=_ALL, json=True),
    Kind(path="generated/chip/MANIFEST.json", command=_ALL, json=True),
    Kind(path="generated/chip/.fresh.json", command=_ALL, json=True),
    Kind(path="generated/chip/.last.kept", command=_ALL),
    Kind(path="conformance_results/chip.json", command=_COVERAGE, codes=(0, 2), json=True),
    Kind(path="conformance_results/chip.json", command=_REPORT, codes=(0, 1, 2), json=True),
    Kind(path="generated/chip/conformance/plan.json", command=_PLAN, codes=(0, 2), json=True),
    Kind(path="known_failures.yaml", command=("known",), codes=(0, 2)),
    Kind(path="conformance_results/chip.journal", command=("journal",), codes=(0, 2)),
    Kind(path="contract.record", command=("compat", "--against", "{root}/contract.record"), codes=(0, 1, 2)),
)
_KNOWN = "- id: add/f32/*\n  verdict: fail\n  reason: sums are kept in half precision\n  expires: 2999-03-31\n"


def lay_out(root: Path) -> None:
    """A small project that is in order, with all that programs keep in it."""
    shutil.copytree(ROOT / "tests" / "golden" / "project", root)
    for name in ("dtypes.yaml", "runtime.yaml"):
        shutil.copy(ROOT / "schemas" / name, root / "schemas" / name)
    for name in ("templates", "generators", "runtime_cpp/torch", "runtime_cpp/adaptor"):
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "runtime_cpp" / "kernels" / "core", root / "runtime_cpp" / "kernels" / "core")
    _keep_results(root / "conformance_results")
    (root / "known_failures.yaml").write_text(_KNOWN, encoding="utf-8")
    for words in (_ALL, ("compat", "--save", str(root / "contract.record"))):
        code, said = called(root, words)
        assert code == 0, said


def _keep_results(folder: Path) -> None:
    """A report and the journal of a run that was broken off."""
    from diopi_conformance.outcome import Outcome, Verdict
    from diopi_conformance.report import Report, write_report
    from diopi_conformance.report.model import Axes
    from diopi_conformance.running.journal import Journal
    from diopigen.records.codec import typed

    facts = {"function": "diopiAdd", "op": "add", "ulp": 0.5, "error": math.inf}
    outcomes = tuple(
        typed(Outcome, {**facts, "id": f"add/f32/{n}", "verdict": verdict, "index": (0, n)})
        for n, verdict in enumerate((Verdict.PASS, Verdict.FAIL))
    )
    axes = {outcome.id: Axes(family="arithmetic", elements="f32") for outcome in outcomes}
    write_report(Report(vendor="chip", planned=2, outcomes=outcomes, axes=axes), folder / "chip.json")
    Journal(folder / "chip.journal", _run(), {outcome.id: outcome for outcome in outcomes})


def _run() -> Any:
    from diopi_conformance.running.journal import Identity

    return Identity(vendor="chip", plan="p", suite="s", library="l", variant={"seed": 0})


def called(root: Path, words: tuple[str, ...]) -> tuple[int, str]:
    """How a command of this process ends, and what it says."""
    from click.testing import CliRunner

    from diopi_conformance.cli import cli as conformance
    from diopigen.cli import cli

    given = [word.format(root=root) for word in words]
    match words[0]:
        case "known" | "journal":
            return _read(root, words[0])
        case "plan" | "report":
            result = CliRunner().invoke(conformance, given, prog_name="diopi-conformance")
        case _:
            result = CliRunner().invoke(cli, ["--project", str(root), *given], prog_name="diopigen")
    return result.exit_code, result.output


def _read(root: Path, what: str) -> tuple[int, str]:
    """What only a run with a vendor's library reads."""
    from diopi_conformance.cases.plan import read_plan
    from diopi_conformance.running.journal import JournalError, resumed
    from diopi_conformance.running.known_failures import KnownError, read_known

    try:
        if what == "known":
            plan = read_plan(root / "generated" / "chip" / "conformance" / "plan.json")
            read_known(root / "known_failures.yaml", plan.cases, date.today())
        else:
            resumed(root / "conformance_results" / "chip.journal", _run())
    except (KnownError, JournalError) as error:
        return 2, str(error)
    return 0, ""


def mangled(text: str, rng: random.Random, kind: Kind, words: list[str]) -> str:
    """`text` with one to three changes, in its form or in its characters."""
    if kind.path.endswith((".record", ".journal", ".kept")) or rng.random() < 0.25:
        for _ in range(rng.randint(1, 3)):
            text = _scratched(text, rng)
        return text
    tree = [json.loads(text) if kind.json else yaml.load(text, Loader=yaml.CSafeLoader)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _changed(tree, rng, words)
    return (
        json.dumps(tree[0])
        if kind.json
        else yaml.dump(tree[0], Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)
    )


def _scratched(text: str, rng: random.Random) -> str:
    at = rng.randint(0, len(text))
    end = min(len(text), at + rng.choice((1, 2, 20, 300)))
    match rng.randrange(5):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + text[end:]
        case 2:
            return text[:at] + text[at:end] * rng.choice((2, 3, 500)) + text[end:]
        case 3:
            return text[:at] + rng.choice(("[", "{a: ", "- ", "(")) * rng.choice((1, 60, 5000)) + text[at:]
        case _:
            return text[:at] + rng.choice(_STRAY) + text[at:]


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with a key or index of it."""
    pending = [tree]
    while pending:
        holder = pending.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                pending.append(holder[key])


def _changed(tree: list[Any], rng: random.Random, words: list[str]) -> None:
    places = list(_places(tree))
    if not places:
        return
    holder, key = rng.choice(places)
    value = holder[key]
    other_holder, other_key = rng.choice(places)
    odd = rng.choice((rng.choice(ODD), copy.deepcopy(other_holder[other_key]), rng.choice(words)))
    if isinstance(value, str) and rng.random() < 0.5:
        holder[key] = _edited(value, rng, words)
        return
    match rng.randrange(5):
        case 0 if holder is not tree:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(value))
        case 1:
            holder[rng.choice(words)] = odd
        case 2 if isinstance(holder, dict):
            renamed = rng.choice(words) if rng.random() < 0.7 else str(rng.choice(ODD))
            entries = [(renamed if name == key else name, held) for name, held in holder.items()]
            holder.clear()
            holder.update(entries)
        case _:
            holder[key] = copy.deepcopy(odd)


def _edited(text: str, rng: random.Random, words: list[str]) -> str:
    tokens = _TOKEN.findall(text) or [text]
    at = rng.randrange(len(tokens))
    match rng.randrange(4):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, rng.choice(words))
        case 2:
            tokens[at] = rng.choice((rng.choice(words), str(rng.choice(ODD))))
        case _:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
    return " ".join(tokens)


class Fuzzer:
    """A project, and what becomes of it when one of its files is mangled."""

    def __init__(self, root: Path) -> None:
        self.root = root
        lay_out(root)
        self.texts = {kind.path: (root / kind.path).read_text(encoding="utf-8") for kind in KINDS}
        self.words = sorted({word for text in self.texts.values() for word in _TOKEN.findall(text)[:3000]})

    def fault(self, seed: int, part: str = "") -> str | None:
        """What is wrong with the answer to the file of this seed; None where nothing is."""
        return self.answer(
            seed, [kind for kind in KINDS if part in kind.path], lambda kind: apart(lambda: self._answer(kind))
        )

    def answer(self, seed: int, kinds: Sequence[Kind], ask: Callable[[Kind], str]) -> str | None:
        """What `ask` finds while the file of this seed lies in the project, which is kept then; None for nothing."""
        rng = random.Random(seed)
        kind = rng.choice(kinds)
        text = mangled(self.texts[kind.path], rng, kind, self.words)
        path = self.root / kind.path
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            found = ask(kind)
        finally:
            path.write_text(self.texts[kind.path], encoding="utf-8")
        if found:
            shown = Path(tempfile.gettempdir()) / f"odd-{seed}-{path.name}"
            shown.write_bytes(text.encode("utf-8", "surrogatepass"))
            return f"seed {seed}: {kind.path} as {shown}: {' '.join(kind.command)}: {found}"
        return None

    def _answer(self, kind: Kind) -> str:
        begin = time.monotonic()
        code, said = called(self.root, kind.command)
        took = time.monotonic() - begin
        if code not in kind.codes:
            return f"exit code {code}: {said[-2000:]}{kept_traceback(said)}"
        if took > SECONDS:
            return f"it took {took:.1f} s"
        return header_complaints(self.root) if code == 0 and kind.command[0] == "lint" else ""


def kept_traceback(said: str) -> str:
    """The end of the traceback that a command kept, which is removed; empty where there is none."""
    path = re.search(r"the traceback is in (\S+);", said)
    if path is None:
        return ""
    text = Path(path[1]).read_text(encoding="utf-8")
    Path(path[1]).unlink()
    return "\n" + text[-1500:]


def header_complaints(root: Path) -> str:
    """What compilers say of the headers of a project that passes lint."""
    with tempfile.TemporaryDirectory() as folder:
        code, said = called(root, ("header", "--out", folder))
        if code != 0:
            return f"it passes lint, and 'header' ends with {code}: {said[-2000:]}{kept_traceback(said)}"
        includes = "".join(f"#include <diopi/{h.name}>\n" for h in sorted(Path(folder, "include", "diopi").glob("*.h")))
        for compiler in (("gcc", "-x", "c", "-std=c11"), ("g++", "-x", "c++", "-std=c++17")):
            flags = (
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-deprecated-declarations",
                f"-I{folder}/include",
                "-fsyntax-only",
            )
            done = subprocess.run([*compiler, *flags, "-"], input=includes, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"it passes lint, and {compiler[0]} says: {done.stderr[:1500]}"
    return ""


def apart(answer: Callable[[], str], seconds: float = 6 * SECONDS) -> str:
    """The answer of a process of its own, which may crash or hang; within so many seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        text = "the process ended"
        try:
            text = answer()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        finally:
            with os.fdopen(writing, "wb") as stream:
                stream.write(text.encode("utf-8", "replace"))
            os._exit(0)
    os.close(writing)
    found = b""
    with os.fdopen(reading, "rb") as stream:
        deadline = time.monotonic() + seconds
        while select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
            piece = os.read(stream.fileno(), 65536)
            if not piece:
                status = os.waitpid(child, 0)[1]
                return found.decode() if status == 0 else f"the process ended with status {status}"
            found += piece
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"no answer within {seconds:g} s"


def main() -> int:
    """The exit code is 1 if a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="how long to go on (3600)")
    parser.add_argument("--only", default="", metavar="PART", help="files whose path has this in it (all)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument(
        "--first", type=int, default=random.SystemRandom().randrange(10**9), help="the first seed (any)"
    )
    options = parser.parse_args()
    end, tried, faults = time.monotonic() + options.seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(Path(folder) / "project")
        while time.monotonic() < end and (options.seed is None or not tried):
            fault = fuzzer.fault(options.first + tried if options.seed is None else options.seed, options.only)
            tried += 1
            if fault is not None:
                faults += 1
                print(fault, flush=True)
    print(f"{tried} files, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
