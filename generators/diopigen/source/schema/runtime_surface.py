"""The shape of dtypes.yaml and runtime.yaml."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]


class _Surface(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class DTypeSurface(_Surface):
    word: Text
    value: Annotated[int, Field(ge=0, le=2**31 - 1)]
    size: Annotated[int, Field(ge=0)]
    kind: Literal["bool", "integer", "float", "complex"]
    signed: bool = True
    digits: Annotated[int, Field(ge=0, le=53)] = 0
    exponent: Annotated[int, Field(ge=0, le=11)] = 0
    finite: bool = False
    cpp: Text | None = None
    torch: Text | None = None
    scalar_type: Text | None = None
    numpy: Text | None = None
    also: list[Text] = []


class DTypesSurface(_Surface):
    """dtypes.yaml."""

    types: dict[str, DTypeSurface]
    sets: dict[str, list[str]]


class EnumSurface(_Surface):
    doc: Text
    header: Literal["diopirt", "collectives"] = "diopirt"
    dtypes: Text | None = Field(default=None, description="a prefix: an enumerator for each element type")
    values: dict[str, Annotated[list[int | str], Field(min_length=2, max_length=2)]]


class FunctionTypeSurface(_Surface):
    c: Text
    doc: Text


class RuntimeFunctionSurface(_Surface):
    header: Literal["diopirt", "functions", "diopi_register"] = "diopirt"
    linkage: Text
    c: Text
    doc: Text


class TableEntrySurface(_Surface):
    type: Text | None = None
    c: Text | None = None
    doc: Text | None = None
    required: bool = False


class TableSurface(_Surface):
    version: int
    entries: dict[str, TableEntrySurface]


class RuntimeSurface(_Surface):
    """runtime.yaml."""

    version: Annotated[list[Annotated[int, Field(ge=0, le=9999)]], Field(min_length=3, max_length=3)]
    enums: dict[str, EnumSurface]
    function_types: dict[str, FunctionTypeSurface]
    functions: dict[str, RuntimeFunctionSurface]
    device: TableSurface
    collectives: TableSurface
