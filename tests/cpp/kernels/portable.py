"""Calls of the portable kernels from Python: builds them for the host, then maps torch tensors to their handles."""

import ctypes
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.built import compiled
from tools.kernel_calls import included

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "runtime_cpp" / "kernels"
FLAGS = ("-std=c++17", "-O0", "-fwrapv", "-fPIC", "-Wall", "-Wextra", "-Werror")
# Rows and reductions shared by teams, as on GPUs.
TEAMS = (*FLAGS, "-I", str(Path(__file__).parent), '-DDIOPI_LAUNCHER_HEADER="host_teams.h"')
_BY_TEAMS = pytest.mark.deep("matrix", "of kernels by teams the reductions and sorts; `teams` runs every case so")
DEEP_TEAMS = pytest.param(TEAMS, marks=_BY_TEAMS)
SUCCESS, ERROR, NOT_IMPLEMENTED, DTYPE_NOT_SUPPORTED = 0, 1, 13, 1000

# values of diopiDtype_t
DTYPES = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.int16: 2,
    torch.uint16: 3,
    torch.int32: 4,
    torch.uint32: 5,
    torch.int64: 6,
    torch.uint64: 7,
    torch.float16: 8,
    torch.float32: 9,
    torch.float64: 10,
    torch.bool: 11,
    torch.bfloat16: 12,
    torch.complex64: 15,
    torch.complex128: 16,
}
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def include_dir() -> Path:
    """Where the contract's headers are: the generated ones, or those that DIOPI_INCLUDE_DIR names."""
    return Path(os.environ.get("DIOPI_INCLUDE_DIR", ROOT / "generated" / "include"))


class Size(ctypes.Structure):
    _fields_ = [("values", ctypes.POINTER(ctypes.c_int64)), ("length", ctypes.c_int64)]


class _Number(ctypes.Union):
    _fields_ = [("fval", ctypes.c_double), ("ival", ctypes.c_int64)]


class Scalar(ctypes.Structure):
    _anonymous_ = ("number",)
    _fields_ = [("stype", ctypes.c_int), ("number", _Number)]


def parameter_types(header: str) -> dict[str, list[str]]:
    """The C types of each function's parameters, e.g. "diopiRelu": ["diopiContextHandle_t", ...]"""
    result = {}
    for name, params in re.findall(r"diopiError_t\s+(diopi\w+)\s*\(([^;]*)\)\s*;", header):
        words = [re.sub(r"\s+", " ", param).strip() for param in params.split(",")]
        result[name] = [re.sub(r"\w+$", "", word).replace(" *", "*").strip() for word in words]
    return result


def is_part(source: Path) -> bool:
    """Whether kernels share it: it has no function of the contract."""
    return "namespace impl::portable" not in source.read_text(encoding="utf-8")


def _parts() -> dict[Path, list[Path]]:
    """The shared sources behind each header, of its name or of a longer one: pooling_areas.cpp is behind pooling.h."""
    found: dict[Path, list[Path]] = {}
    for part in filter(is_part, sorted(KERNELS.glob("*/*.cpp"))):
        headers = (path for path in part.parent.glob("*.h") if f"{part.stem}_".startswith(f"{path.stem}_"))
        found.setdefault(max(headers, key=lambda path: len(path.stem)), []).append(part)
    return found


def _with_parts(sources: Iterable[Path]) -> list[Path]:
    """The sources, and the shared ones whose headers they include, or headers of theirs."""
    parts, seen = _parts(), dict.fromkeys(sources)
    files = list(seen)
    for path in files:  # which grows
        for found in (*included(path, KERNELS), *parts.get(path, ())):
            if found not in seen:
                seen[found] = None
                files.append(found)
    return [path for path in files if path.suffix == ".cpp"]


def build(names: Sequence[str], flags: Sequence[str] = FLAGS, others: Sequence[Path] = ()) -> Path:
    """A shared library of kernels, e.g. "softmax", the parts they share, other sources, and a host runtime."""
    runtime = Path(__file__).with_name("host_runtime.cpp")
    include = ["-I", include_dir(), "-I", KERNELS]
    command = ["g++", *flags, *include]
    found = [path for path in sorted(KERNELS.glob("*/*.cpp")) if path.stem in names]
    assert {path.stem for path in found} == set(names)
    sources = _with_parts((runtime, *found, *others))
    objects = [compiled([*command, "-c", source], f"{source.parent.name}_{source.stem}.o") for source in sources]
    # its own diopirt.h, whatever backend the process has loaded already
    return compiled(["g++", *flags, "-shared", "-Wl,-Bsymbolic", *objects], "libkernels.so")


class Portable:
    """The functions `impl::portable::diopi*` of a library."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        headers = sorted((include_dir() / "diopi").glob("functions*.h"))
        self._types = parameter_types("".join(header.read_text() for header in headers))
        listing = subprocess.run(["nm", "-D", str(library)], check=True, capture_output=True, text=True).stdout
        mangled = re.findall(r" T (_ZN4impl8portable\d+(diopi\w+))", listing)
        self._symbols = {}
        for symbol, _ in mangled:
            length, rest = re.match(r"_ZN4impl8portable(\d+)(.*)", symbol).groups()  # type: ignore[union-attr]
            self._symbols[rest[: int(length)]] = symbol
        self._library.test_context_create.restype = ctypes.c_void_p
        self._library.test_tensor_create.restype = ctypes.c_void_p
        self._library.test_generator_create.restype = ctypes.c_void_p
        self._library.diopiKernelsLastError.restype = ctypes.c_char_p

    def generator(self, seed: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._library.test_generator_create(ctypes.c_uint64(seed)))

    def last_error(self) -> str:
        return self._library.diopiKernelsLastError().decode()

    def __contains__(self, name: str) -> bool:
        return name in self._symbols

    def status(self, name: str, *args: Any) -> int:
        """Calls `name` with torch tensors, numbers, lists and None after the context; gives the status."""
        context = ctypes.c_void_p(self._library.test_context_create())
        keep: list[Any] = []
        handles: list[ctypes.c_void_p] = []
        types = self._types[name][1:]
        assert len(types) == len(args), f"{name} takes {len(types)} arguments: {types}"
        converted = [self._argument(kind, arg, keep, handles) for kind, arg in zip(types, args, strict=True)]
        try:
            return int(getattr(self._library, self._symbols[name])(context, *converted))
        finally:
            for handle in handles:
                self._library.test_tensor_destroy(handle)
            self._library.test_context_destroy(context)

    def __call__(self, name: str, *args: Any) -> None:
        status = self.status(name, *args)
        assert status == SUCCESS, f"{name}: status {status}: {self.last_error()}"

    def _argument(self, kind: str, arg: Any, keep: list[Any], handles: list[ctypes.c_void_p]) -> Any:
        if arg is None:
            return Size(None, 0) if kind == "diopiSize_t" else None
        if isinstance(arg, torch.Tensor):
            return self._tensor(arg, handles)
        if kind == "diopiSize_t":
            values = (ctypes.c_int64 * len(arg))(*arg)
            keep.append(values)
            return Size(values, len(arg))
        if kind == "int64_t*":  # a list of one number, which the function may change
            keep.append(arg)
            return arg
        if kind == "diopiGeneratorHandle_t*":
            keep.append((ctypes.c_void_p * len(arg))(*arg))
            return keep[-1]
        if isinstance(arg, list):  # of tensors
            array = (ctypes.c_void_p * len(arg))(*[None if t is None else self._tensor(t, handles).value for t in arg])
            keep.append(array)
            return array
        if "diopiScalar_t" in kind:
            scalar = Scalar(stype=10 if isinstance(arg, float) else 11 if isinstance(arg, bool) else 6)
            if isinstance(arg, float):
                scalar.fval = arg
            else:
                scalar.ival = int(arg)
            keep.append(scalar)
            return ctypes.byref(scalar)
        if kind == "const int64_t*":
            keep.append(ctypes.c_int64(arg))
            return ctypes.byref(keep[-1])
        plain = {
            "double": ctypes.c_double,
            "float": ctypes.c_float,
            "int64_t": ctypes.c_int64,
            "int32_t": ctypes.c_int32,
            "bool": ctypes.c_bool,
        }
        if kind.removeprefix("const ") in plain:
            return plain[kind.removeprefix("const ")](arg)
        return arg if not isinstance(arg, int) else ctypes.c_int(arg)

    def _tensor(self, tensor: torch.Tensor, handles: list[ctypes.c_void_p]) -> ctypes.c_void_p:
        if tensor.layout == torch.sparse_csr:
            parts = [self._tensor(t, handles) for t in (tensor.crow_indices(), tensor.col_indices(), tensor.values())]
            matrix = self._tensor(torch.empty(tensor.shape, dtype=tensor.dtype), handles)  # for its shape alone
            self._library.test_tensor_compress(matrix, *parts)
            return matrix
        ndim = tensor.dim()
        sizes = (ctypes.c_int64 * max(ndim, 1))(*tensor.shape)
        strides = (ctypes.c_int64 * max(ndim, 1))(*tensor.stride())
        handle = self._library.test_tensor_create(
            ctypes.c_void_p(tensor.data_ptr()), DTYPES[tensor.dtype], ctypes.c_int64(ndim), sizes, strides
        )
        handles.append(ctypes.c_void_p(handle))
        return handles[-1]
