"""Droplet with every function composed that can be: `python -m tests.e2e.composed FILE` writes its configuration."""

import sys
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.passes.composition.choose import reachable
from diopigen.passes.composition.derive import compositions
from diopigen.passes.composition.match_call import contract_of
from diopigen.project import Project

ROOT = Path(__file__).resolve().parents[2]
PRIMITIVES = ("diopiCastDtype", "diopiCopyInp", "diopiFill")  # what compositions are made of in the end


def composable() -> tuple[str, ...]:
    """The functions that can all be composed at once: what is left of droplet's own kernels serves their parts."""
    project, diagnostics = Project(root=ROOT), Diagnostics()
    program = pipeline.run(project, diagnostics, pipeline.Stage.VENDOR, vendor="droplet")
    assert program is not None
    assert not diagnostics.failed
    contract = contract_of(program.functions)
    found = {f.symbol: tuple(compositions(f, contract, program.dtypes)) for f in program.functions}
    ways = {symbol: several for symbol, several in found.items() if several and symbol not in PRIMITIVES}
    served = {plan.symbol for plan in program.plans}
    taken: list[str] = []
    for symbol in ways:
        asked = [*taken, symbol]
        if len(reachable({s: ways[s] for s in asked}, served - set(asked))) == len(asked):
            taken = asked
    return tuple(taken)


def main(file: Path) -> None:
    """Leaves a file that says the same already as it is."""
    text = f"- ops: [{', '.join(composable())}]\n  implementation: composite\n"
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
