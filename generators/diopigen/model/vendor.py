"""What a vendor has and lacks, and what the adaptor does about it for each function."""

from dataclasses import dataclass
from enum import Enum

from diopigen.diagnostics import Span
from diopigen.model.dtype import DType


class Origin(Enum):
    """Where the code behind a C symbol comes from, best first."""

    VENDOR = "vendor"  # the vendor's own source
    PORTABLE = "portable"  # runtime_cpp/kernels
    GENERATED = "generated"  # the schema's `kernel:` line


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """One definition of a function, found by libclang in sources or given by a `kernel:` line."""

    symbol: str  # ex) "diopiConvolution2d"
    origin: Origin
    namespace: str  # ex) "impl::droplet"
    source: str  # ex) "vendors/droplet/functions/conv.cpp"
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A dtype that the vendor lacks and what it computes in instead."""

    source: DType  # ex) float64
    target: DType  # ex) float32
    span: Span  # the rule that said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What the adaptor does to one tensor parameter of one function."""

    param: str  # ex) "weight"
    casts: tuple[Cast, ...]
    layout: str | None  # ex) "NHWC": the memory order that the vendor needs
    layout_span: Span | None  # the rule that said so
    contiguous: bool = False  # the vendor takes contiguous tensors only


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one C symbol is served for one vendor."""

    symbol: str  # ex) "diopiConvolution2d"
    implementation: Implementation
    conversions: tuple[Conversion, ...]  # only parameters with something to convert


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One body of convert_config.yaml, before it is resolved."""

    functions: tuple[tuple[str, Span], ...]  # ex) (("diopiConvolution2d", span),); empty: common_config
    casts: tuple[Cast, ...]
    tensor_casts: tuple[tuple[str, Span, tuple[Cast, ...]], ...]  # ex) (("bias", span, (cast,)),)
    layout: str | None  # ex) "NCHW", for every tensor
    tensor_layouts: tuple[tuple[str, str, Span], ...]  # ex) (("weight", "NHWC", span),)
    layout_span: Span | None
    contiguous: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One folder of vendors/."""

    name: str  # ex) "droplet"
    doc: str  # one sentence from vendor.yaml
    base: str | None  # ex) "portable": whose functions fill the gaps
    rules: tuple[Rule, ...]
    implementations: tuple[Implementation, ...]  # the vendor's own, then the base's
    span: Span
