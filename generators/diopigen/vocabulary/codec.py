"""The vocabulary as JSON: what is emitted from dtypes.yaml, and what others read."""

import json
from dataclasses import asdict
from typing import Any

from diopigen.vocabulary.dtype import DType, DTypes, DTypeSet, Kind


def vocabulary_text(dtypes: DTypes) -> str:
    """A line for each element type and for each set."""
    rows = [json.dumps({**asdict(dtype), "kind": dtype.kind.value}) for dtype in dtypes.types]
    sets = [f"{json.dumps(each.name)}: {json.dumps([t.name for t in each.members])}" for each in dtypes.sets]
    listed = ",\n  ".join(rows), ",\n  ".join(sets)
    return f'{{"types": [\n  {listed[0]}\n ],\n "sets": {{\n  {listed[1]}\n }}}}\n'


def dtypes_of(document: dict[str, Any]) -> DTypes:
    """What vocabulary_text() was made of."""
    rows = document["types"]
    types = tuple(DType(**{**row, "kind": Kind(row["kind"]), "also": tuple(row["also"])}) for row in rows)
    sets = (
        DTypeSet(name=name, members=tuple(t for t in types if t.name in names))
        for name, names in document["sets"].items()
    )
    return DTypes(types=types, sets=tuple(sets))
