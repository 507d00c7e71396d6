"""A coverage as JSON, for programs."""

import json
from typing import Any

from diopigen.targets.coverage.figures import Figures
from diopigen.targets.coverage.rows import Cell, Row
from diopigen.targets.coverage.totals import Coverage, Total

VERSION = 1


def document(coverage: Coverage) -> str:
    """The text of the document, one function a line."""
    head = {
        "version": VERSION,
        "vendor": coverage.vendor,
        "total": _total(coverage.all),
        "headers": {total.name: _total(total) for total in coverage.headers},
        "topics": {total.name: _total(total) for total in coverage.topics},
        "aten": {"bound": list(coverage.bound), "served": list(coverage.served)},
        "conformance": _run(coverage),
    }
    functions = ",\n  ".join(json.dumps(_row(row)) for row in coverage.rows)
    return f'{json.dumps(head, indent=1)[:-2]},\n "functions": [\n  {functions}\n ]\n}}\n'


def _total(total: Total) -> dict[str, Any]:
    return {
        "functions": total.functions,
        "implemented": total.implemented,
        "states": {state.value: count for state, count in total.states},
        "converted": total.converted,
        "cases": _figures(total.figures),
    }


def _run(coverage: Coverage) -> dict[str, Any] | None:
    run = coverage.run
    return None if run is None else {"planned": run.planned, **_figures(run.total)}


def _figures(figures: Figures) -> dict[str, Any]:
    return {"passed": figures.passed, "lacking": figures.lacking, "bad": figures.bad, "ulp": figures.ulp}


def _row(row: Row) -> dict[str, Any]:
    return {
        "symbol": row.function.symbol,
        "op": row.function.op,
        "form": row.function.form.value,
        "topic": row.topic,
        "header": row.function.header,
        "state": row.state.value,
        "source": row.source or None,
        "dtypes": {cell.dtype.name: _cell(cell) for cell in row.cells},
        "conversions": [
            {
                "param": conversion.param,
                "casts": {cast.source.name: cast.target.name for cast in conversion.casts},
                "layouts": list(conversion.layouts),
                "contiguous": conversion.contiguous,
            }
            for conversion in row.conversions
        ],
        "aten": list(row.overloads),
        "cases": _figures(row.figures),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    entry: dict[str, Any] = {"state": cell.state.value, "cases": _figures(cell.figures)}
    if cell.casts:
        entry["to"] = {param: target.name for param, target in cell.casts}
    return entry
