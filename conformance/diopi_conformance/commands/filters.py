"""The options that choose cases, shared by every command that takes them."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from diopi_conformance.cases.model_cases import DATA, ModelDataError, model_cases
from diopi_conformance.cases.plan import Case, CasePlan, PlanError, read_plan
from diopi_conformance.cases.selection import Selection, sampled, shard, short_dtype
from diopi_conformance.cases.variants import Variant, varied
from diopi_conformance.expected.expectations import FILES
from diopi_conformance.places import own_vendor, places_of
from diopi_conformance.report import Report, read_report
from diopi_conformance.variables import variables
from diopigen.atomic import MALFORMED
from diopigen.verbosity import detail, tell

_FILTERS = (
    ("function", ("--function",), "Only these C functions, e.g. 'diopiAdd*'."),
    ("op", ("--op",), "Only these operators, e.g. 'max_pool*'."),
    ("family", ("--family", "--topic"), "Only operators of these schema files, e.g. 'pooling'."),
    ("dtype", ("--dtype",), "Only cases with a tensor of these types, e.g. 'bf16'."),
    ("layout", ("--layout",), "Only these memory orders of images, e.g. 'nhwc'."),
    ("view", ("--view",), "Only these memory views, e.g. 'strided'."),
    ("fill", ("--fill",), "Only these ways to draw values, e.g. 'special'."),
    ("change", ("--change",), "Only rows changed like this, e.g. 'zero'."),
    ("model", ("--model",), "Only calls that these models make, e.g. 'resnet*'."),
    ("id", ("--id",), "Only these cases, e.g. 'add/f32/*'."),
)

_CHANGES = (
    ("nhwc", "Images that have a choice lie with their channels innermost."),
    ("four_bytes", "Tensors of indices are int32 instead of int64."),
)

# For the help of a command with all of these.
SECTIONS = {
    "Which vendor": ("vendor", "plan_path", "libraries", "runtime", "known", "data"),
    "Which cases": (
        *(f"{name}_" for name, _, _ in _FILTERS),
        *("origin", "skip_dtype", "sample", "shard", "failed", "models", "references"),
    ),
    "How cases are changed": ("seed", *(name for name, _ in _CHANGES)),
    "What is reported": ("form", "html", "junit", "csv", "against", "out"),
}


def _references(context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]) -> None:
    """Every process of the run loads them where it computes a reference first."""
    for path in files:
        try:
            compile(path.read_bytes(), path, "exec")
        except (SyntaxError, ValueError) as error:
            line = f":{error.lineno}:{error.offset}" if isinstance(error, SyntaxError) else ""
            raise click.BadParameter(f"{path}{line}: {error.args[0]}") from error
    if files:
        context.with_resource(variables(**{FILES: os.pathsep.join(str(path.resolve()) for path in files)}))


def filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --vendor, --plan and the filters; their values reach `planned` as they are."""
    for name, spellings, text in reversed(_FILTERS):
        option = click.option(*spellings, f"{name}_", multiple=True, metavar="GLOB", help=text)
        command = option(command)
    origins = click.Choice(("row", "model"))
    command = click.option("--origin", type=origins, help="Only rows of schemas, or only calls of models.")(command)
    for name, text in _CHANGES:
        command = click.option(f"--{name.replace('_', '-')}", name, is_flag=True, help=text)(command)
    command = click.option("--seed", type=click.IntRange(0), default=0, help="Other random numbers, e.g. 1.")(command)
    command = click.option("--skip-dtype", multiple=True, metavar="DTYPE", help="No case with a tensor of this type.")(
        command
    )
    command = click.option("--shard", callback=_shard, metavar="I/N", help="Only the I-th of N parts, e.g. 3/16.")(
        command
    )
    command = click.option(
        "--sample", type=click.IntRange(1), metavar="N", help="Only N small cases of each function, float32 first."
    )(command)
    command = click.option(
        "--failed", type=click.Path(path_type=Path), metavar="REPORT", help="Only what failed in this report."
    )(command)
    command = click.option(
        "--references",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        multiple=True,
        expose_value=False,
        callback=_references,
        help="Python files with references of a vendor's own operators, as `reference_for` registers them.",
    )(command)
    command = click.option(
        "--models",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="DIOPI_MODEL_CASES",
        show_envvar=True,
        default=DATA,
        metavar="FOLDER",
        help="Model cases that 'capture' wrote; the suite's own where none is named.",
    )(command)
    command = click.option("--plan", "plan_path", type=click.Path(path_type=Path), help="A plan.json.")(command)
    return vendor_option(command)


def vendor_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --vendor."""
    text = "A folder of vendors/, or an installed vendor; needless in a vendor's own repository."
    return click.option("--vendor", callback=_named, help=text)(command)


def _named(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Raises MissingParameter where neither the option nor the folder says which vendor is meant."""
    found = name or own_vendor()
    if found is None and not context.resilient_parsing:
        raise click.MissingParameter(ctx=context, param=parameter)
    return found


def planned(vendor: str, path: Path | None, chosen: dict[str, Any]) -> tuple[CasePlan, tuple[Case, ...]]:
    """The plan and the cases that the filters leave. Raises click.UsageError where that is none."""
    try:
        path = path or places_of(vendor).plan
        plan = read_plan(path)
        plan = replace(plan, cases=plan.cases + model_cases(plan, chosen["models"]))
    except (PlanError, ModelDataError) as error:
        raise click.UsageError(str(error)) from None
    selection = Selection(
        functions=chosen["function_"],
        ops=chosen["op_"],
        topics=chosen["family_"],
        dtypes=chosen["dtype_"],
        layouts=chosen["layout_"],
        views=chosen["view_"],
        fills=chosen["fill_"],
        changes=chosen["change_"],
        models=chosen["model_"],
        ids=chosen["id_"],
        origin=chosen["origin"] or "",
    )
    cases = without(selection.of(plan), chosen["skip_dtype"])
    if failed := _failed_ids(chosen["failed"]):
        cases = tuple(case for case in cases if case.id in failed)
    if chosen["sample"] is not None:
        cases = sampled(cases, chosen["sample"])
    if chosen["shard"] is not None:
        cases = shard(cases, *chosen["shard"])
    if not cases:
        raise click.UsageError("the filters leave no case; 'diopi-conformance plan' lists them all")
    detail(f"{path} and {chosen['models']}: {len(plan.cases)} cases, {len(cases)} of them chosen")
    return plan, varied(plan, cases, variant_of(chosen))


def variant_of(chosen: dict[str, Any]) -> Variant:
    """What the options change in all cases."""
    return Variant(seed=chosen["seed"], nhwc=chosen["nhwc"], four_bytes=chosen["four_bytes"])


def without(cases: tuple[Case, ...], dtypes: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases that have no tensor of these types; says on the error stream how many that leaves out."""
    kept = cases
    for name in dtypes:
        short = short_dtype(name)
        less = tuple(case for case in kept if short not in (*case.dtypes.values(), *case.forward.values()))
        tell(f"--skip-dtype {name} leaves out {len(kept) - len(less)} cases", err=True)
        kept = less
    return kept


def report_at(path: Path) -> Report:
    """The report that a run wrote. Raises click.UsageError where it is none."""
    try:
        return read_report(path)
    except (OSError, *MALFORMED) as error:
        raise click.UsageError(f"{path} cannot be read as a report: {error}") from None


def _shard(_context: click.Context, _param: click.Parameter, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise click.BadParameter(f"'{text}' is not I/N with I from 1 to N, e.g. 3/16")
    return int(index), int(count)


def _failed_ids(path: Path | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    return frozenset(outcome.id for outcome in report_at(path).bad()) or frozenset({"nothing failed"})
