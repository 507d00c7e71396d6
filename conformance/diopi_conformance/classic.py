"""The established command line of conformance suites for this contract, in the words of ours.

`--mode gen_data`, `gen_case` and `run_test` are `data`, `plan` and `run`; their options have other names here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from diopi_conformance.cases.plan import CasePlan, PlanError, read_plan

MODES = ("gen_data", "gen_case", "run_test")
ALL = "all_ops"
_LIBRARY = "libdiopi_impl.so"


class ClassicError(Exception):
    """The options mean nothing here; the text says what does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classic:
    """The established options, with their established names."""

    mode: str = "run_test"
    fname: str = ALL  # an operator, a function in snake case, or a C symbol
    model_name: str = ""
    filter_dtype: tuple[str, ...] = ()  # types that are left out
    impl_folder: Path | None = None
    html_report: bool = False
    nhwc: bool = False
    four_bytes: bool = False


def translated(options: Classic, root: Path) -> list[str]:
    """The command of ours and its options; `root` holds generated/ and what earlier commands wrote.

    Raises ClassicError.
    """
    vendor, libraries = _vendor(options.impl_folder, root)
    words = ["--vendor", vendor]
    words += _functions(options.fname, root / "generated" / vendor / "conformance" / "plan.json")
    words += ["--model", options.model_name] if options.model_name else []
    words += [word for dtype in options.filter_dtype for word in ("--skip-dtype", dtype)]
    words += ["--nhwc"] if options.nhwc else []
    words += ["--four-bytes"] if options.four_bytes else []
    match options.mode:
        case "gen_data":
            return ["data", *words]
        case "gen_case":
            return ["plan", *words]
        case _:
            return ["run", *words, *_run_options(options, vendor, libraries, root)]


def _run_options(options: Classic, vendor: str, libraries: Path | None, root: Path) -> list[str]:
    words = [] if libraries is None else ["--libraries", str(libraries)]
    if (root / "conformance_data" / vendor / "index.json").exists():
        words += ["--data", str(Path("conformance_data") / vendor)]
    return words + (["--html", str(Path("conformance_results") / f"{vendor}.html")] if options.html_report else [])


def _vendor(folder: Path | None, root: Path) -> tuple[str, Path | None]:
    """The vendor, and the folder of its libraries where `folder` is that, e.g. build/droplet/lib, vendors/droplet."""
    vendors = sorted(path.name for path in (root / "generated").glob("*") if (path / "conformance").is_dir())
    known = (
        f"vendors with a plan are {', '.join(vendors)}" if vendors else "write a plan with 'diopigen all --vendor V'"
    )
    if folder is None:
        raise ClassicError(f"--impl_folder says whose library is meant, e.g. build/droplet/lib; {known}")
    place = folder if folder.is_absolute() else root / folder
    libraries = folder if (place / _LIBRARY).exists() else None
    found = next((name for name in reversed(place.parts) if name in vendors), None)
    if found is None:
        raise ClassicError(f"'{folder}' names no vendor; {known}")
    return found, libraries


def _functions(name: str, path: Path) -> list[str]:
    if name == ALL:
        return []
    try:
        plan = read_plan(path)
    except PlanError as error:
        raise ClassicError(str(error)) from None
    symbols = [f.symbol for f in plan.functions.values() if name in (f.op, f.word, f.symbol)]
    if not symbols:
        close = get_close_matches(name, _names(plan), n=1)
        hint = f"; did you mean '{close[0]}'?" if close else f"; '{ALL}' means all"
        raise ClassicError(f"there is no function '{name}'{hint}")
    return [word for symbol in symbols for word in ("--function", symbol)]


def _names(plan: CasePlan) -> Iterable[str]:
    return dict.fromkeys(n for f in plan.functions.values() for n in (f.op, f.word, f.symbol))
