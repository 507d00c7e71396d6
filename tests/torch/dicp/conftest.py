"""Programs compiled for dipu: a fresh compiler for each test, and a cache of programs for all of them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of programs that goes with the session."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def compiling(libraries: Path) -> Path:
    """The folder of libraries for which programs can be compiled."""
    if not (libraries / "compiler" / "target.json").exists():
        pytest.skip("a vendor with a launcher is not built")
    return libraries


@pytest.fixture
def compiler(torch: Any, compiling: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """dicp's backend over the built vendor, with no compilation remembered."""
    for name in [name for name in os.environ if name.startswith("DICP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DICP_CACHE", str(programs))
    from dicp import explain
    from dicp.backend import diopi

    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    explain.forget()
    yield diopi
    explain.forget()
    torch.compiler.reset()


@pytest.fixture
def compiled(torch: Any, compiler: Any) -> Callable[..., Callable[..., Any]]:
    """torch.compile for one graph; an interruption of the graph is an error."""

    def make(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return torch.compile(function, backend=compiler, **{"fullgraph": True, "dynamic": False, **options})

    return make


@pytest.fixture
def reports(compiler: Any) -> Callable[[], list[Any]]:
    """What became of each graph so far."""
    from dicp import explain

    return lambda: list(explain.reports())
