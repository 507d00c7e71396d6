"""Every environment variable that the tools read, with its meaning; the only place that reads them.

They are read where they are needed, and none is written: what is set is inherited by children, and what is not set
means the same in a child.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from op_tools.names import NameList

T = TypeVar("T")


class BadVariable(ValueError):
    """A variable has a value that means nothing; the text says which, and what to set it to."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable, or a family of them where the name has a part in capitals between angle brackets."""

    name: str  # e.g. "OP_CAPTURE_LIST"
    default: str
    meaning: str


# e.g. "CAPTURE" of OP_CAPTURE_LIST and OP_CAPTURE_DISABLE_LIST
LISTED = ("CAPTURE", "AUTOCOMPARE", "TIME_MEASURE", "FALLBACK", "DTYPE_CAST", "OBSERVE", "OVERFLOW_CHECK", "RECORD")

LIST = "OP_{}_LIST"
DISABLE_LIST = "OP_{}_DISABLE_LIST"
DTYPE_CAST = "OP_DTYPE_CAST_DICT"
TOLERANCE = "AUTOCOMPARE_ERROR_TOLERANCE"
MAX_ROWS = "OP_TOOLS_MAX_CACHE_SIZE"
PRINT_STACK = "OP_TOOLS_PRINT_STACK"
RESULTS = "OP_TOOLS_RESULTS_DIR"
LABEL = "label"

VARIABLES = (
    *(
        Variable(LIST.format(tool), ".*", "operators that the tool is for: names or regular expressions")
        for tool in LISTED
    ),
    *(
        Variable(DISABLE_LIST.format(tool), "", "operators that it leaves alone, whatever the list says")
        for tool in LISTED
    ),
    Variable(
        DTYPE_CAST,
        "torch.float16->torch.float32,torch.bfloat16->torch.float32",
        "what OpDtypeCast computes in, on the device; read at each call",
    ),
    Variable(
        "<OP>_OP_DTYPE_CAST_DICT",
        "",
        "what the reference of one operator is computed in, e.g. LINEAR_OP_DTYPE_CAST_DICT",
    ),
    Variable(TOLERANCE, "", "`absolute,relative` for every dtype, in place of the schemas' tolerance"),
    Variable(f"{TOLERANCE}_<DTYPE>", "", "the same for one dtype, e.g. AUTOCOMPARE_ERROR_TOLERANCE_FLOAT16"),
    Variable(f"<OP>_{TOLERANCE}_<DTYPE>", "", "the same for one operator and dtype; wins"),
    Variable(MAX_ROWS, "1000", "rows of a table that are kept before they are written"),
    Variable(PRINT_STACK, "0", "1: print the Python stack of each call that a tool looks at"),
    Variable(RESULTS, "op_tools_results", "the folder that results go to"),
    Variable(LABEL, "", "a part of the name of the file that op-tools monitor writes"),
    # The package ditorch reads this one itself: it needs nothing of the tools.
    Variable("DITORCH_DISABLE_MOCK", "0", "1: import ditorch leaves torch as it is"),
    Variable(
        "DITORCH_SHOW_DEVICE_AS_CUDA", "1", "changes nothing: a device of dipu is equal to one of cuda in any case"
    ),
)


def variable(name: str) -> str:
    """The value of one of VARIABLES, its default where it is not set."""
    found = os.environ.get(name)
    return found if found is not None else next((v.default for v in VARIABLES if v.name == name), "")


def enabled(tool: str) -> NameList:
    """The operators that OP_<tool>_LIST names. Raises BadVariable for what is no regular expression."""
    return read(LIST.format(tool), NameList.of)


def disabled(tool: str) -> NameList:
    """The operators that OP_<tool>_DISABLE_LIST names. Raises BadVariable for what is no regular expression."""
    return read(DISABLE_LIST.format(tool), NameList.of)


def read(name: str, meaning: Callable[[str], T]) -> T:
    """What a variable means. Raises BadVariable where `meaning` raises ValueError, with its text."""
    try:
        return meaning(variable(name))
    except ValueError as error:
        raise BadVariable(f"{name}: {error}") from None


def flag(name: str) -> bool:
    """Whether a variable is set, to another number than 0. Raises BadVariable where it is not a number."""
    return variable(name) != "" and count(name) > 0


def count(name: str, *, default: int | None = None) -> int:
    """A variable that is a whole number; `default` comes before its own. Raises BadVariable where it is none."""
    text = variable(name) if default is None else os.environ.get(name, str(default))
    if not text.isdecimal():
        raise BadVariable(f"{name} is '{text}': set it to a whole number")
    return int(text)


def tolerance(operators: tuple[str, ...], dtype: str) -> tuple[float, float] | None:
    """The absolute and relative error that the environment allows, e.g. of ("LINEAR", "ADDMM") in "bfloat16".

    That of an operator and dtype comes before that of a dtype, which comes before that of all. Raises BadVariable for a
    text that is no pair of numbers.
    """
    suffix = f"{TOLERANCE}_{dtype.upper()}"
    for name in (*(f"{operator}_{suffix}" for operator in operators), suffix, TOLERANCE):
        text = os.environ.get(name, "")
        if text.strip():
            return _pair(name, text)
    return None


def _pair(name: str, text: str) -> tuple[float, float]:
    try:
        absolute, relative = (float(part) for part in text.split(","))
    except ValueError:
        absolute = relative = -1.0
    if not (absolute >= 0 and relative >= 0):
        raise BadVariable(f"{name} is '{text}': set it to two numbers that are not negative, 'absolute,relative'")
    return absolute, relative
