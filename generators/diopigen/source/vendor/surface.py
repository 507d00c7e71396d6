"""The shape of vendor.yaml."""

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
        BeforeValidator(_listed),
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
    foreign: Annotated[list[Text], Field(description="folders of headers that the search does without")] = Field(
        default_factory=list
    )
