"""What tests ask of a program."""

from typing import Any


def calls_of(report: Any) -> list[str]:
    """The functions of the vendor that it calls, in order."""
    from dicp.program import LibraryCall

    return [instruction.symbol for instruction in report.program.instructions if isinstance(instruction, LibraryCall)]
