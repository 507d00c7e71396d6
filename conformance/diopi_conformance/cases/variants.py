"""What a run changes in all its cases: their random numbers, the order of images in memory, the width of indices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from diopi_conformance.cases.plan import Case, CasePlan, Function
from diopigen.vocabulary.draws import DRAWS
from diopigen.vocabulary.layouts import IMAGES

_INDICES = tuple(f"{draw.name}(" for draw in DRAWS if draw.positions)  # recipes of positions in other tensors


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How a run takes its cases; the usual is none of it."""

    seed: int = 0
    nhwc: bool = False  # images of functions that have the choice lie with their channels innermost
    four_bytes: bool = False  # tensors of indices are int32

    def document(self) -> dict[str, int | bool]:
        """For JSON."""
        return {"seed": self.seed, "nhwc": self.nhwc, "four_bytes": self.four_bytes}

    @property
    def options(self) -> tuple[str, ...]:
        """What commands are told to have their cases so, too, e.g. ("--seed", "1", "--nhwc")."""
        seed = ("--seed", str(self.seed)) if self.seed else ()
        return (*seed, *(("--nhwc",) if self.nhwc else ()), *(("--four-bytes",) if self.four_bytes else ()))


def varied(plan: CasePlan, cases: Iterable[Case], variant: Variant) -> tuple[Case, ...]:
    """The cases as the variant has them; their ids stay."""
    images = {case.function for case in plan.cases if case.layout == IMAGES.word} if variant.nhwc else set()
    return tuple(_varied(plan, case, variant, case.function in images) for case in cases)


def _varied(plan: CasePlan, case: Case, variant: Variant, image: bool) -> Case:
    function = plan.functions[case.function]
    found = case if variant.seed == case.seed else replace(case, seed=variant.seed)
    if image and not case.layout:
        found = replace(found, layout=IMAGES.word)
    if variant.four_bytes:
        dtypes, forward = _narrow(function, case.dtypes), case.forward
        if function.plain:
            forward = _narrow(plan.functions[function.plain], case.forward)
        found = replace(found, dtypes=dtypes, forward=forward)
    return found


def _narrow(function: Function, dtypes: Mapping[str, str]) -> dict[str, str]:
    """The types of the function's tensors with indices in int32."""
    indices = {p.name for p in function.params if function.data.get(p.arg, "").startswith(_INDICES)}
    return {name: "i32" if name in indices and dtype == "i64" else dtype for name, dtype in dtypes.items()}
