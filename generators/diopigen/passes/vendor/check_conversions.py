"""Findings about convert_config.yaml: rules that never apply or say nothing new, conversions without code for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.op import Role
from diopigen.model.program import Program
from diopigen.model.vendor import Casts, Contiguous, FunctionPlan, Layouts, Origin, Rule, Said, Vendor
from diopigen.passes.vendor.check_casts import CastChecks
from diopigen.passes.vendor.resolve_conversions import CAST, COPY, PRIMITIVES, Decision, applicable
from diopigen.vocabulary.layouts import orders

Decisions = Mapping[str, tuple[Decision, ...]]  # e.g. {"diopiAdd": (of out, of input, of other)}
Part = tuple[Span, str]  # e.g. (span, "float64"): a cast; (span, "NHWC"): a layout


@dataclass(frozen=True, slots=True, kw_only=True)
class _Uses:
    """What became of each part of the configuration."""

    acting: dict[Part, None] = field(default_factory=dict)
    overridden: dict[Part, Span] = field(default_factory=dict)  # and by what
    needless: dict[Span, Span | None] = field(default_factory=dict)  # the wider statement that says the same
    needed: dict[Span, None] = field(default_factory=dict)


def check_rules(program: Program, vendor: Vendor, planned: Decisions, diagnostics: Diagnostics) -> None:
    """Finds what no function of an entry can ever use, what says nothing new, and casts that do not keep values.

    `planned` has what is decided for each function that has an implementation or is composed.
    """
    uses = _uses(program, vendor, planned, diagnostics)
    composed = {composition.symbol for composition in program.compositions}
    exported = {plan.symbol for plan in program.plans if plan.implementation.origin is Origin.EXPORTED}
    converted = set(planned) - composed - exported - set(PRIMITIVES)
    for rule in vendor.rules:
        for symbol, span in rule.functions:
            if symbol in PRIMITIVES and _asks(rule):
                diagnostics.error(
                    "primitive-converted",
                    f"'{symbol}' performs conversions, so it takes every tensor unchanged",
                    span,
                    "remove the entry",
                )
            elif symbol in composed and _asks(rule):
                diagnostics.warning(
                    "rule-never-applies",
                    f"'{symbol}' is composed of other functions, which do their own conversions, so this has no effect",
                    span,
                    "write entries for the functions that it is composed of",
                )
            elif symbol in exported and _asks(rule):
                diagnostics.warning(
                    "rule-never-applies",
                    f"'{symbol}' has C linkage, so it has no adaptor and this has no effect",
                    span,
                    'remove extern "C" from its definition, or the entry',
                )
            elif symbol not in planned and rule.composite is None:
                diagnostics.warning(
                    "rule-never-applies",
                    f"'{symbol}' is not implemented, so its entry has no effect",
                    span,
                    "implement it, or remove the entry",
                )
        if not rule.functions or any(symbol in converted for symbol, _ in rule.functions):
            _check_rule(rule, uses, diagnostics)


def _asks(rule: Rule) -> bool:
    """Whether a rule asks for conversions at all; `layout: ND` does not."""
    return any(parts(said) for said in rule.said)


def _uses(program: Program, vendor: Vendor, planned: Decisions, diagnostics: Diagnostics) -> _Uses:
    """What each part does, over all functions of the vendor; its casts that do not keep values are reported."""
    own = {cast.span for rule in vendor.rules for said in rule.casts for cast in said.casts}
    uses, casts = _Uses(), CastChecks(program.dtypes)
    ops = {op.name: op for op in program.ops}
    for function in program.functions:
        op = ops[function.op]
        for decision in planned.get(function.symbol, ()):
            _note_uses(decision, uses)
            for cast in decision.conversion.casts if decision.conversion is not None else ():
                if cast.span in own:  # those of a base are its own business
                    casts.add(cast, decision.param, decision.taken, function, op)
    casts.report(diagnostics)
    return uses


def _note_uses(decision: Decision, uses: _Uses) -> None:
    levels: tuple[tuple[Said, ...], ...] = (decision.casts, decision.layouts, decision.contiguous)
    for said in levels:
        effects = [tuple(_effects(item, decision)) for item in said]
        for position, effect in enumerate(effects):
            for part, _ in effect:
                if position == 0:
                    uses.acting[part] = None
                else:
                    uses.overridden.setdefault(part, said[0].span)
        if said:
            wider = said[1] if len(said) > 1 else None
            same = [what for _, what in effects[0]] == ([what for _, what in effects[1]] if wider is not None else [])
            if same:
                uses.needless.setdefault(said[0].span, None if wider is None else wider.span)
            else:
                uses.needed[said[0].span] = None


def _effects(said: Said, decision: Decision) -> Iterator[tuple[Part, str]]:
    """The parts of `said` that touch the tensor, each with what it makes of it."""
    match said:
        case Casts():
            for cast in applicable(said, decision.taken):
                yield (cast.span, cast.source.word), f"{cast.source.word} {cast.target.word}"
        case Layouts() | Contiguous() if decision.param.role is Role.CALLEE_OUT:
            return
        case Layouts():
            yield from (((said.span, name), order) for name in said.names for order in orders((name,)))
        case Contiguous():
            yield from ((part, part[1]) for part in parts(said))


def _check_rule(rule: Rule, uses: _Uses, diagnostics: Diagnostics) -> None:
    for said in rule.said:
        for part in parts(said):
            if part not in uses.acting:
                _never(part, _reason(part[1], said, rule), uses, diagnostics)
        if parts(said) and not any(part in uses.acting for part in parts(said)):
            continue
        if said.span in uses.needless and said.span not in uses.needed:
            wider = uses.needless[said.span]
            related = () if wider is None else (("the more general rule is here", wider),)
            diagnostics.note("redundant-rule", "this rule changes nothing", said.span, "remove it", related)


def parts(said: Said) -> tuple[Part, ...]:
    """What `said` asks for, each by itself; nothing of `none`, ND and false."""
    match said:
        case Casts():
            return tuple((cast.span, cast.source.word) for cast in said.casts)
        case Layouts():
            return tuple((said.span, name) for name in said.names)
        case Contiguous():
            return ((said.span, "contiguous"),) if said.wanted else ()


def _never(part: Part, why: str, uses: _Uses, diagnostics: Diagnostics) -> None:
    related: tuple[tuple[str, Span], ...] = ()
    if part in uses.overridden:
        why = "more specific rules override it everywhere"
        related = (("one of them is here", uses.overridden[part]),)
    diagnostics.warning("rule-never-applies", f"this rule has no effect: {why}", part[0], "remove it", related)


def _reason(what: str, said: Said, rule: Rule) -> str:
    """Why `what`, a dtype or a layout, never meets a tensor."""
    if not isinstance(said, Casts):
        return f"the function allocates '{said.param}'" if said.param else f"no tensor is given to {_those(rule)}"
    if said.param is not None:
        return f"'{said.param}' can never be '{what}'"
    return f"no tensor of {_those(rule)} can be '{what}'"


def _those(rule: Rule) -> str:
    if not rule.functions:
        return "any function"
    first = f"'{rule.functions[0][0]}'"
    return first if len(rule.functions) == 1 else f"{first} or the others"


def check_primitives(vendor: Vendor, plans: tuple[FunctionPlan, ...], diagnostics: Diagnostics) -> None:
    """Refuses conversions that the vendor has no code to make."""
    present = {plan.symbol for plan in plans}
    conversions = [c for plan in plans for c in plan.conversions]
    casts = next((cast.span for c in conversions for cast in c.casts), None)
    copies = next((s for c in conversions for s in (c.layout_span, c.contiguous_span) if s is not None), None)
    for symbol, needed_by in ((CAST, casts), (COPY, copies)):
        if needed_by is not None and symbol not in present:
            diagnostics.error(
                "missing-primitive",
                f"this rule needs '{symbol}', which '{vendor.name}' does not implement",
                needed_by,
                f"implement it in namespace impl::{vendor.name}, or write 'base: portable' in vendor.yaml",
                about=(symbol,),
            )
