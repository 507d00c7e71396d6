"""Reads the calls that models' training steps make, and gives them as cases of a plan.

A data folder holds `models.json`, the models' names in the order in which they were added, and a file of JSON lines for
each family of operators. There a line with a mapping says what the cases after it share; a line with a list is one
case: its number, its values, the positions of its models, and, where it has its own, recipes of tensors' elements.
Numbers count within a function and are never given again, so an id stays what it is when models are added.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diopi_conformance.cases.plan import Case, CasePlan, Function
from diopigen.atomic import MALFORMED
from diopigen.records.codec import typed
from diopigen.records.plan import number

DATA = Path(__file__).parent.parent / "models"
NAMES = "models.json"


class ModelDataError(Exception):
    """A data folder cannot be read; the text says where."""


def model_names(folder: Path = DATA) -> tuple[str, ...]:
    """The models in the order in which they were added; none where the folder has no data."""
    path = folder / NAMES
    if not path.is_file():
        return ()
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except MALFORMED as error:
        raise ModelDataError(f"{path}: {error}") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelDataError(f"{path}: a list of names is wanted")
    return tuple(names)


def model_cases(plan: CasePlan, folder: Path = DATA) -> tuple[Case, ...]:
    """The cases of every function that `plan` has; sorted by family, function and number within equal types.

    Raises ModelDataError for a line that is no case.
    """
    names = model_names(folder)
    return tuple(case for path in sorted(folder.glob("*.jsonl")) for case in _read(path, plan, names))


def _read(path: Path, plan: CasePlan, names: tuple[str, ...]) -> Iterator[Case]:
    shared: dict[str, Any] = {}
    function: Function | None = None
    prefix = ""
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entry = json.loads(text)
            if isinstance(entry, dict):
                shared = entry
                function = plan.functions.get(shared["function"])
                prefix = "" if function is None else _prefix(function, shared)
            elif function is not None:
                yield _case(function, shared, prefix, entry, names)
        except MALFORMED as error:
            raise ModelDataError(f"{path}:{line}: this is no case ({error})") from None


def _prefix(function: Function, shared: dict[str, Any]) -> str:
    """The id up to the number, e.g. "convolution2d/f32/nhwc/model"."""
    axes = (shared.get("layout", ""), shared.get("view", ""))
    return "/".join((function.word, shared["elements"], *(word for word in axes if word), "model"))


def _case(function: Function, shared: dict[str, Any], prefix: str, entry: list[Any], names: tuple[str, ...]) -> Case:
    row, values, models, *data = entry
    own = {
        "id": f"{prefix}/{row}",
        "values": {name: number(value) for name, value in values.items()},
        "data": dict(*data),
        "models": [names[position] for position in models],
    }
    return typed(Case, {**shared, **own})
