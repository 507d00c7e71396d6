"""The hand-written C++ files of the PyTorch backend that a drifted operator may leave out."""

from dataclasses import dataclass

from diopigen.diagnostics import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """One file with what it names of torch, each where it first stands."""

    path: str  # ex) "runtime_cpp/torch/derived/padding.cpp"
    stem: str  # ex) "padding": `register_padding`, or `derive_padding`
    derives: bool  # it derives operators, rather than serving a `wrapper` of the schemas
    operators: tuple[tuple[str, Span], ...]  # ex) (("add_Tensor", span),): the structs of at::_ops
    headers: tuple[tuple[str, Span], ...]  # ex) (("add", span),): the stems of ATen/ops/add.h and add_ops.h
    registers: tuple[str, ...]  # ex) ("trunc_out",): the structs of the operators that it derives
