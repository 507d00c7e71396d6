"""`op-tools export`: captured calls become conformance cases."""

import sys
from pathlib import Path

import click

from diopi_conformance.places import own_vendor, places_of
from diopigen.project import contract
from op_tools.commands.choice import chosen
from op_tools.names import NameList
from op_tools.store.reader import BadCapture


@click.command("export")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("model_cases"),
    show_default=True,
    help="A data folder of diopi-conformance; what it holds stays.",
)
@click.option("--name", default="captured", show_default=True, help="The model's name, which --model takes.")
@click.option("--only", metavar="OPS", default=".*", help="Only these operators, by name or regular expression.")
@click.option(
    "--vendor",
    default=lambda: own_vendor() or "droplet",
    show_default="droplet, or the vendor whose repository this is",
    help="Whose plan tries every case.",
)
@click.option("--plan", "plan_path", type=click.Path(path_type=Path), help="A plan.json.")
def command(folder: Path, out: Path, name: str, only: str, vendor: str, plan_path: Path | None) -> None:
    """Turn the captured calls in FOLDER into cases for diopi-conformance, for any vendor.

    A case has the function of the contract that serves the call, shapes, dtypes, memory order, views and numbers.
    Elements are drawn as the schemas say, but for positions, masks and counts, and for calls that were found wrong
    (op-tools run --compare --folder): those keep what they had, up to 1024 elements. Calls that become no case are
    listed with the reason. A vendor's plan is needed.

    The exit code is 1 where no call becomes a case, 2 where captures cannot be read.

    \b
    Examples:
      op-tools run train.py --capture
      op-tools export op_tools_results/op_capture_results --name train
      diopi-conformance run --vendor droplet --models model_cases --model train
    """
    from diopi_conformance.capture.context import NoContract, setting
    from diopi_conformance.capture.store import Store
    from diopi_conformance.capture.summary import summary
    from diopi_conformance.cases.model_cases import ModelDataError
    from diopi_conformance.cases.plan import PlanError
    from diopigen.verbosity import tell
    from op_tools.export import export

    try:
        here = setting(plan_path or _plan(vendor))
        store = Store(out)
        found = export(chosen(folder, NameList.of(only)), here, store, name)
    except (BadCapture, NoContract, PlanError, ModelDataError) as error:
        click.echo(f"op-tools: {error}", err=True)
        sys.exit(2)
    store.write()
    tell(f"{found.captures} captures")
    click.echo(summary(found.tally, here.refused))
    tell(f"{found.cases} new cases of {name}, {found.alike} calls repeat others; {len(store)} cases in {out}")
    sys.exit(0 if found.tally.mapped > here.refused.total() else 1)


def _plan(vendor: str) -> Path:
    """That of the working directory, else of the checkout that this package is of."""
    here = places_of(vendor).plan
    return here if here.exists() else contract().generated / vendor / "conformance" / "plan.json"
