"""The shape of vendor.yaml, and of an entry of convert_config.yaml."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]


def _listed(value: Any) -> Any:
    """One name stands for a list of one, and no value for none."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


class VendorSurface(BaseModel):
    """vendor.yaml: what a folder of vendors/ holds and how its sources are read."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    doc: Annotated[Text, Field(description="one sentence on the chip")]
    name: Annotated[
        Text | None, Field(pattern=r"^[a-z][a-z0-9_]*$", description="the vendor's name, if it is not its folder's")
    ] = None
    base: Annotated[
        list[Text],
        BeforeValidator(_listed, json_schema_input_type=Text | list[Text] | None),
        Field(description="whose functions fill the gaps, first to last: portable, or folders of vendors/"),
    ] = Field(default_factory=list)
    generate: Annotated[Literal["aten"] | None, Field(description="what is generated: aten, calls of PyTorch")] = None
    sources: Annotated[
        list[Text] | None, Field(description="folders or files with the vendor's functions; all of the folder")
    ] = None
    include_dirs: Annotated[list[Text], Field(description="folders with headers, from vendors/<name>/")] = Field(
        default_factory=list
    )
    schemas: Annotated[
        list[Text], BeforeValidator(_listed), Field(description="folders with entries of operators of its own")
    ] = Field(default_factory=list)
    defines: Annotated[list[Text], Field(description="macros: NAME or NAME=value")] = Field(default_factory=list)
    without_patterns: Annotated[
        list[Text], Field(description="patterns of patterns.yaml that its torch.compile leaves alone")
    ] = Field(default_factory=list)
    channels_innermost: Annotated[
        dict[Text, list[Text]],
        Field(description="element types for which torch.compile gives the images of an op channels innermost"),
    ] = Field(default_factory=dict)
    separate_elements: Annotated[
        list[Literal["batch_norm", "bmm", "convolution2d"]],
        Field(description="ops whose elementwise part, e.g. a bias, torch.compile computes in the loops around them"),
    ] = Field(default_factory=list)
    foreign: Annotated[list[Text], Field(description="folders of headers that the search does without")] = Field(
        default_factory=list
    )


Casts = Text | list[Text]


class ConversionSurface(BaseModel):
    """An entry of convert_config.yaml: what the chip lacks for one function, or for those listed under `ops`."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    dtype: Annotated[Casts | None, Field(description="of every tensor: (float64)->float32, several with commas")] = None
    tensor_dtype: Annotated[
        Text | dict[Text, Casts] | None, Field(description="of single arguments: {bias: (float16)->float32}")
    ] = None
    layout: Annotated[Casts | None, Field(description="memory layouts: NCHW, or of one argument: weight(NHWC)")] = None
    contiguous: Annotated[
        bool | Casts | None, Field(description="whether tensors must be contiguous, or the arguments that must be")
    ] = None
    supportComposite: Annotated[bool | None, Field(description="whether the function may be composed of others")] = None
    implementation: Annotated[
        Text | None, Field(description="whose code implements the function: portable, or a namespace")
    ] = None


class ListedSurface(ConversionSurface):
    """An entry of convert_config.yaml for several functions."""

    ops: Annotated[list[Text] | None, Field(description="the functions that the entry is about")] = None


FUNCTIONS = r"^(diopi\w+|common_config)$"  # the keys of an entry that are not properties
