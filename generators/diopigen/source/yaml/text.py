"""Scalars of an entry of their own: a short one on its line, a long one folded under `>-`."""

import re

from diopigen.source.yaml.flow import WIDTH
from diopigen.source.yaml.layout import Text


def text_lines(text: Text, head: str, indent: int, column: int) -> list[str]:
    """`head` and the scalar behind it; `indent` is the entry's, `column` where the entry stood."""
    if text.style in ("|", ">"):
        return _block_lines(text, head, indent, column)
    line = f"{head} {text.source}".rstrip()
    whole = "\n" not in text.source and "\r" not in text.source
    if whole and len(line) <= WIDTH:
        return [line]
    if text.style is None and "\n" not in text.value and len(f"{head} {text.value}") <= WIDTH:
        return [f"{head} {text.value}"]
    folded = _folded(text.value, indent + 2)
    if folded is not None:
        return [f"{head} >-", *folded]
    first, *others = text.source.splitlines()
    return [f"{head} {first}".rstrip(), *(" " * (indent + 2) + other.strip() for other in others)]


def _block_lines(text: Text, head: str, indent: int, column: int) -> list[str]:
    """A literal or folded scalar: the author's line breaks stay, unless a folded line is too long."""
    first, *others = text.source.split("\n")
    header = re.match(r"[|>][-+0-9]*", first)
    assert header is not None
    marks = header.group()
    digit = re.search(r"\d", marks)
    filled = [line for line in others if line.strip()]
    base = column + int(digit.group()) if digit else min((len(ln) - len(ln.lstrip(" ")) for ln in filled), default=0)
    pad = " " * (indent + 2)
    lines = [(pad + line[base:]).rstrip() if line[base:].strip() else "" for line in others]
    if "+" not in marks:
        while lines and not lines[-1]:
            lines.pop()
    if text.style == ">" and any(len(line) > WIDTH for line in lines):
        lines = _folded(text.value.removesuffix("\n"), indent + 2) or lines
    return [f"{head} {re.sub('[0-9]', '2', marks)}", *lines]


def _folded(value: str, indent: int) -> list[str] | None:
    """`value` as the lines of a folded scalar, or None where folding would change it."""
    pad = " " * indent
    lines: list[str] = []
    for position, paragraph in enumerate(value.split("\n")):
        words = paragraph.split(" ")
        if not paragraph.isprintable() or (paragraph and "" in words):
            return None
        if position > 0:
            lines.append("")
        lines += _wrapped(words, pad) if paragraph else []
    return lines if value.strip("\n") == value and value else None


def _wrapped(words: list[str], pad: str) -> list[str]:
    lines = [pad + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(pad + word)
    return lines
