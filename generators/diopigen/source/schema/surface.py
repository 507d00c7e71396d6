"""The shape of the YAML files: which keys there are and what may stand behind them.

Only the surface: names are not looked up here, type lines not parsed. `bind` does that with the same nodes.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, Tag

from diopigen.model.type import Value
from diopigen.vocabulary.checks import CHECK, CLOSE
from diopigen.vocabulary.layouts import NAMES

Word = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
OpName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Text = Annotated[str, Field(min_length=1)]
Plain = str | int | float

# What a type line looks like, for editors; the grammar types.lark decides.
_TYPE = rf"(Tensor\s*<.+>|({'|'.join(value.value for value in Value)})\b)"
ArgLine = Annotated[Text, Field(json_schema_extra={"pattern": rf"^\s*(inout\s+)?{_TYPE}"})]
OutLine = Annotated[Text, Field(json_schema_extra={"pattern": rf"^\s*((new|host)\s+)?{_TYPE}"})]
LayoutName = Literal[*NAMES]  # type: ignore[valid-type]
FormName = Literal["out", "inplace", "scalar", "inplace_scalar"]
Reduction = Literal["sum", "mean", "product", "largest", "smallest"]
CheckName = Literal[*CHECK]  # type: ignore[valid-type]
Header = Literal["functions", "functions_ext", "functions_lmdeploy", "functions_mmcv", "functions_sparse"]


def _kind(value: Any) -> str:
    """Which branch of a union a value belongs to."""
    if isinstance(value, dict):
        return "mapping"
    return "list" if isinstance(value, list) else "text"


class _Surface(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


StatementEntry = Annotated[
    Annotated[Text, Tag("text")] | Annotated[dict[Text, Any], Tag("mapping")], Discriminator(_kind)
]


class CompiledSurface(_Surface):
    """The `compiled:` block of a clause."""

    forward: Annotated[Annotated[Text, Tag("text")] | Annotated[list[Text], Tag("list")], Discriminator(_kind)] = Field(
        default_factory=list, description="overloads that graphs have in place of those of the clause"
    )
    backward: Annotated[Annotated[Text, Tag("text")] | Annotated[list[Text], Tag("list")], Discriminator(_kind)] = (
        Field(default_factory=list, description="those of the backward function")
    )
    rank: dict[Word, int] = Field(
        default_factory=dict, description="ATen argument: the only number of dimensions that binds"
    )
    derive: dict[Word, Plain] = Field(default_factory=dict, description="C parameter: an expression of ATen arguments")
    when: list[Text] = Field(default_factory=list, description="conditions on ATen arguments, all of which must hold")
    permute: list[int] = Field(
        default_factory=list, description="where ATen has each dimension of tensors with so many of them"
    )
    results: dict[Word, int] = Field(
        default_factory=dict, description="C output: the place of the result that it is; all in order unless said"
    )
    draws: dict[Word, Annotated[list[Word], Field(min_length=3, max_length=3)]] = Field(
        default_factory=dict,
        description="generator: the argument that draws nothing where it is zero, and seed and offset behind the"
        " call (results of the forward overload, arguments of the backward one)",
    )


class AtenSurface(_Surface):
    """One clause under `aten:`."""

    forward: Annotated[Annotated[Text, Tag("text")] | Annotated[list[Text], Tag("list")], Discriminator(_kind)] = Field(
        default_factory=list, description="packets (add) or exact overloads (max.dim)"
    )
    backward: Annotated[Annotated[Text, Tag("text")] | Annotated[list[Text], Tag("list")], Discriminator(_kind)] = (
        Field(default_factory=list, description="overloads of the backward function")
    )
    rename: dict[Word, Word] = Field(default_factory=dict, description="C parameter: ATen argument")
    require: dict[Word, Any] = Field(default_factory=dict, description="ATen argument: the only value that binds")
    rank: dict[Word, int] = Field(
        default_factory=dict, description="ATen argument: the only number of dimensions that binds"
    )
    ignore: list[Word] = Field(default_factory=list, description="ATen arguments that the function does not take")
    derive: dict[Word, Plain] = Field(default_factory=dict, description="C parameter: a number or a C++ call")
    function: Word | None = Field(default=None, description="the only function that this clause binds")
    raises: Literal["IndexError"] | Annotated[str, Field(pattern=r"^\w+\(.*\)$")] | None = Field(
        default=None, description="where a position is out of range: a class, or a C++ call that tells it"
    )
    checks: list[Plain] = Field(default_factory=list, description="C++ calls that throw where torch refuses arguments")
    promote: list[Word] = Field(
        default_factory=list, description="ATen arguments that give the result its dtype; all unless said"
    )
    rounds: list[Word] = Field(
        default_factory=list,
        description="numbers that are rounded to the halves that they meet, as a tensor of them is",
    )
    memory_format: Literal["contiguous"] | None = Field(
        default=None, description="that of the results, where it is not that of the input"
    )
    channels_of: list[Word] = Field(
        default_factory=list,
        description="ATen tensors: a result with a shape of its own has its channels innermost where one of them has",
    )
    wrapper: Word | None = Field(default=None, description="a file of runtime_cpp/torch/ops")
    compiled: CompiledSurface | None = Field(default=None, description="operators that only graphs of a compiler have")


AtenEntry = Annotated[Annotated[Text, Tag("text")] | Annotated[AtenSurface, Tag("mapping")], Discriminator(_kind)]


class BackwardSurface(_Surface):
    """The `backward:` block."""

    name: Word | None = Field(default=None, description="the stem, where it is not <stem>Backward")
    grads: list[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\??$")]] = Field(
        min_length=1, description="arguments that get gradients; with ? the handle may be null"
    )
    grad_outputs: dict[Word, Word] = Field(default_factory=dict, description="parameter: output of the forward")
    keeps: dict[Word, Text | None] = Field(default_factory=dict, description="what else the function is given")
    attrs: list[Word] | None = Field(default=None, description="the other arguments that follow")
    order: list[Word] | None = Field(default=None, description="the C order, where it breaks the rule")
    c: dict[Word, Text] = Field(default_factory=dict, description="C types that break the rule")
    math: Text | None = Field(default=None, description="TeX")
    kernel: Plain | None = Field(default=None, description="an elementwise expression over the parameters")
    compose: list[StatementEntry] = Field(default_factory=list, description="the calls that it is composed of")


class OpSurface(_Surface):
    """One entry of schemas/ops."""

    doc: Text = Field(description="what the op does, in sentences")
    math: Text | None = Field(default=None, description="TeX")
    header: Header = Field(default="functions", description="the header that declares it")
    deprecated: Text | None = Field(default=None, description="what to use instead")
    name: Word | None = Field(default=None, description="the symbol's stem after diopi")
    args: dict[Word, ArgLine] = Field(description="one type line per argument")
    out: Annotated[
        Annotated[OutLine, Tag("text")] | Annotated[dict[Word, OutLine], Tag("mapping")], Discriminator(_kind)
    ] = Field(default_factory=dict, description="one type line, or one per output")
    where: dict[
        Word,
        Annotated[Annotated[Text, Tag("text")] | Annotated[list[Text], Tag("list")], Discriminator(_kind)],
    ] = Field(default_factory=dict, description="what each element variable may be")
    variants: list[Literal["out", "inplace"]] = Field(
        default=["out"], min_length=1, description="forms of the function: with an output, in place"
    )
    names: dict[FormName, Word | None] = Field(default_factory=dict, description="stems that break the rule")
    order: list[Word] | None = Field(default=None, description="the C order, where it breaks the rule")
    c: dict[Word, Text] = Field(default_factory=dict, description="C types that break the rule")
    layouts: list[LayoutName] = Field(default_factory=list, description="memory layouts that images may have")
    kernel: Plain | None = Field(default=None, description="an elementwise expression over the arguments")
    reduce: Reduction | None = Field(default=None, description="what the elements along `dim` become one by")
    compose: list[StatementEntry] = Field(default_factory=list, description="the calls that it is composed of")
    backward: BackwardSurface | None = Field(default=None, description="the function of the gradients")
    aten: Annotated[
        Annotated[Text, Tag("text")] | Annotated[AtenSurface, Tag("mapping")] | Annotated[list[AtenEntry], Tag("list")],
        Discriminator(_kind),
    ] = Field(default_factory=list, description="the ATen operators behind it")
    tolerance: dict[Word, int | float | list[int | float]] = Field(
        default_factory=dict, description="by dtype: how far results may be off, relative or [relative, absolute]"
    )
    check: CheckName = Field(default=CLOSE.name, description="how results are judged")
    data: dict[Word, Plain] = Field(default_factory=dict, description="how values are drawn")
    cases: list[dict[Word, Any]] = Field(
        default_factory=list, description="calls to test: by argument its shape or value"
    )


class OpFile(RootModel[dict[OpName, OpSurface]]):
    """A file of schemas/ops."""


KEY_ORDER = tuple(OpSurface.model_fields)  # the order that `fmt` keeps
