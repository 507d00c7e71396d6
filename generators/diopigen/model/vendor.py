"""What a vendor has and lacks, and what the adaptor does about it for each function."""

from dataclasses import dataclass
from enum import Enum

from diopigen.diagnostics import Span
from diopigen.vocabulary.dtype import DType


class Origin(Enum):
    """Where the code behind a C symbol comes from, best first."""

    VENDOR = "vendor"  # the vendor's own source
    EXPORTED = "exported"  # a source of the vendor or of a base, with C linkage: exported as it is, without an adaptor
    BASE = "base"  # a source of another vendor that `base` of vendor.yaml names
    PORTABLE = "portable"  # runtime_cpp/kernels
    GENERATED = "generated"  # the schema's `kernel:` line
    ATEN = "aten"  # a call of PyTorch, from the schema's `aten:` line
    COMPOSITE = "composite"  # calls of other functions, from the schema's `compose:` lines or derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """One definition of a function, found by libclang in sources or given by a `kernel:` line."""

    symbol: str  # e.g. "diopiConvolution2d"
    origin: Origin
    name: str  # e.g. "droplet", "portable": what `implementation` of convert_config.yaml calls it
    namespace: str  # e.g. "impl::droplet": where the function is called
    source: str  # e.g. "vendors/droplet/functions/conv.cpp"
    span: Span
    nested: bool = False  # in a namespace inside the vendor's: serves only where it is named

    @classmethod
    def of_schema(cls, symbol: str, origin: Origin, span: Span) -> "Implementation":
        """What is generated for a function, by its entry at `span`."""
        return cls(
            symbol=symbol,
            origin=origin,
            name=origin.value,
            namespace="impl::generated",
            source=span.path,
            span=span,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A dtype that the vendor lacks and what it computes in instead."""

    source: DType  # e.g. float64
    target: DType  # e.g. float32
    span: Span  # the rule that said so


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What the adaptor does to one tensor parameter of one function."""

    param: str  # e.g. "weight"
    casts: tuple[Cast, ...]
    layouts: tuple[str, ...]  # e.g. ("NHWC",): what the vendor takes; vocabulary/layouts.py says it of each rank
    layout_span: Span | None  # the rule that said so
    contiguous: bool = False  # the vendor takes contiguous tensors only
    contiguous_span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPlan:
    """How one C symbol is served for one vendor."""

    symbol: str  # e.g. "diopiConvolution2d"
    implementation: Implementation
    conversions: tuple[Conversion, ...]  # only parameters with something to convert

    def conversion(self, param: str) -> Conversion | None:
        return next((c for c in self.conversions if c.param == param), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Casts:
    """What a rule says of dtypes, of all tensors or of one argument."""

    param: str | None  # e.g. "bias"; None: every tensor that has no entry of its own
    casts: tuple[Cast, ...]  # empty for `none`, which takes any dtype
    span: Span  # the argument's name in the file, or the first cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """What a rule says of memory orders, of all tensors or of one argument."""

    param: str | None  # e.g. "weight"; None: every tensor that has no entry of its own
    names: tuple[str, ...]  # e.g. ("NHWC",); empty for ND, which takes any order
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Contiguous:
    """What a rule says of contiguous memory, of all tensors or of one argument."""

    param: str | None  # e.g. "mask"; None: every tensor that has no entry of its own
    wanted: bool
    span: Span


Said = Casts | Layouts | Contiguous


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One body of convert_config.yaml, before it is resolved."""

    functions: tuple[tuple[str, Span], ...]  # e.g. (("diopiConvolution2d", span),); empty: common_config
    casts: tuple[Casts, ...]
    layouts: tuple[Layouts, ...]
    contiguous: tuple[Contiguous, ...]
    composite: bool | None  # supportComposite: the function may be composed of others; None: not said
    implementation: tuple[str, Span] | None  # e.g. ("portable", span): whose code serves the functions, of several
    span: Span

    @property
    def said(self) -> tuple[Said, ...]:
        """All that the rule says of conversions."""
        return (*self.casts, *self.layouts, *self.contiguous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Another vendor whose functions fill gaps."""

    name: str  # e.g. "ascend"
    base: tuple[str, ...]  # its own bases, as in Vendor
    rules: tuple[Rule, ...]  # of its convert_config.yaml: what its functions lack
    sources: tuple[str, ...]  # e.g. ("vendors/ascend/functions/add.cpp",): what CMake compiles if one of them serves
    include_dirs: tuple[str, ...]  # e.g. ("vendors/ascend", "vendors/ascend/sdk")
    defines: tuple[str, ...]  # e.g. ("CHIP_VERSION=2",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One folder of vendors/."""

    name: str  # e.g. "droplet"
    doc: str  # one sentence from vendor.yaml
    base: tuple[str, ...]  # e.g. ("ascend", "portable"): whose functions fill the gaps, first to last, theirs included
    bases: tuple[Base, ...]  # the vendors among them, in that order
    generate: str | None  # e.g. "aten": functions that only call PyTorch are written for it
    config: str  # e.g. "vendors/droplet/convert_config.yaml": where the rules stand
    rules: tuple[Rule, ...]
    without_patterns: tuple[str, ...]  # e.g. ("rms_norm",): patterns that torch.compile leaves alone for it
    implementations: tuple[Implementation, ...]  # found in sources: the vendor's own, then each base's
    sources: tuple[str, ...]  # e.g. ("vendors/droplet/functions/conv.cpp",): what was searched for them
    span: Span
    # For torch.compile: by op the element types whose images get channels innermost.
    channels_innermost: tuple[tuple[str, tuple[DType, ...]], ...] = ()  # e.g. (("convolution2d", (float16,)),)
    separate_elements: tuple[str, ...] = ()  # e.g. ("batch_norm",): their elementwise part is fused with loops
