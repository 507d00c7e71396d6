"""The shape of vendor.yaml."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]


class VendorSurface(BaseModel):
    """vendor.yaml: what a folder of vendors/ holds and how its sources are read."""

    model_config = ConfigDict(extra="forbid", strict=True)

    doc: Annotated[Text, Field(description="one sentence on the chip")]
    base: Annotated[Text | None, Field(description="whose functions fill the gaps: portable")] = None
    generate: Annotated[Literal["aten"] | None, Field(description="what is generated: aten, calls of PyTorch")] = None
    sources: Annotated[list[Text], Field(description="folders or files with the vendor's functions")] = Field(
        default_factory=lambda: ["functions"]
    )
    include_dirs: Annotated[list[Text], Field(description="folders with headers, from vendors/<name>/")] = Field(
        default_factory=list
    )
    defines: Annotated[list[Text], Field(description="macros: NAME or NAME=value")] = Field(default_factory=list)
    foreign: Annotated[list[Text], Field(description="folders of headers that the search does without")] = Field(
        default_factory=list
    )
