"""A vendor's own target: what it overrides is what its programs are made with."""

import itertools
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dicp.operators import NoTable, table
from dicp.patterns.table import pattern_table
from dicp.target import Target
from diopigen.records.operators import Operators
from diopigen.records.patterns import Patterns


def test_a_target_of_its_own_emits_builds_and_loads(torch: Any, compiler: Any) -> None:
    from dicp.backend import backend, vendor_target
    from dicp.emit.source import Emitted
    from dicp.program import Program, View

    seen: list[str] = []

    class Own(Target):
        def emit(self, program: Program, watched: Sequence[View]) -> Emitted:
            seen.append("emit")
            made = super().emit(program, watched)
            return Emitted(
                source=made.source + "\nDIOPI_PROGRAM_EXPORT int own_mark() { return OWN_MARK; }\n",
                specification=made.specification,
                watched=made.watched,
            )

        def command(self, source: Path, library: Path) -> list[str]:
            seen.append("command")
            return [*super().command(source, library), "-DOWN_MARK=7"]

        def load(self, emitted: Emitted, library: Path) -> Any:
            seen.append("load")
            return super().load(emitted, library)

    base = vendor_target()
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    run = torch.compile(lambda x: (x * 2).exp(), backend=backend("own", lambda: Own(**fields)), fullgraph=True)
    x = torch.randn(5)
    torch.testing.assert_close(run(x.to("dipu")).cpu(), (x * 2).exp())
    assert seen == ["emit", "command", "load"]


def trained(torch: Any, target: type[Target]) -> None:
    """A gradient, by programs that were not built before."""
    from dicp.backend import backend, vendor_target

    fields = {name: getattr(vendor_target(), name) for name in Target.__dataclass_fields__}
    salt = torch.rand(()).item()  # in both programs
    w, x = torch.randn(5, requires_grad=True, device="dipu"), torch.randn(3, 5, device="dipu")
    run = torch.compile(lambda w, x: (w.sin() * x * salt).exp(), backend=backend("own", lambda: target(**fields)))
    run(w, x).sum().backward()
    torch.testing.assert_close(w.grad.cpu(), (((w.sin() * x * salt).exp()) * x * salt * w.cos()).sum(0).detach().cpu())


def test_the_programs_of_a_step_are_built_side_by_side(torch: Any, compiler: Any) -> None:
    both = threading.Barrier(2)

    class Own(Target):
        def build(self, source: Path, library: Path) -> None:
            both.wait(timeout=60)
            super().build(source, library)

    trained(torch, Own)


@pytest.mark.parametrize("failing", [1, 2])
def test_a_program_that_cannot_be_built_is_an_error_of_the_first_call(torch: Any, compiler: Any, failing: int) -> None:
    built = itertools.count(1)

    class Own(Target):
        def command(self, source: Path, library: Path) -> list[str]:
            return [*super().command(source, library), *(["-frobnicate"] if next(built) == failing else [])]

    with pytest.raises(Exception, match=r"(?s)'own' raised.*BuildFailed: .*-frobnicate"):
        trained(torch, Own)


def test_the_backend_is_found_by_its_name(torch: Any, compiler: Any) -> None:
    assert "diopi" in torch._dynamo.list_backends()
    x = torch.randn(5)
    run = torch.compile(lambda x: x.exp() + 1, backend="diopi")
    torch.testing.assert_close(run(x.to("dipu")).cpu(), x.exp() + 1)


def test_an_option_that_means_nothing_is_said_so(torch: Any, compiler: Any) -> None:
    x = torch.randn(5, device="dipu")
    with pytest.raises(Exception, match="the backend diopi has no option 'fast'; its variables are in "):
        torch.compile(lambda x: x + 1, backend=compiler, options={"fast": True})(x)
    with pytest.warns(UserWarning, match="mode='max-autotune' changes nothing for the backend diopi"):
        torch.compile(lambda x: x + 2, backend=compiler, mode="max-autotune")(x)


@pytest.mark.parametrize("text", ["{", "[]", "{}", "[" * 100_000, '{"version": %d, "functions": {"f": 1}}'])
@pytest.mark.parametrize(
    ("name", "version", "read"),
    [
        ("target", 0, lambda path: Target.read(path.parents[1])),
        ("operators", Operators.__dataclass_fields__["version"].default, table),
        ("patterns", Patterns.__dataclass_fields__["version"].default, pattern_table),
    ],
)
def test_a_damaged_file_of_the_build_is_one_sentence(tmp_path, name, version, read, text):
    path = tmp_path / "compiler" / f"{name}.json"
    path.parent.mkdir()
    path.write_text(text.replace("%d", str(version)))
    with pytest.raises(NoTable, match=rf"^{re.escape(str(path))} is damaged \(.+\): run `make build`$"):
        read(path)
