"""Any change of one declaration in an older header is found, and nothing else is: 200 random changes a round."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostic, Diagnostics
from diopigen.model.interface import Interface
from diopigen.passes.compat.interfaces import compare_interfaces
from diopigen.project import Project
from diopigen.source.cpp.c_interface import read_interface
from diopigen.source.cpp.interface_record import read_record, record_text
from diopigen.targets import header
from diopigen.targets.output import renderer

DECLARATION = re.compile(
    r"(?P<linkage>(?:extern )?DIOPI_\w+ (?:DIOPI_ATTR_WEAK )?)diopiError_t (?P<name>diopi\w+)\((?P<params>[^;]*)\);"
)
ENUMERATOR = re.compile(r"    (?P<name>\w+) = (?P<value>\d+), /\*\*<")
TYPES = (
    "diopiSize_t",
    "double",
    "bool",
    "int32_t",
    "const char*",
    "diopiReduction_t",
    "diopiTensorHandle_t*",
    "const uint8_t*",
)
CHANGES_A_ROUND = 200
ENUMERATORS_A_ROUND = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    header: str
    text: str  # as it stands in the header
    linkage: str  # e.g. "DIOPI_API ", "extern DIOPI_RT_API DIOPI_ATTR_WEAK "
    name: str
    params: tuple[str, ...]  # e.g. ("diopiContextHandle_t ctx", "diopiTensorHandle_t out")

    def with_params(self, *params: str) -> str:
        return f"{self.linkage}diopiError_t {self.name}({', '.join(params)});"


# A change gives the text of the older declaration, and the code and words of what must be said about it.
Change = tuple[str, str, str]


def drop(of: Declaration, rng: random.Random) -> Change:
    at = rng.randrange(1, len(of.params))
    text = of.with_params(*of.params[:at], *of.params[at + 1 :])
    return text, "compat-parameters", f"'{of.name}' takes '{of.params[at]}' after"


def add(of: Declaration, rng: random.Random) -> Change:
    at = rng.randrange(1, len(of.params) + 1)
    text = of.with_params(*of.params[:at], f"{rng.choice(TYPES)} formerly", *of.params[at:])
    return text, "compat-parameters", f"'{of.name}' no longer takes 'formerly'"


def swap(of: Declaration, rng: random.Random) -> Change:
    one, other = sorted(rng.sample(range(1, len(of.params)), 2))
    params = list(of.params)
    params[one], params[other] = params[other], params[one]
    return of.with_params(*params), "compat-parameters", f"'{of.name}' takes its parameters in another order"


def retype(of: Declaration, rng: random.Random) -> Change:
    at = rng.randrange(len(of.params))
    type_, _, name = of.params[at].rpartition(" ")
    other = rng.choice([t for t in TYPES if t not in (type_, type_.removeprefix("const "))])
    text = of.with_params(*of.params[:at], f"{other} {name}", *of.params[at + 1 :])
    return text, "compat-type", f"'{name}' of '{of.name}' is '{type_}' now"


def lose_const(of: Declaration, rng: random.Random) -> Change:
    at = rng.choice(constants(of))
    type_, _, name = of.params[at].rpartition(" ")
    other = type_.removeprefix("const ").replace("diopiConst", "diopi")
    text = of.with_params(*of.params[:at], f"{other} {name}", *of.params[at + 1 :])
    return text, "compat-type", f"'{name}' of '{of.name}' is '{type_}' now"


def constants(of: Declaration) -> list[int]:
    """Which parameters point at something constant; the const of a value itself means nothing to a caller."""
    return [at for at, p in enumerate(of.params) if p.startswith("diopiConst") or (p.startswith("const ") and "*" in p)]


def rename(of: Declaration, rng: random.Random) -> Change:
    at = rng.randrange(len(of.params))
    type_, _, name = of.params[at].rpartition(" ")
    text = of.with_params(*of.params[:at], f"{type_} once_{name}", *of.params[at + 1 :])
    return text, "compat-renamed", f"'once_{name}' of '{of.name}' is called '{name}' now"


def remove(of: Declaration, rng: random.Random) -> Change:
    """The older header has a function that is gone: ours under another name."""
    return of.text.replace(of.name, f"{of.name}Formerly"), "compat-removed", f"'{of.name}Formerly' no longer exists"


def other_return(of: Declaration, rng: random.Random) -> Change:
    return of.text.replace("diopiError_t", "int64_t", 1), "compat-type", f"'{of.name}' now returns 'diopiError_t'"


def strengthen(of: Declaration, rng: random.Random) -> Change:
    return of.text.replace("DIOPI_API", "DIOPI_RT_API", 1), "compat-linkage", f"'{of.name}' is weak now"


CHANGES: tuple[Callable[[Declaration, random.Random], Change], ...] = (
    drop,
    add,
    swap,
    retype,
    lose_const,
    rename,
    remove,
    other_return,
    strengthen,
)


def applies(change: Callable[[Declaration, random.Random], Change], to: Declaration) -> bool:
    if change is drop:
        return len(to.params) > 1
    if change is swap:
        return len(to.params) > 2
    if change is strengthen:
        return to.linkage == "DIOPI_API "
    if change is lose_const:
        return bool(constants(to))
    return True


@pytest.fixture(scope="module")
def texts(checkout: Project) -> dict[str, str]:
    """The contract's headers by their names."""
    program = pipeline.run(checkout, Diagnostics())
    assert program is not None
    return {Path(o.path).name: o.text for o in header.outputs(program, renderer(checkout.templates))}


def read(texts: dict[str, str], folder: Path) -> Interface:
    (folder / "diopi").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "diopi" / name).write_text(text, encoding="utf-8")
    diagnostics = Diagnostics()
    interface = read_interface(sorted((folder / "diopi").glob("*.h")), [folder], lambda path: path.name, diagnostics)
    assert interface is not None, diagnostics.found
    return interface


def declarations(texts: dict[str, str]) -> Iterator[Declaration]:
    for name, text in texts.items():
        for match in DECLARATION.finditer(text):
            params = tuple(" ".join(param.split()) for param in match["params"].split(","))
            if all(
                param.rpartition(" ")[2].isidentifier() for param in params
            ):  # a parameter without a name has nothing to rename
                yield Declaration(
                    header=name, text=match[0], linkage=match["linkage"], name=match["name"], params=params
                )


def found(old: Interface, new: Interface) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    compare_interfaces(old, new, diagnostics)
    return [d for d in diagnostics.found if d.code != "compat-added"]


@pytest.mark.parametrize("seed", range(5))
def test_every_change_of_a_function_is_found_and_nothing_else(seed: int, texts: dict[str, str], tmp_path: Path) -> None:
    rng = random.Random(seed)
    changed, expected = dict(texts), []
    for declaration in rng.sample(list(declarations(texts)), CHANGES_A_ROUND):
        change = rng.choice([c for c in CHANGES if applies(c, declaration)])
        text, code, words = change(declaration, rng)
        assert changed[declaration.header].count(declaration.text) == 1
        changed[declaration.header] = changed[declaration.header].replace(declaration.text, text)
        expected.append((code, words))
    findings = found(read(changed, tmp_path / "old"), read(texts, tmp_path / "new"))
    missed = [(c, w) for c, w in expected if not any(d.code == c and d.message.startswith(w) for d in findings)]
    assert not missed
    assert len(findings) == len(expected)


@pytest.mark.parametrize("seed", range(3))
def test_every_change_of_an_enum_is_found(seed: int, texts: dict[str, str], tmp_path: Path) -> None:
    rng = random.Random(seed)
    enumerators = list(ENUMERATOR.finditer(texts["diopirt.h"]))
    text, expected = texts["diopirt.h"], []
    for match in rng.sample(enumerators, ENUMERATORS_A_ROUND):
        name, value = match["name"], int(match["value"])
        if rng.random() < 0.5:
            text = text.replace(match[0], match[0].replace(f"= {value},", f"= {value + 100},"))
            expected.append(("compat-value", f"'{name}' is {value} now, and was {value + 100}"))
        else:
            text = text.replace(match[0], match[0].replace(name, f"{name}Formerly"))
            expected.append(("compat-removed", f"{name}Formerly"))
    findings = found(read(texts | {"diopirt.h": text}, tmp_path / "old"), read(texts, tmp_path / "new"))
    assert len(findings) == len(expected)
    for code, words in expected:
        assert any(d.code == code and words in d.message for d in findings), words


def test_equal_headers_have_no_difference(texts: dict[str, str], tmp_path: Path) -> None:
    old, new = read(texts, tmp_path / "old"), read(texts, tmp_path / "new")
    diagnostics = Diagnostics()
    compare_interfaces(old, new, diagnostics)
    assert not diagnostics.found


def test_a_record_holds_all_of_the_contract(texts: dict[str, str], tmp_path: Path) -> None:
    interface = read(texts, tmp_path / "new")
    record = tmp_path / "contract.record"
    record.write_text(record_text(interface), encoding="utf-8")
    diagnostics = Diagnostics()
    again = read_record(record, "contract.record", diagnostics)
    assert again is not None
    assert record_text(again) == record.read_text(encoding="utf-8")
    compare_interfaces(again, interface, diagnostics)
    assert not diagnostics.found
