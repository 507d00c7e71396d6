"""The shape of a vendor's known_failures.yaml, which the conformance suite reads."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

Bad = Literal["fail", "not-implemented", "crash", "timeout", "leak"]  # of the verdicts of the suite
Text = Annotated[str, Field(min_length=1)]


class KnownFailure(BaseModel):
    """A case, or a pattern of cases, that is known to fail."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    id: Text = Field(description="a case or a shell pattern of cases, e.g. cumsum/f16/*")
    verdict: Bad | None = Field(default=None, description="only this way to fail; left out: any but a missing function")
    reason: Text = Field(description="why the vendor cannot fix it now")
    expires: date = Field(strict=False, description="the day to look again, e.g. 2027-03-31")


class KnownFailures(RootModel[list[KnownFailure] | None]):
    """A known_failures.yaml."""
