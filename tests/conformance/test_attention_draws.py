"""Random parts of attention and sampling, of vendor torch and of the portable kernels: the suite has no cases for them,
for they keep a state.

`DIOPI_TORCH_BUILD` and `DIOPI_DROPLET_BUILD` name other builds than build/torch and build/droplet.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


TORCH = pytest.param("torch", marks=pytest.mark.deep("matrix", "the same of the portable kernels"))


@pytest.fixture(scope="module", params=[TORCH, "droplet"])
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    build = os.environ.get(f"DIOPI_{request.param.upper()}_BUILD", ROOT / "build" / request.param)
    libraries = [Path(build) / "lib" / f"lib{name}.so" for name in ("diopirt", "diopi_impl")]
    if not libraries[1].exists():
        pytest.skip(f"vendor {request.param} is not built: make build IMPL={request.param}")
    command = [sys.executable, Path(__file__).with_name("attention_draws.py"), *libraries]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout))


def test_the_gradient_drops_what_the_forward_dropped(found: dict[str, Any]) -> None:
    for call in [*found["dropout"], found["customized"]]:
        assert call["forward"] == pytest.approx(call["backward"], abs=0.1)


def test_dropout_keeps_the_mean_and_draws_anew(found: dict[str, Any]) -> None:
    first, second = found["dropout"]
    assert first["first"] != second["first"]
    assert 0.85 < first["mean"] < 1.15 and 0.85 < found["customized"]["mean"] < 1.15
    assert len(set(first["first"])) > 8  # without dropout all would be 1


@pytest.mark.parametrize("way", ["top_k", "top_p"])
def test_draws_follow_the_likeliest_tokens(found: dict[str, Any], way: str) -> None:
    tokens = [call["ids"][2][0] for call in found[way]]
    assert set(tokens) == {1, 2}  # 0 lies past the limit
    assert 70 < tokens.count(1) < 150  # of 200; 5 : 4, and 5 : 3.5 of the nucleus
    assert all(call["ids"][:2] == [[-1, -1], [-1, -1]] for call in found[way])


@pytest.mark.parametrize("way", ["top_k", "top_p"])
def test_sequences_end_and_stay_ended(found: dict[str, Any], way: str) -> None:
    for call in found[way]:
        assert call["ids"][2][1] == 3  # its end token again
        assert call["lengths"] == [5, 7]
        assert call["finished"] == [call["ids"][2][0] == 1, True]
