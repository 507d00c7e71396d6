"""How the outputs of a function are judged: what `check` of a schema names."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One way to judge; conformance/judgement has what it does."""

    name: str
    exact: bool = False  # no error is allowed
    positions: bool = False  # an output holds positions, which ties may permute
    random: bool = False  # only the distribution of the numbers is known

    @property
    def ordered(self) -> bool:
        """Of functions that copy, compare and count, whatever the numbers are."""
        return self.exact or self.positions


CLOSE = Check(name="close")
CORNERS = Check(name="corners")
LEADING = Check(name="leading")
VALUES_BY_INDICES = Check(name="values_by_indices", positions=True)
INDICES_BY_VALUES = Check(name="indices_by_values", positions=True)
CHECKS = (
    CLOSE,
    Check(name="exact", exact=True),
    VALUES_BY_INDICES,
    INDICES_BY_VALUES,
    LEADING,
    CORNERS,
    Check(name="distribution", random=True),
)
CHECK = {check.name: check for check in CHECKS}  # e.g. CHECK["exact"].exact
