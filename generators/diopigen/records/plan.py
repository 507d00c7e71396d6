"""plan.json: its version, and the numbers in it that JSON lacks."""

from typing import Any

PLAN_VERSION = 2

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def json_value(value: object) -> Json:
    """A value as JSON; infinities and NaN as {"float": "inf"}, which number() reads."""
    if isinstance(value, tuple | list):
        return [json_value(v) for v in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"no JSON for {value!r}")


def number(value: Any) -> Any:
    """What json_value() was given, lists in place of tuples."""
    if isinstance(value, dict):
        return float(value["float"])
    return [number(v) for v in value] if isinstance(value, list) else value
