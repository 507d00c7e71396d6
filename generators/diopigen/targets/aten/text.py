"""Lines of C++ that fit the page."""

from collections.abc import Sequence

WIDTH = 116  # a body is indented by four


def cpp_type(spelled: str) -> str:
    """torchgen's spelling of a type in ours: `at::Tensor &` is `at::Tensor&`."""
    return spelled.replace(" &", "&").replace("::std::", "std::")


def folded(head: str, items: Sequence[str], tail: str) -> tuple[str, ...]:
    """`head item, item tail` on one line, or with the items below, indented by four, as many as fit a line."""
    whole = f"{head}{', '.join(items)}{tail}"
    if len(whole) <= WIDTH:
        return (whole,)
    lines, current = [head], "    "
    for index, item in enumerate(items):
        text = item + (", " if index < len(items) - 1 else tail)
        if current.strip() and len(current) + len(text.rstrip()) > WIDTH:
            lines.append(current.rstrip())
            current = "    "
        current += text
    return (*lines, current.rstrip())
