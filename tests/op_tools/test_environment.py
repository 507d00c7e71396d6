"""The environment's variables: each is documented, changes what a tool does, and refuses what means nothing."""

import ast
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import op_tools
from op_tools import casts, environment
from op_tools.cli import main
from op_tools.environment import BadVariable
from op_tools.store.recording import read_recording
from tests.op_tools.faulty import Faulty
from tests.processes import ROOT

DOCS = (ROOT / "docs" / "op-tools.md").read_text(encoding="utf-8")
SOURCES = ROOT / "python" / "op_tools"

compare = partial(op_tools.OpAutoCompare, ".*", table=False, write=lambda _: None)


def test_the_documentation_has_the_variables_of_the_code_with_their_defaults_and_no_others():
    rows = [line.split("|")[1:4] for line in DOCS.partition("## Variables")[2].splitlines() if line.startswith("| `")]
    documented = {name: default.strip(" `") for names, default, _ in rows for name in re.findall(r"`([^`]+)`", names)}
    assert documented == {variable.name: variable.default for variable in environment.VARIABLES}


def _named_in(node: ast.AST) -> str | None:
    """The variable that an expression reads by name, e.g. "RANK" of os.environ.get("RANK")."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ")), args=[name, *_]):
            return ast.unparse(name)
        case ast.Call(func=ast.Attribute(attr="getenv"), args=[name, *_]):
            return ast.unparse(name)
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=name):
            return ast.unparse(name)
    return None


def test_no_variable_is_read_or_written_beside_the_list_but_torch_s_own():
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        read = {_named_in(node) for node in ast.walk(ast.parse(path.read_text()))} - {None}
        if read and path.name != "environment.py":
            found[str(path.relative_to(SOURCES))] = read
    assert found == {
        "ditorch/__init__.py": {"'DITORCH_DISABLE_MOCK'"},
        "op_tools/store/recording.py": {"'RANK'"},
        "op_tools/torch_tests/device.py": {"name", "_ONLY_FOR"},  # what tells torch's tests their device
    }


def test_the_environment_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("OP_TOOLS_RESULTS_DIR", str(tmp_path))
    before = dict(os.environ)
    for made in ACTED:
        with made() as tool:
            torch.ones(2).relu()
        tool.stop()
    after = {name: value for name, value in os.environ.items() if not name.startswith("TORCH")}  # it writes its own
    assert after == {name: value for name, value in before.items() if not name.startswith("TORCH")}


class Below(TorchDispatchMode):
    """The operators that reach the device, with the dtype of the first argument."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, torch.dtype]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if args and isinstance(args[0], torch.Tensor):
            self.seen.append((str(func), args[0].dtype))
        return func(*args, **(kwargs or {}))


def program() -> None:
    x = torch.full((2,), float("nan"), dtype=torch.float16)
    x.relu(), x.neg(), x.sin()


def run_under(tool):
    with tool:
        program()
    return tool


def cast_operators(_: Path) -> set[str]:
    below = Below()
    with below:
        run_under(op_tools.OpDtypeCast())
    return {name for name, dtype in below.seen if dtype is torch.float32 and "_to_copy" not in name}


def observed_operators(_: Path) -> set[str]:
    lines: list[str] = []
    run_under(op_tools.OpObserve(write=lines.append))
    return {name for line in lines for name in re.findall(r"(aten\.[\w.]+)\(", line)}


def recorded_operators(folder: Path) -> set[str]:
    run_under(op_tools.OpRecord(folder=folder))
    return {line["operator"] for path in folder.glob("*.jsonl") for line in read_recording(path).of("call")}


# What each tool has acted on, in the program above.
ACTED: dict[type[op_tools.OpTool], tuple[str, Callable[[Path], set[str]]]] = {
    op_tools.OpCapture: ("CAPTURE", lambda folder: set(run_under(op_tools.OpCapture(folder=folder)).writer.written)),
    op_tools.OpAutoCompare: ("AUTOCOMPARE", lambda _: set(run_under(op_tools.OpAutoCompare()).compared)),
    op_tools.OpTimeMeasure: (
        "TIME_MEASURE",
        lambda _: {timing.operator for timing in run_under(op_tools.OpTimeMeasure()).timings()},
    ),
    op_tools.OpDtypeCast: ("DTYPE_CAST", cast_operators),
    op_tools.OpObserve: ("OBSERVE", observed_operators),
    op_tools.OpOverflowCheck: (
        "OVERFLOW_CHECK",
        lambda _: {found.operator for found in run_under(op_tools.OpOverflowCheck(write=lambda _: None)).found},
    ),
    op_tools.OpRecord: ("RECORD", recorded_operators),
}


@pytest.mark.parametrize("tool", ACTED, ids=lambda tool: tool.__name__)
def test_a_tool_acts_on_what_its_list_names_but_for_what_is_disabled(tool, tmp_path, monkeypatch):
    variable, acted = ACTED[tool]
    monkeypatch.setenv("OP_TOOLS_RESULTS_DIR", str(tmp_path / "results"))
    everything = {"aten.relu.default", "aten.neg.default", "aten.sin.default"}
    assert everything <= acted(tmp_path / "all")
    monkeypatch.setenv(f"OP_{variable}_DISABLE_LIST", "aten.re.*,torch.Tensor.sin")
    assert acted(tmp_path / "but") & everything == {"aten.neg.default"}
    monkeypatch.setenv(f"OP_{variable}_LIST", "aten.relu, torch.Tensor.neg")
    assert acted(tmp_path / "one") == {"aten.neg.default"}
    monkeypatch.delenv(f"OP_{variable}_DISABLE_LIST")
    assert acted(tmp_path / "two") == {"aten.relu.default", "aten.neg.default"}


FORCED = """
import torch, torch_dipu, op_tools
torch_dipu.start()
x = torch.ones(3).to("dipu")
with op_tools.OpFallback() as tool:
    x.relu(), x.neg(), x.sin()
print(*sorted(tool.calls))
"""


@pytest.mark.parametrize(
    ("variables", "forced"),
    [
        ({}, "aten.neg.default aten.relu.default aten.sin.default"),
        ({"OP_FALLBACK_LIST": "aten.relu, torch.Tensor.neg"}, "aten.neg.default aten.relu.default"),
        (
            {"OP_FALLBACK_LIST": "aten.relu, torch.Tensor.neg", "OP_FALLBACK_DISABLE_LIST": "aten.re.*"},
            "aten.neg.default",
        ),
    ],
)
def test_fallback_acts_on_what_its_list_names_but_for_what_is_disabled(on_dipu, variables, forced):
    done = on_dipu("-c", FORCED, **variables)
    assert done.stdout == f"{forced}\n", done.stderr


def test_casts_are_read_at_each_call(monkeypatch):
    x = torch.ones(2, dtype=torch.float16)
    with Below() as below, op_tools.OpDtypeCast("aten.exp"):
        for text in ("torch.float16->torch.float64", "torch.int8->torch.int16", "torch.float16->torch.float32"):
            monkeypatch.setenv("OP_DTYPE_CAST_DICT", text)
            assert x.exp().dtype is torch.float16
        monkeypatch.delenv("OP_DTYPE_CAST_DICT")
        x.bfloat16().exp()
    seen = [dtype for name, dtype in below.seen if name == "aten.exp.default"]
    assert seen == [torch.float64, torch.float16, torch.float32, torch.float32]


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "LINEAR": lambda x: F.linear(x, x),
    "EMBEDDING": lambda x: F.embedding(torch.tensor([1, 0]), x),
    "NORMALIZE": F.normalize,
    "NORM": torch.norm,
    "CROSS_ENTROPY": lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1, 2])),
    "MUL": lambda x: x * x,
    "MATMUL": lambda x: x @ x,
    "STD": torch.std,
    "EXP": torch.exp,
}


@pytest.mark.parametrize("suffix", CALLS)
def test_the_reference_of_an_operator_is_computed_in_what_its_variable_says(suffix, monkeypatch):
    """In bfloat16 it is off by more than the tolerance of float32."""
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))

    def mismatches() -> int:
        with compare() as tool:
            CALLS[suffix](x)
        assert sum(tool.compared.values()) + len(tool.mismatches) > 0
        return len(tool.mismatches)

    assert mismatches() == 0
    monkeypatch.setenv("OTHER_OP_DTYPE_CAST_DICT", "torch.float32->torch.bfloat16")
    monkeypatch.setenv(f"{suffix}_OP_DTYPE_CAST_DICT", "torch.float32->torch.float64")
    assert mismatches() == 0
    monkeypatch.setenv(f"{suffix}_OP_DTYPE_CAST_DICT", "torch.float32->torch.bfloat16")
    assert mismatches() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("operator", "function", "overload"),
    [
        ("RELU", F.relu, "aten.relu.default"),
        ("LINEAR", lambda x: F.linear(x, x, x[0]), "aten.addmm.default"),
    ],
    ids=["relu", "linear"],
)
def test_the_narrowest_tolerance_that_is_set_holds(monkeypatch, dtype, operator, function, overload):
    x = torch.eye(2, dtype=dtype)

    def is_good() -> bool:
        with Faulty(overload, lambda func, args, kwargs: func(*args, **kwargs) * 1.0625), compare() as tool:
            function(x)
        return not tool.mismatches

    word = str(dtype).removeprefix("torch.").upper()
    assert not is_good()
    monkeypatch.setenv("AUTOCOMPARE_ERROR_TOLERANCE", "0.2,0")
    assert is_good()
    monkeypatch.setenv(f"AUTOCOMPARE_ERROR_TOLERANCE_{word}", "1e-4,1e-4")
    assert not is_good()
    monkeypatch.setenv(f"{operator}_AUTOCOMPARE_ERROR_TOLERANCE_{word}", "0,0.2")
    monkeypatch.setenv(f"OTHER_AUTOCOMPARE_ERROR_TOLERANCE_{word}", "0,0")
    assert is_good()


def test_rows_wait_and_go_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("OP_TOOLS_RESULTS_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("OP_TOOLS_MAX_CACHE_SIZE", "3")
    written = []
    with op_tools.OpAutoCompare("aten.neg"):
        for _ in range(7):
            torch.ones(1).neg()
            found = list((tmp_path / "here" / "op_autocompare_result").glob("*.csv"))
            written.append(found[0].read_text().count("\n") if found else 0)
    assert written == [0, 0, 4, 4, 4, 7, 7]
    assert found[0].read_text().count("forward_id") == 1 and found[0].read_text().count("\n") == 8


@pytest.mark.parametrize("text", ["1", "0"])
def test_stacks_are_printed_on_request(monkeypatch, capsys, text):
    monkeypatch.setenv("OP_TOOLS_PRINT_STACK", text)
    with op_tools.OpObserve("aten.neg", write=lambda _: None):
        torch.ones(1).neg()
    printed = capsys.readouterr().out
    assert printed.startswith("torch.Tensor.neg at test_environment.py:") == (text == "1")
    assert ("test_stacks_are_printed_on_request" in printed) == (text == "1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torch.float16", "'torch.float16' is no cast; write 'torch.float16->torch.float32'"),
        ("torch.half->torch.flaot32", "'torch.flaot32' is no dtype of torch; write 'torch.float16->torch.float32'"),
    ],
)
def test_a_cast_that_is_none_is_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        casts.parsed(text)


def test_dtypes_have_their_other_names():
    assert casts.parsed("torch.half->torch.float") == {torch.float16: torch.float32}


def computed(tool: op_tools.OpTool) -> None:
    with tool:
        torch.ones(2, dtype=torch.float16).relu()


NO_CAST = "'float16' is no cast; write 'torch.float16->torch.float32'"
NO_PATTERN = "'aten.(' is neither the name of an operator nor a regular expression: missing ), unterminated subpattern"
NO_PAIR = "set it to two numbers that are not negative, 'absolute,relative'"
MEANINGLESS = [
    *(
        (f"OP_{name}_{which}LIST", "aten.(", tool, f": {NO_PATTERN}")
        for tool, (name, _) in (ACTED | {op_tools.OpFallback: ("FALLBACK", None)}).items()
        for which in ("", "DISABLE_")
    ),
    ("OP_DTYPE_CAST_DICT", "float16", op_tools.OpDtypeCast, f": {NO_CAST}"),
    ("RELU_OP_DTYPE_CAST_DICT", "float16", compare, f": {NO_CAST}"),
    ("AUTOCOMPARE_ERROR_TOLERANCE", "1e-3", compare, f" is '1e-3': {NO_PAIR}"),
    ("AUTOCOMPARE_ERROR_TOLERANCE_FLOAT16", "1e-3,nan", compare, f" is '1e-3,nan': {NO_PAIR}"),
    ("RELU_AUTOCOMPARE_ERROR_TOLERANCE_FLOAT16", "-1,0", compare, f" is '-1,0': {NO_PAIR}"),
    ("OP_TOOLS_MAX_CACHE_SIZE", "many", op_tools.OpAutoCompare, " is 'many': set it to a whole number"),
    ("OP_TOOLS_PRINT_STACK", "yes", compare, " is 'yes': set it to a whole number"),
]


@pytest.mark.parametrize(("name", "text", "tool", "message"), MEANINGLESS, ids=[row[0] for row in MEANINGLESS])
def test_a_value_that_means_nothing_is_refused_by_the_name_of_the_variable(monkeypatch, name, text, tool, message):
    monkeypatch.setenv(name, text)
    with pytest.raises(BadVariable) as raised:
        computed(tool())
    assert str(raised.value).startswith(f"{name}{message}")


def test_a_folder_of_results_that_is_a_file_is_refused(tmp_path, monkeypatch):
    place = tmp_path / "results"
    place.write_text("")
    monkeypatch.setenv("OP_TOOLS_RESULTS_DIR", str(place))
    with pytest.raises(BadVariable) as raised:
        computed(op_tools.OpCapture())
    assert str(raised.value) == f"OP_TOOLS_RESULTS_DIR: '{place}' is a file; set it to a folder"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("OP_AUTOCOMPARE_DISABLE_LIST", "aten.(", f"op-tools: OP_AUTOCOMPARE_DISABLE_LIST: {NO_PATTERN}"),
        ("AUTOCOMPARE_ERROR_TOLERANCE", "1", f"op-tools: AUTOCOMPARE_ERROR_TOLERANCE is '1': {NO_PAIR}\n"),
    ],
)
def test_the_command_says_in_one_line_which_variable_means_nothing(tmp_path, monkeypatch, name, text, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, text)
    (tmp_path / "train.py").write_text("import torch\ntorch.ones(2).relu()\n")
    done = CliRunner().invoke(main, ["run", "train.py", "--compare"])
    assert done.exit_code == 2 and done.stderr.startswith(message) and done.stderr.count("\n") == 1
