"""Holds what headers declare now against what older ones declared: what breaks is an error, what is new a note.

docs/compatibility.md has the table that this follows.
"""

import difflib
from collections.abc import Iterable, Sequence

from diopigen.diagnostics import Diagnostics
from diopigen.model.interface import DeclaredEnum, DeclaredFunction, DeclaredStruct, DeclaredType, Interface
from diopigen.passes.compat.functions import compare_function, same_types

Declared = DeclaredFunction | DeclaredEnum | DeclaredStruct | DeclaredType


def compare_interfaces(old: Interface, new: Interface, diagnostics: Diagnostics) -> None:
    """Reports every difference at its place in the older headers, with the place of ours beside it.

    Only what `old` declares is looked for; an addition is reported if its header is one of the older ones.
    """
    drifted = _compare_types(old.types, new.types, diagnostics)
    _compare_functions(old.functions, new.functions, drifted, diagnostics)
    _compare_enums(old.enums, new.enums, diagnostics)
    _compare_structs(old.structs, new.structs, diagnostics)
    for kind in ("functions", "enums", "structs", "types"):
        _report_additions(getattr(old, kind), getattr(new, kind), old.headers, diagnostics)


def _report_additions(
    old: Sequence[Declared], new: Sequence[Declared], headers: Sequence[str], diagnostics: Diagnostics
) -> None:
    known = {declared.name for declared in old}
    for declared in new:
        if declared.name not in known and declared.header in headers:
            diagnostics.note("compat-added", f"{declared.header} declares '{declared.name}' too", declared.span)


def _report_removed(declared: Declared, hint: str | None, diagnostics: Diagnostics) -> None:
    diagnostics.error("compat-removed", f"'{declared.name}' no longer exists", declared.span, hint)


def _report_moved(old: Declared, new: Declared, diagnostics: Diagnostics) -> None:
    if old.header != new.header:
        diagnostics.warning(
            "compat-moved",
            f"'{old.name}' is declared in {new.header} now",
            old.span,
            f"include <diopi/{new.header}> too",
            (("ours is here", new.span),),
        )


def _compare_functions(
    old: Sequence[DeclaredFunction],
    new: Sequence[DeclaredFunction],
    drifted: Sequence[str],
    diagnostics: Diagnostics,
) -> None:
    ours, known = {f.name: f for f in new}, {f.name for f in old}
    unknown = [f for f in new if f.name not in known]
    for function in old:
        counterpart = ours.get(function.name)
        if counterpart is None:
            alike = [f.name for f in unknown if same_types(f, function)]
            _report_removed(function, _heir(function.name, alike), diagnostics)
        else:
            _report_moved(function, counterpart, diagnostics)
            compare_function(function, counterpart, drifted, diagnostics)


def _heir(name: str, candidates: Iterable[str]) -> str | None:
    """What may have taken the place of something that is gone: much the same name among what is new."""
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.8)
    return f"is it '{near[0]}' now?" if near else None


def _new(old: Sequence[Declared], new: Sequence[Declared]) -> list[str]:
    known = {declared.name for declared in old}
    return [declared.name for declared in new if declared.name not in known]


def _compare_enums(old: Sequence[DeclaredEnum], new: Sequence[DeclaredEnum], diagnostics: Diagnostics) -> None:
    ours = {enum.name: enum for enum in new}
    for enum in old:
        counterpart = ours.get(enum.name)
        if counterpart is None:
            _report_removed(enum, _heir(enum.name, _new(old, new)), diagnostics)
            continue
        _report_moved(enum, counterpart, diagnostics)
        if enum.size != counterpart.size:
            diagnostics.error(
                "compat-layout",
                f"'{enum.name}' takes {counterpart.size} bytes now, and took {enum.size}",
                enum.span,
                related=(("ours is here", counterpart.span),),
            )
        _compare_enumerators(enum, counterpart, diagnostics)


def _compare_enumerators(old: DeclaredEnum, new: DeclaredEnum, diagnostics: Diagnostics) -> None:
    ours = {e.name: e for e in new.enumerators}
    known = {e.name: e for e in old.enumerators}
    for enumerator in old.enumerators:
        counterpart = ours.get(enumerator.name)
        if counterpart is None:
            heir = next((e.name for e in new.enumerators if e.value == enumerator.value and e.name not in known), None)
            diagnostics.error(
                "compat-removed",
                f"'{old.name}' no longer has '{enumerator.name}'",
                enumerator.span,
                f"{enumerator.value} is '{heir}' now" if heir is not None else None,
                (("ours is here", new.span),),
            )
        elif counterpart.value != enumerator.value:
            diagnostics.error(
                "compat-value",
                f"'{enumerator.name}' is {counterpart.value} now, and was {enumerator.value}",
                enumerator.span,
                related=(("ours is here", counterpart.span),),
            )
    for enumerator in new.enumerators:
        if enumerator.name not in known:
            message = f"'{old.name}' has '{enumerator.name}' = {enumerator.value} too"
            diagnostics.note("compat-added", message, enumerator.span)


def _compare_structs(old: Sequence[DeclaredStruct], new: Sequence[DeclaredStruct], diagnostics: Diagnostics) -> None:
    ours = {struct.name: struct for struct in new}
    for struct in old:
        counterpart = ours.get(struct.name)
        if counterpart is None:
            _report_removed(struct, _heir(struct.name, _new(old, new)), diagnostics)
            continue
        _report_moved(struct, counterpart, diagnostics)
        _compare_fields(struct, counterpart, diagnostics)
        grown = struct.extensible and counterpart.extensible and counterpart.size > struct.size
        if struct.size != counterpart.size and not grown:
            diagnostics.error(
                "compat-layout",
                f"'{struct.name}' takes {counterpart.size} bytes now, and took {struct.size}",
                struct.span,
                related=(("ours is here", counterpart.span),),
            )


def _compare_fields(old: DeclaredStruct, new: DeclaredStruct, diagnostics: Diagnostics) -> None:
    ours, known = {f.name: f for f in new.fields}, {f.name for f in old.fields}
    for field in old.fields:
        counterpart = ours.get(field.name)
        if counterpart is None:
            message = f"'{old.name}' no longer has the member '{field.name}'"
            hint = _heir(field.name, [name for name in ours if name not in known])
            diagnostics.error("compat-removed", message, field.span, hint, (("ours is here", new.span),))
            continue
        related = (("ours is here", counterpart.span),)
        if counterpart.type.resolved != field.type.resolved:
            message = f"'{field.name}' of '{old.name}' is '{counterpart.type.spelled}' now"
            diagnostics.error("compat-type", message, field.span, related=related)
        if counterpart.offset != field.offset:
            message = f"'{field.name}' of '{old.name}' is at byte {counterpart.offset} now, and was at {field.offset}"
            diagnostics.error("compat-layout", message, field.span, related=related)
    for field in new.fields:
        if field.name not in known:
            diagnostics.note("compat-added", f"'{old.name}' has a member '{field.name}' too", field.span)


def _compare_types(
    old: Sequence[DeclaredType], new: Sequence[DeclaredType], diagnostics: Diagnostics
) -> tuple[str, ...]:
    """The names that mean another type now; a function that uses one is not reported for that."""
    ours = {type_.name: type_ for type_ in new}
    drifted = []
    for type_ in old:
        counterpart = ours.get(type_.name)
        if counterpart is None:
            _report_removed(type_, _heir(type_.name, _new(old, new)), diagnostics)
            continue
        _report_moved(type_, counterpart, diagnostics)
        if counterpart.type.resolved != type_.type.resolved:
            drifted.append(type_.name)
            diagnostics.error(
                "compat-type",
                f"'{type_.name}' is '{counterpart.type.spelled}' now, and was '{type_.type.spelled}'",
                type_.span,
                related=(("ours is here", counterpart.span),),
            )
    return tuple(drifted)
