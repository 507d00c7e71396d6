"""The installed torch's overloads by name, read from a cache so that torchgen is not imported when nothing changed.

The cache is one text file: a line that says what it was made from, then `name<tab>json` for each overload, decoded
only when it is asked for.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from diopigen.atomic import write_bytes
from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.aten import AtenArg, AtenReturn, Overload, Provision, Signature

_MEMBER = re.compile(r"\b([a-z_]\w*)\(")
_SCALAR_TYPE = re.compile(r"_\(.*, (\w+)\)")
FORMAT = 6  # of the cache's lines; a change of `schemas.distilled` raises it


class TorchMissing(Exception):
    """Torch is not installed, or comes without its schemas."""


@dataclass(slots=True)
class Catalog:
    """Overloads of one version of torch."""

    torch: str  # e.g. "2.13.0"
    lines: dict[str, str]  # overload name -> JSON
    decoded: dict[str, Overload] = field(default_factory=dict)
    packets: dict[str, list[str]] = field(init=False)  # name before the dot -> overload names, in order

    def __post_init__(self) -> None:
        self.packets = {}
        for name in self.lines:
            self.packets.setdefault(name.partition(".")[0], []).append(name)

    @property
    def release(self) -> str:
        """e.g. "2.13"."""
        return minor(self.torch)

    def overload(self, name: str) -> Overload | None:
        """The overload called `name` (e.g. "add.out"; the one without a name: "relu"), or None."""
        if name not in self.decoded:
            line = self.lines.get(name)
            if line is None:
                return None
            self.decoded[name] = _overload(name, json.loads(line))
        return self.decoded[name]

    def packet(self, base: str) -> tuple[Overload, ...]:
        """Every overload whose name before the dot is `base`, in order of name."""
        return tuple(o for n in self.packets.get(base, ()) if (o := self.overload(n)))

    def group(self, primary: str) -> tuple[Overload, ...]:
        """The forms of the structured group whose out form is `primary`: the out form and its delegates."""
        base = primary.partition(".")[0]
        members = (*self.packet(base), *self.packet(f"{base}_"))
        return tuple(o for o in members if o.group == primary)

    def names(self) -> Iterable[str]:
        return self.lines.keys()

    def members(self) -> frozenset[str]:
        """Of a tensor in C++, operators or not."""
        return tensor_members()

    def one_device(self) -> Iterable[str]:
        """The overloads of which torch refuses tensors of two devices; no other is decoded."""
        return (name for name, line in self.lines.items() if '"one_device":true' in line)


def load(cache: Path, diagnostics: Diagnostics) -> Catalog:
    """The catalog of the installed torch, from the folder `cache` or, where that is stale or damaged, from torchgen.

    Raises TorchMissing with a sentence for the user.
    """
    return loading(cache, diagnostics)()


def loading(cache: Path, diagnostics: Diagnostics) -> Callable[[], Catalog]:
    """Begins to load the catalog; what it gives waits for the end. Raises TorchMissing at once."""
    try:
        torch = version("torch")
    except PackageNotFoundError as missing:
        raise TorchMissing("torch is not installed, so the ATen wrappers cannot be generated") from missing
    folder = schema_folder()
    native_functions = folder / "native_functions.yaml"
    header = json.dumps({"format": FORMAT, "torch": torch, "schemas": _digest(native_functions.read_bytes())})
    path = cache / f"aten-{torch}.tsv"
    lines = _cached(path, header, diagnostics)
    if lines is not None:
        catalog = Catalog(torch=torch, lines=lines)
        return lambda: catalog
    distilled = _distilling(native_functions, folder / "tags.yaml", _derivatives(folder))

    def distill() -> Catalog:
        body = distilled()
        write_bytes(path, f"{header}\n{_digest(body)}\n".encode() + body)
        return Catalog(torch=torch, lines=_lines(body))

    return distill


def _distilling(*files: Path) -> Callable[[], bytes]:
    """Begins a process that asks torchgen, which takes a second and much memory; what it gives waits for the lines.

    No key that ends this process reaches that one.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = (sys.executable, "-P", "-m", "diopigen.aten.schemas", *map(str, files))
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)

    def distilled() -> bytes:
        body, _ = process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        return body

    return distilled


def minor(torch: str) -> str:
    """The release that a version belongs to, e.g. "2.13" of "2.13.0+cpu"."""
    return ".".join(torch.split("+")[0].split(".")[:2])


def schema_folder() -> Path:
    """Where the installed torch keeps the schemas of its operators. Raises TorchMissing."""
    spec = find_spec("torchgen")
    if spec is None or spec.origin is None:
        raise TorchMissing("this torch comes without torchgen, so its operators' schemas cannot be read")
    folder = Path(spec.origin).parent / "packaged" / "ATen" / "native"
    if not (folder / "native_functions.yaml").is_file():
        raise TorchMissing(f"this torch comes without its schemas: there is no {folder}/native_functions.yaml")
    return folder


@cache
def tensor_members() -> frozenset[str]:
    """What C++ calls of a tensor that is no operator, or was none once, e.g. "numel": all that TensorBase declares."""
    spec = find_spec("torch")
    places = () if spec is None else spec.submodule_search_locations or ()
    for path in (Path(place, "include", "ATen", "core", "TensorBase.h") for place in places):
        with suppress(OSError):
            return frozenset(_MEMBER.findall(path.read_text(encoding="utf-8")))
    return frozenset()


def scalar_types() -> frozenset[str]:
    """The enumerators of the installed torch's c10::ScalarType, e.g. "Float". Raises TorchMissing."""
    spec = find_spec("torch")
    places = () if spec is None else spec.submodule_search_locations or ()
    for path in (Path(place, "include", "torch", "headeronly", "core", "ScalarType.h") for place in places):
        with suppress(OSError):
            listed = path.read_text(encoding="utf-8").partition(
                "define AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(_)"
            )[2]
            if found := frozenset(_SCALAR_TYPE.findall(listed.partition("\n\n")[0])):
                return found
    raise TorchMissing("this torch comes without torch/headeronly/core/ScalarType.h, which lists its element types")


def _derivatives(folder: Path) -> Path:
    path = folder.parents[1] / "autograd" / "derivatives.yaml"
    if not path.is_file():
        raise TorchMissing(f"this torch comes without its derivatives: there is no {path}")
    return path


def _cached(path: Path, header: str, diagnostics: Diagnostics) -> dict[str, str] | None:
    """The lines of a cache that was made from the same torch and is whole; None where it must be made again."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    first, _, rest = text.partition(b"\n")
    digest, _, body = rest.partition(b"\n")
    if first.decode(errors="replace") != header:
        return None
    if digest.decode(errors="replace") != _digest(body):
        span = Span(path=str(path), line=1, column=1)
        diagnostics.warning("cache-damaged", "the cache of torch's schemas is damaged; it is made again", span)
        return None
    return _lines(body)


def _lines(body: bytes) -> dict[str, str]:
    pairs = (line.partition("\t") for line in body.decode().splitlines())
    return {name: record for name, _, record in pairs}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _overload(name: str, record: dict[str, Any]) -> Overload:
    cpp = record["cpp"]
    return Overload(
        name=name,
        args=tuple(
            AtenArg(name=n, type=t, default=d, keyword=k, out=o, mutated=m) for n, t, d, k, o, m in record["args"]
        ),
        returns=tuple(AtenReturn(name=n, type=t, alias=a) for n, t, a in record["returns"]),
        provision=Provision(record["provision"]),
        group=record["group"],
        composite_kernel=record["composite_kernel"],
        implicit=record["implicit"],
        view=record["view"],
        host=record["host"],
        cpp=Signature(
            operator=cpp["operator"],
            header=cpp["header"],
            returns=cpp["returns"],
            params=tuple((t, n) for t, n in cpp["params"]),
            redispatch=tuple(cpp["redispatch"]),
            meta=cpp["meta"],
            meta_args=tuple(cpp["meta_args"]),
            iterator=cpp["iterator"],
        ),
        one_device=record["one_device"],
        pointwise=record["pointwise"],
    )
