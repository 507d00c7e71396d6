"""Holds one C function against an older declaration of it: parameters, types, names, linkage."""

import re
from collections.abc import Sequence

from diopigen.diagnostics import Diagnostics
from diopigen.model.interface import CType, DeclaredFunction, DeclaredParam
from diopigen.text import suggestion


def same_types(one: DeclaredFunction, other: DeclaredFunction) -> bool:
    """Whether a pointer to one may point to the other."""
    return [p.type.resolved for p in one.params] == [p.type.resolved for p in other.params]


def compare_function(
    old: DeclaredFunction, new: DeclaredFunction, drifted: Sequence[str], diagnostics: Diagnostics
) -> None:
    """Reports each difference at the older declaration; `drifted` are type names whose change is reported already."""
    _compare_linkage(old, new, diagnostics)
    if _differ(old.returns, new.returns, drifted):
        diagnostics.error(
            "compat-type",
            f"'{old.name}' now returns '{new.returns.spelled}' and returned '{old.returns.spelled}'",
            old.span,
            related=(("ours is here", new.span),),
        )
    if len(old.params) != len(new.params):
        _report_count(old, new, diagnostics)
        pairs = _by_name(old, new)
    elif moved := _moved(old, new):
        diagnostics.error(
            "compat-parameters",
            f"'{old.name}' takes its parameters in another order",
            moved[0].span,
            f"the order is {', '.join(_key(p) for p in new.params)} now",
            (("ours is here", new.span),),
        )
        pairs = _by_name(old, new)
    else:
        pairs = list(zip(old.params, new.params, strict=True))
    for before, now in pairs:
        _compare_param(old.name, before, now, drifted, diagnostics)


def _compare_linkage(old: DeclaredFunction, new: DeclaredFunction, diagnostics: Diagnostics) -> None:
    related = (("ours is here", new.span),)
    if old.c_linkage != new.c_linkage:
        was, is_ = ("C", "C++") if old.c_linkage else ("C++", "C")
        message = f"'{old.name}' has {is_} linkage now, and had {was} linkage: a binary does not find it"
        diagnostics.error("compat-linkage", message, old.span, 'put it inside extern "C"', related)
    if old.weak != new.weak:
        message = (
            f"'{old.name}' is weak now: a program links without it, and must test whether it exists"
            if new.weak
            else f"'{old.name}' is no longer weak: a program does not link without it"
        )
        diagnostics.warning("compat-linkage", message, old.span, related=related)


def _moved(old: DeclaredFunction, new: DeclaredFunction) -> list[DeclaredParam]:
    """The parameters whose names stand at another place now: values would go to the wrong ones."""
    now = [p.name for p in new.params]
    return [p for at, p in enumerate(old.params) if p.name and p.name in now and now[at] != p.name]


def _report_count(old: DeclaredFunction, new: DeclaredFunction, diagnostics: Diagnostics) -> None:
    before, now = [_key(p) for p in old.params], [_key(p) for p in new.params]
    for param in old.params:
        if _key(param) not in now:
            gained = [p.name for p in new.params if _key(p) not in before]
            diagnostics.error(
                "compat-parameters",
                f"'{old.name}' no longer takes '{_key(param)}'",
                param.span,
                suggestion(param.name, gained),
                (("ours is here", new.span),),
            )
    for position, param in enumerate(new.params):
        if _key(param) not in before:
            place = f"after '{_key(new.params[position - 1])}'" if position else "first"
            diagnostics.error(
                "compat-parameters",
                f"'{old.name}' takes '{param.type.spelled} {param.name}' {place} now",
                old.span,
                related=(("ours is here", param.span),),
            )
    if set(before) == set(now):  # names stand twice, or not at all
        message = f"'{old.name}' takes {len(new.params)} parameters now, and took {len(old.params)}"
        diagnostics.error("compat-parameters", message, old.span, related=(("ours is here", new.span),))


def _key(param: DeclaredParam) -> str:
    return param.name or param.type.spelled


def _by_name(old: DeclaredFunction, new: DeclaredFunction) -> list[tuple[DeclaredParam, DeclaredParam]]:
    ours = {_key(param): param for param in new.params}
    return [(param, ours[_key(param)]) for param in old.params if _key(param) in ours]


def _compare_param(
    function: str, old: DeclaredParam, new: DeclaredParam, drifted: Sequence[str], diagnostics: Diagnostics
) -> None:
    related = (("ours is here", new.span),)
    if _differ(old.type, new.type, drifted):
        hint = (
            "only const differs: binaries still work, definitions and calls must be changed"
            if _bare(old.type.resolved) == _bare(new.type.resolved)
            else None
        )
        message = f"'{_key(old)}' of '{function}' is '{new.type.spelled}' now"
        if old.name != new.name:
            message += f", and is called '{new.name}'"
        diagnostics.error("compat-type", message, old.span, hint, related)
    elif old.name != new.name:
        message = f"'{_key(old)}' of '{function}' is called '{new.name}' now"
        diagnostics.note("compat-renamed", message, old.span, "C calls by position: nothing breaks", related)
    elif old.type.spelled != new.type.spelled:
        message = f"'{_key(old)}' of '{function}' is spelled '{new.type.spelled}' now, which is the same type"
        diagnostics.note("compat-spelling", message, old.span, related=related)


def _differ(old: CType, new: CType, drifted: Sequence[str]) -> bool:
    if old.resolved == new.resolved:
        return False
    return not (old.spelled == new.spelled and any(word in drifted for word in re.findall(r"\w+", old.spelled)))


def _bare(resolved: str) -> str:
    return " ".join(word for word in re.findall(r"\w+|\S", resolved) if word != "const")
