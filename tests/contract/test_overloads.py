"""Every ATen overload that such backends serve is served: by a wrapper, or through torch's decomposition."""

import json
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from tests.torch.decompositions import DECOMPOSITIONS

WANTED = json.loads((Path(__file__).parent / "overloads.json").read_text(encoding="utf-8"))["overloads"]


def test_every_overload_is_served(checkout: Project) -> None:
    diagnostics = Diagnostics()
    bound = {b.overload.name for b in pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN).bindings}
    assert len(WANTED) == 361
    assert [name for name in WANTED if name not in bound and name not in DECOMPOSITIONS] == []
    assert [name for name in DECOMPOSITIONS if name in bound or name not in WANTED] == []
