"""Builds the lab: the adaptor as it is generated, between a caller and a vendor that are generated beside it."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from diopigen.c_spelling import c_args, c_signature
from diopigen.model.op import Function, Param, Role
from diopigen.model.program import Program
from diopigen.targets.adaptor import outputs
from diopigen.targets.output import Output, Render, renderer
from tests.built import compiled
from tests.cpp.adaptor.lab.contract import PRIMITIVES, lab_contract, words
from tests.unit.vendor.small_project import ROOT, contract_headers, with_vendor

HERE = Path(__file__).parent
RUNTIME = ROOT / "runtime_cpp"
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
SANITIZED = ("-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

# A rule for every tensor of every function, so that each one is converted by whatever rule a call brings along.
EVERY = "- common_config: {dtype: '(float64)->float32, (int64)->int32', contiguous: true}\n"

_renderer = cache(renderer)

Outputs = Callable[[Program, Render], Iterator[Output]]
Rules = dict[tuple[str, str], str]  # e.g. {("diopiAdd", "input"): "cast float64 float32 contiguous"}

_FUNCTION = re.compile(r"^DIOPI_EXPORT diopiError_t (diopi\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
_RULE = re.compile(r"^constexpr auto (kRule\d+) = (.*?);", re.MULTILINE | re.DOTALL)
_USED = re.compile(r'(kRule\d+)(?=, "(\w+)"\);)')
_STEP = re.compile(r"\.(cast|order|contiguous)[(<]([^)>]*)")


@dataclass(frozen=True, slots=True)
class Adaptor:
    """What the generator and the run time are made of; a mutant has other parts."""

    outputs: Outputs = outputs
    templates: Path = ROOT / "templates"
    runtime: Path = RUNTIME

    def texts(self, program: Program) -> dict[str, str]:
        """The sources that are generated, by path; without the ABI record."""
        made = [output for output in self.outputs(program, _renderer(self.templates)) if output.path.endswith(".cpp")]
        return {output.path: output.text for output in made if not output.path.endswith("abi_record.cpp")}

    def every(self, folder: Path) -> dict[str, str]:
        """The adaptor with a rule for every tensor."""
        planned, diagnostics = with_vendor(lab_contract(), EVERY, folder)
        assert not diagnostics.failed, diagnostics.found
        return self.texts(planned)


def rules_of(texts: dict[str, str]) -> Rules:
    """The rule of each parameter, as a generated adaptor has it."""
    return {use: rule for text in texts.values() for use, rule in _rules(text)}


def _rules(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    named = {name: _steps(expression) for name, expression in _RULE.findall(text)}
    for function in _FUNCTION.finditer(text):
        for name, param in _USED.findall(function.group()):
            yield (function.group(1), param), named[name]


def _steps(expression: str) -> str:
    """e.g. "cast float64 float32 order 4 channels_last contiguous"."""
    steps = (f"{step} {arguments.replace(',', '')}".strip() for step, arguments in _STEP.findall(expression))
    return " ".join(steps).replace("diopi_dtype_", "").replace("Order::", "")


def statements(texts: dict[str, str]) -> dict[str, list[str]]:
    """What each function says, the rules left out: a call with live rules stands for all that is generated."""
    found = {}
    for text in texts.values():
        for function in _FUNCTION.finditer(text):
            lines = re.sub(r"kRule\d+", "rule", function.group()).splitlines()
            found[function.group(1)] = [line.strip() for line in lines if "rule" in line]
    return found


def live(text: str) -> str:
    """A generated source whose rules come with each call."""
    return _USED.sub(r'live("\2")', _RULE.sub("", text)).replace(
        "#include <diopi/", '#include "live.h"\n\n#include <diopi/', 1
    )


# -- the vendor ------------------------------------------------------------------------------------------------


_USES = {Role.IN: "in", Role.OUT: "out", Role.INOUT: "inout"}


def vendor() -> str:
    """Every function of the contract, which writes down what it gets, and how each is called."""
    functions = [f for f in lab_contract().functions if f.symbol not in PRIMITIVES]
    bodies = "\n".join(_body(f) for f in functions)
    calls = "\n".join(_call(f) for f in functions)
    declared = "\n".join(c_signature(f) + ";" for f in functions)
    dtypes = ", ".join(f'"{word}"' for word in words())
    return f"""#include "lab.h"

namespace impl::recorder {{

diopiError_t diopiCastDtype(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {{
    return lab::cast(out, input);
}}
diopiError_t diopiCopyInp(diopiContextHandle_t, diopiConstTensorHandle_t src, diopiTensorHandle_t dest) {{
    return lab::copy(src, dest);
}}
{bodies}

}}  // namespace impl::recorder

extern "C" {{
{declared}
}}

const std::vector<std::string> lab::words = {{{dtypes}}};

const std::map<std::string, lab::Invoke> lab::functions = {{
{calls}
}};
"""


def _body(function: Function) -> str:
    lines = [_seen(p, index) for index, p in enumerate(function.params)]
    return "\n".join(
        [
            f"{c_signature(function)} {{",
            f'    lab::Function function(ctx, "{function.symbol}");',
            *(f"    {line}" for line in lines),
            "    return function.run();",
            "}",
        ]
    )


def _seen(param: Param, index: int) -> str:
    name = param.name
    if param.tensor is None:
        return f'function.value("{name}", {name}, lab::value<decltype({name})>({index}));'
    if param.role is Role.CALLEE_OUT:
        return f'function.allocated("{name}", {name});'
    scratch = param.c is not None and param.role is Role.IN
    use = "scratch" if scratch else _USES[param.role]
    if param.tensor.count is not None:
        return f'function.list(lab::Use::{use}, "{name}", {name}, {param.tensor.count});'
    return f'function.tensor(lab::Use::{use}, "{name}", {name});'


def _call(function: Function) -> str:
    given = []
    for arg in c_args(function):
        param = arg.param
        if arg.name == "ctx":
            given.append("a.ctx")
        elif param is None:
            counted = [f'"{p.name}"' for p in function.params if p.tensor is not None and p.tensor.count == arg.name]
            given.append(f"a.count({{{', '.join(counted)}}})")
        elif param.tensor is None:
            given.append(f"lab::value<{arg.type}>({function.params.index(param)})")
        elif param.role is Role.CALLEE_OUT:
            given.append(f'a.result("{arg.name}")')
        elif param.tensor.count is not None:
            given.append(f'a.{"list" if "Const" in arg.type else "mutable_list"}("{arg.name}")')
        else:
            given.append(f'a.tensor("{arg.name}")')
    return f'    {{"{function.symbol}", [](lab::Arguments& a) {{ return {function.symbol}({", ".join(given)}); }}}},'


# -- building --------------------------------------------------------------------------------------------------


def compile_objects(sources: list[Path], include: list[Path], flags: tuple[str, ...]) -> list[Path]:
    """One object for each source."""
    command = ["g++", *FLAGS, *flags, *(f"-I{path}" for path in include), "-c"]
    return [compiled([*command, source], f"{source.stem}.o") for source in sources]


def link(objects: list[Path], program: Path, flags: tuple[str, ...]) -> Path:
    command = ["g++", *flags, *map(str, objects), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return program


@dataclass(frozen=True, slots=True)
class Parts:
    """What no configuration changes: the caller, the vendor, the adaptor's run time; compiled."""

    objects: tuple[Path, ...]
    headers: Path  # where the contract's are included from
    flags: tuple[str, ...]


def bench_parts(folder: Path, flags: tuple[str, ...]) -> Parts:
    """The caller and the vendor, which no adaptor changes either."""
    headers = contract_headers(folder / "contract", lab_contract())
    (folder / "vendor.cpp").write_text(vendor(), encoding="utf-8")
    sources = [HERE / "lab.cpp", folder / "vendor.cpp"]
    return Parts(tuple(compile_objects(sources, [headers, HERE], flags)), headers, flags)


def runtime_objects(parts: Parts, adaptor: Adaptor) -> list[Path]:
    sources = sorted((adaptor.runtime / "adaptor").glob("*.cpp"))
    return compile_objects(sources, [parts.headers, adaptor.runtime], parts.flags)


def generated_objects(
    parts: Parts, adaptor: Adaptor, texts: dict[str, str], folder: Path, more: tuple[Path, ...]
) -> list[Path]:
    """The generated sources, and those of `more` beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = list(more)
    for path, text in texts.items():
        sources.append(folder / Path(path).name)
        sources[-1].write_text(text, encoding="utf-8")
    return compile_objects(sources, [parts.headers, HERE, adaptor.runtime], parts.flags)


def all_parts(folder: Path, flags: tuple[str, ...] = SANITIZED) -> Parts:
    """With the run time of this checkout."""
    parts = bench_parts(folder, flags)
    return Parts((*parts.objects, *runtime_objects(parts, Adaptor())), parts.headers, flags)


def live_lab(parts: Parts, adaptor: Adaptor, folder: Path) -> Path:
    """The lab whose rules come with each call."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {path: live(text) for path, text in adaptor.every(folder).items()}
    objects = generated_objects(parts, adaptor, texts, folder, (HERE / "live.cpp",))
    return link([*parts.objects, *objects], folder / "lab", parts.flags)


def fixed_lab(parts: Parts, adaptor: Adaptor, texts: dict[str, str], folder: Path) -> Path:
    """The lab of one configuration, just as it is generated; tensors are described in one call."""
    objects = generated_objects(parts, adaptor, texts, folder, (HERE / "whole.cpp",))
    return link([*parts.objects, *objects], folder / "lab", parts.flags)
