"""The lab as a running program, and the comparison of what it does with what the model says."""

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.cpp.adaptor.lab.calls import Call, text
from tests.cpp.adaptor.lab.contract import lab_contract
from tests.cpp.adaptor.lab.oracle import Model, Reading
from tests.cpp.adaptor.lab.program import Adaptor, Rules, rules_of
from tests.cpp.adaptor.lab.reading import read
from tests.unit.vendor.small_project import with_vendor

END = "end\n"


@dataclass(frozen=True, slots=True)
class Vendor:
    """One convert_config.yaml: as the generator understands it, and as the document does."""

    config: str
    texts: dict[str, str] = field(compare=False, repr=False)  # the generated sources, by path
    rules: Rules = field(compare=False)
    reading: Reading = field(compare=False)


def vendor(config: str, folder: Path, adaptor: Adaptor) -> Vendor:
    planned, diagnostics = with_vendor(lab_contract(), config, folder)
    assert not diagnostics.failed, (config, diagnostics.found)
    texts = adaptor.texts(planned)
    return Vendor(config, texts, rules_of(texts), read(config))


class Lab:
    """One process that answers calls until it is closed."""

    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([str(program)], stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, lines: str) -> str:
        """The transcript of one call."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(lines)
        self._process.stdin.flush()
        answer = []
        for line in self._process.stdout:
            if line == END:
                return "".join(answer)
            answer.append(line)
        stderr = self._process.stderr
        raise AssertionError(f"the lab ended at\n{lines}\n{'' if stderr is None else stderr.read()}")


def transcripts(program: Path, asked: Iterable[str]) -> tuple[list[str], str]:
    """The answers to many calls by one process, which must end well and leak nothing; and what it complained of."""
    ran = subprocess.run([str(program)], input="".join(asked), capture_output=True, text=True, check=False)
    complaint = ran.stderr if ran.stderr or ran.returncode == 0 else f"exit status {ran.returncode}"
    return ran.stdout.split(END)[:-1], complaint


def difference(call: Call, vendor: Vendor, expected: str, found: str) -> str:
    """What a reader needs to see why."""
    asked = f"{vendor.config}\n{text(call, vendor.rules)}"
    return f"{asked}\n--- docs/adaptor.md says\n{expected}\n--- the adaptor does\n{found}"


def differences(program: Path, calls: Sequence[tuple[Vendor, Call]]) -> list[str]:
    """Every call where the lab and the model disagree; a crash or a leak is one more."""
    found, complaint = transcripts(program, [text(call, vendor.rules) for vendor, call in calls])
    wrong = [complaint] if complaint else []
    for (vendor, call), answer in zip(calls, found, strict=False):
        expected = Model(call, vendor.reading).transcript()
        if expected != answer:
            wrong.append(difference(call, vendor, expected, answer))
    if len(found) < len(calls):
        wrong.append(f"the lab ended at call {len(found)}\n" + text(calls[len(found)][1], calls[len(found)][0].rules))
    return wrong
