"""Lines of C++ that fit the page."""

from collections.abc import Sequence

WIDTH = 120


def cpp_type(spelled: str) -> str:
    """torchgen's spelling of a type in ours: `at::Tensor &` is `at::Tensor&`."""
    return spelled.replace(" &", "&").replace("::std::", "std::")


def folded(head: str, items: Sequence[str], tail: str, indent: int = 4) -> tuple[str, ...]:
    """`head item, item tail` on one line, or with the items below, indented by four, as many as fit a line.

    The template indents all of it by `indent`.
    """
    width = WIDTH - indent
    whole = f"{head}{', '.join(items)}{tail}"
    if len(whole) <= width:
        return (whole,)
    lines, current = [head], "    "
    for index, item in enumerate(items):
        text = item + (", " if index < len(items) - 1 else tail)
        if current.strip() and len((current + text).rstrip()) > width:
            lines.append(current.rstrip())
            current = "    "
        current += text
    return (*lines, current.rstrip())


def folded_choice(head: str, conditions: Sequence[str], tail: str, indent: int = 4) -> tuple[str, ...]:
    """`head a || b tail` on one line, or with each condition on its own, aligned."""
    return _joined(head, conditions, " ||", tail, indent)


def folded_all(head: str, conditions: Sequence[str], tail: str, indent: int = 4) -> tuple[str, ...]:
    """The same of `head a && b tail`."""
    return _joined(head, conditions, " &&", tail, indent)


def _joined(head: str, conditions: Sequence[str], joint: str, tail: str, indent: int) -> tuple[str, ...]:
    whole = f"{head}{f'{joint} '.join(conditions)}{tail}"
    if len(whole) <= WIDTH - indent:
        return (whole,)
    *others, last = conditions
    lines = [f"{other}{joint}" for other in others] + [f"{last}{tail}"]
    return (f"{head}{lines[0]}", *(" " * len(head) + line for line in lines[1:]))


def chained(lines: Sequence[str], conditions: Sequence[str], indent: int = 8) -> tuple[str, ...]:
    """The expression `lines` with `&& condition` for each condition and a semicolon, on as few lines as it takes."""
    *done, current = lines
    for condition in conditions:
        if len(current) + len(f" && {condition};") > WIDTH - indent:
            done.append(current)
            current = "   "
        current += f" && {condition}"
    return (*done, f"{current};")
