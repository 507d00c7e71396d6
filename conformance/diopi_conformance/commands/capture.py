"""`diopi-conformance capture`: model cases from whatever a script does."""

import runpy
import sys
from pathlib import Path

import click

from diopi_conformance.cases.plan import PlanError
from diopi_conformance.places import own_vendor, places_of
from diopigen.verbosity import tell


@click.command("capture", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--name", required=True, help="The model's name, which --model takes.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("model_cases"),
    show_default=True,
    help="A data folder; what it holds stays.",
)
@click.option(
    "--vendor",
    default=lambda: own_vendor() or "droplet",
    show_default="droplet, or the vendor whose repository this is",
    help="Whose plan tries every case.",
)
@click.option("--plan", "plan_path", type=click.Path(path_type=Path), help="A plan.json.")
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(name: str, out: Path, vendor: str, plan_path: Path | None, script: Path, args: tuple[str, ...]) -> None:
    """Run SCRIPT with ARGS and keep each call that it makes of PyTorch as a case.

    Shapes, element types, numbers and memory orders are kept, values are not. The script runs on the CPU; one training
    step is enough. Torch is needed, and a vendor's plan.

    \b
    Examples:
      diopi-conformance capture --name mine train.py --steps 1
      diopi-conformance run --vendor droplet --models model_cases --model mine
    """
    try:
        from diopi_conformance.capture.context import NoContract, setting
        from diopi_conformance.capture.session import Session
        from diopi_conformance.capture.store import Store
        from diopi_conformance.capture.summary import summary
    except ModuleNotFoundError as error:
        raise click.UsageError(f"capturing needs torch on the CPU; install it ({error})") from None
    try:
        here = setting(plan_path or places_of(vendor).plan)
    except (NoContract, PlanError) as error:
        raise click.UsageError(str(error)) from None
    session = Session(here.program)
    with session.capturing():
        _run(script, args)
    store = Store(out)
    found = store.add(name, here.sound(session.cases.values()))
    store.write()
    click.echo(summary(session.tally, here.refused))
    tell(f"{found} new cases of {name}; {len(store)} in {out}")


def _run(script: Path, args: tuple[str, ...]) -> None:
    """The script as if Python itself had started it; its own exit with 0 is none of ours."""
    before, path = sys.argv, sys.path
    sys.argv, sys.path = [str(script), *args], [str(script.parent), *sys.path]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise click.ClickException(f"{script} ended with {ended.code}; nothing is written") from None
    except Exception as error:  # the script's, as Python itself would tell it
        sys.excepthook(type(error), error, error.__traceback__)
        raise click.ClickException(f"{script} ended with an exception; nothing is written") from None
    finally:
        sys.argv, sys.path = before, path
