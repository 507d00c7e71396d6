"""5,000 changed files of rules: each gives findings with places, or calls that go as the document says."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cpp.adaptor.lab import matrix
from tests.cpp.adaptor.lab.bench import Lab, Vendor, difference
from tests.cpp.adaptor.lab.calls import text
from tests.cpp.adaptor.lab.contract import lab_contract, signatures, words
from tests.cpp.adaptor.lab.oracle import Model
from tests.cpp.adaptor.lab.program import Adaptor, rules_of, statements
from tests.cpp.adaptor.lab.reading import read
from tests.unit.vendor.small_project import with_vendor

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")

EXAMPLES = 5_000
CALLS = 3  # of each file without errors

GOOD = (
    """\
- common_config:
    dtype: (int64)->int32, (float64)->float32
    layout: NCHW
- diopiConvolution2d:
    dtype: (float16, bfloat16)->float32
    tensor_dtype: {bias: (float16)->float32}
    layout: NHWC, weight(NCHW)
- ops: [diopiAdd, diopiAddInp]
  dtype: (bool)->uint8
- diopiSgd: {contiguous: true, supportComposite: false}
""",
    """\
- common_config:
    dtype:
      - (float64)->float32
      - (int64)->int32, (bool)->uint8
    contiguous: true
- diopiEverything:
    tensor_dtype: input:(float64)->float16 states:(int64)->int16, (float64)->float32
    layout: NDHWC, NHWC, NCHW, state(NCL, NCHW), outs(ND)
    contiguous: false
    supportComposite: true
- ops: [diopiLayered, diopiPool]
  layout: NLC, NHWC
  contiguous: [input, out]
""",
    """\
- diopiEverything:
    dtype: (complex128)->complex64, (uint16)->int32
    tensor_dtype:
      found: (float64)->float32
      input: (float64)->float32
      tensors: (float64)->float16
    layout: [NCHW, 'input(NHWC)']
    contiguous: scratch, tensors
- diopiMomentum: {layout: 'params(NHWC), grads(NCHW)', dtype: '(float64)->float32'}
- diopiDistinct: {tensor_dtype: {positions: (int64)->int32}}
- diopiMaskedSelect: {dtype: '(bool)->uint8, (int64)->int32', implementation: recorder}
- common_config: {layout: 'NHWC, NCHW', dtype: (float64)->float32}
- diopiArgmax:
    dtype: (int8)->int32
    layout: ND
- diopiPick:
  dtype: none
  contiguous: true
""",
)

KEYS = ("dtype", "tensor_dtype", "layout", "contiguous", "supportComposite", "implementation", "ops")
FUNCTIONS = ("common_config", *signatures())
LAYOUTS = ("NCL", "NLC", "NCHW", "NHWC", "NCDHW", "NDHWC", "ND")
ARGUMENTS = tuple(dict.fromkeys(p.name for s in signatures().values() for p in s.parameters))
VALUES = (words(), LAYOUTS, ("true", "false"))
NAMES = (KEYS, FUNCTIONS, ARGUMENTS, ("{", "["), ("}", "]"), (",", " "))
SPARE = (
    "",
    ":",
    "-",
    "(",
    ")",
    "->",
    ",",
    "{",
    "}",
    "[",
    "]",
    "&",
    "*",
    "!",
    "|",
    "#",
    "null",
    "\t",
    "\n",
    "'",
    '"',
    "\u00e9",
    "0",
)
TOKEN = re.compile(r"\s+|->|\w+|[^\w\s]")

Change = tuple[str, int, int]


def changed(config: str, change: Change) -> str:
    """One step away: in tokens, or in whole lines."""
    how, place, choice = change
    tokens = TOKEN.findall(config)
    lines = config.splitlines(keepends=True)
    at, row = place % max(len(tokens), 1), place % max(len(lines), 1)
    if not tokens:
        return config
    match how:
        case "value" | "name":  # another word of the same kind
            kinds = VALUES if how == "value" else NAMES
            named = [i for i, token in enumerate(tokens) if any(token in kind for kind in kinds)]
            if named:
                at = named[place % len(named)]
                kind = next(kind for kind in kinds if tokens[at] in kind)
                tokens[at] = kind[choice % len(kind)]
        case "replace":
            tokens[at] = SPARE[choice % len(SPARE)]
        case "insert":
            tokens.insert(at, SPARE[choice % len(SPARE)])
        case "borrow":
            tokens[at] = tokens[choice % len(tokens)]
        case "swap":
            other = choice % len(tokens)
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case "drop line":
            del lines[row]
            return "".join(lines)
        case "move line":
            line = lines.pop(row)
            lines.insert(choice % (len(lines) + 1), line)
            return "".join(lines)
        case "take line":
            others = GOOD[choice % len(GOOD)].splitlines(keepends=True)
            lines.insert(row, others[choice % len(others)])
            return "".join(lines)
        case _:
            lines[row] = " " * (choice % 7) + lines[row].lstrip()
            return "".join(lines)
    return "".join(tokens)


HOW = (
    *["value"] * 8,
    *["name"] * 2,
    "replace",
    "insert",
    "borrow",
    "swap",
    "drop line",
    "move line",
    "take line",
    "indent",
)
CHANGES = st.lists(st.tuples(st.sampled_from(HOW), st.integers(0, 400), st.integers(0, 400)), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def running(lab: Path) -> Iterator[Lab]:
    with Lab(lab) as process:
        yield process


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What a function with a rule for each tensor says: what the lab is built of."""
    return statements(Adaptor().every(tmp_path_factory.mktemp("every")))


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    yield counted
    print(f"{counted.total()} files: {dict(counted)}")
    assert min(counted["refused"], counted["called"]) >= EXAMPLES // 4


@pytest.mark.deep("fuzz", "test_matrix.py beside it calls each rule; tests/unit/vendor reads bad ones")
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(start=st.sampled_from(GOOD), changes=CHANGES, seed=st.integers(0, 2**32 - 1))
def test_changed_files(
    running: Lab,
    every: dict[str, list[str]],
    outcomes: Counter[str],
    tmp_path: Path,
    start: str,
    changes: list[Change],
    seed: int,
) -> None:
    config = start
    for change in changes:
        config = changed(config, change)
    program, diagnostics = with_vendor(lab_contract(), config, tmp_path)
    lines = len(config.splitlines()) + 1
    for finding in diagnostics.found:
        assert finding.span.path == "convert_config.yaml", finding
        assert 1 <= finding.span.line <= lines and finding.span.column >= 1, (config, finding)
        assert finding.message and "Traceback" not in finding.message
    if diagnostics.failed:
        outcomes["refused"] += 1
        return
    outcomes["called"] += 1
    texts = Adaptor().texts(program)
    for symbol, said in statements(texts).items():
        assert set(said) <= set(every[symbol]), (config, symbol)
    vendor = Vendor(config, texts, rules_of(texts), read(config))
    for _, call in matrix.mixed([vendor], CALLS, Random(seed)):
        expected, found = Model(call, vendor.reading).transcript(), running.ask(text(call, vendor.rules))
        assert found == expected, difference(call, vendor, expected, found)
