"""Every ATen overload that such backends serve is served: by a wrapper, a derivation, or torch's decomposition."""

import json
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.source.cpp.written_files import written_files
from tests.processes import ROOT
from tests.torch.decompositions import DECOMPOSITIONS

WANTED = json.loads((Path(__file__).parent / "overloads.json").read_text(encoding="utf-8"))["overloads"]


def test_every_overload_is_served(checkout: Project) -> None:
    diagnostics = Diagnostics()
    bound = {b.overload.name for b in pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN).bindings}
    files = written_files(ROOT / "runtime_cpp" / "torch", "runtime_cpp/torch")
    derived = {mention.name for file in files if file.derives for r in file.registrations for mention, _ in r.overloads}
    served = bound | {name for name in WANTED if name.replace(".", "_") in derived}
    assert len(WANTED) == 361
    assert [name for name in WANTED if name not in served and name not in DECOMPOSITIONS] == []
    assert [name for name in DECOMPOSITIONS if name in bound or name not in WANTED] == []
