"""All that one run knows; every pass takes a Program and gives the next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from diopigen.model.aten import Binding, Calls, Drifted, Rewritten
from diopigen.model.case import Case
from diopigen.model.composition import Composition
from diopigen.model.op import Function, Op, hidden
from diopigen.model.pattern import Pattern
from diopigen.model.runtime import Runtime
from diopigen.model.vendor import FunctionPlan, Vendor
from diopigen.vocabulary.dtype import DTypes


@dataclass(frozen=True, kw_only=True)
class Program:
    """Filled from left to right: sources, then functions, then what the targets ask for."""

    dtypes: DTypes
    runtime: Runtime
    ops: tuple[Op, ...] = ()  # the contract's, then the vendor's own
    own_header: str | None = None  # e.g. "functions_droplet": what declares the vendor's own, where it has any
    patterns: tuple[Pattern, ...] = ()  # what torch.compile looks for in programs
    functions: tuple[Function, ...] = ()  # by `expand`, in the order of ops
    bindings: tuple[Binding, ...] = ()  # by `bind_aten`
    compiled: tuple[Binding, ...] = ()  # by `bind_aten`: of operators that only graphs of a compiler have
    one_device: tuple[str, ...] = ()  # by `bind_aten`: the overloads of which torch refuses tensors of two devices
    drifted: tuple[Drifted, ...] = ()  # by `bind_aten` and `leave_out`: what only another release of torch would bind
    derivations: tuple[str, ...] = ()  # by `leave_out`: e.g. ("padding",), what derives operators, in order
    rewritten: tuple[Rewritten, ...] = ()  # by `leave_out`: the hand-written files of which something goes
    calls: tuple[Calls, ...] = ()  # by `call_aten`, for a vendor whose functions call PyTorch
    vendor: Vendor | None = None  # None: only vendor-independent outputs are wanted
    plans: tuple[FunctionPlan, ...] = ()  # by `plan_vendor`, one for each function that has an implementation
    compositions: tuple[Composition, ...] = ()  # by `plan_vendor`, one for each function that is composed of others
    torch_operators: tuple[str, ...] = ()  # by `torch_operators`: the vendor's own functions that torch calls by name
    cases: tuple[Case, ...] = ()  # by `plan_cases`
    case_lines: Mapping[str, str] = field(default_factory=dict)  # in place of `cases`: by symbol, as the plan has them

    def op(self, name: str) -> Op | None:
        return self._ops.get(name)

    def function(self, symbol: str) -> Function | None:
        return self._functions.get(symbol)

    def forms(self, op: str) -> tuple[Function, ...]:
        """The functions of an op."""
        return self._forms.get(op, ())

    def plan(self, symbol: str) -> FunctionPlan | None:
        return self._plans.get(symbol)

    def part(self, ops: Iterable[Op], beside: Iterable[Op] = ()) -> "Program":
        """All that is known of `ops`, with the functions and plans of those `beside` them, and nothing of others."""
        ops = tuple(ops)
        reached = {op.name: op for op in (*ops, *beside)}
        functions = tuple(f for name in reached for f in self.forms(name))
        return Program(
            own_header=self.own_header,
            dtypes=self.dtypes,
            runtime=self.runtime,
            ops=tuple(reached.values()),
            functions=functions,
            bindings=tuple(binding for op in ops for binding in self._bindings.get(op.name, ())),
            vendor=self.vendor,
            plans=tuple(plan for f in functions if (plan := self.plan(f.symbol)) is not None),
        )

    def contract(self) -> "Program":
        """What is the same for every vendor."""
        of_contract = [op for op in self.ops if op.header != self.own_header]
        names = {op.name for op in of_contract}
        return replace(
            self,
            ops=tuple(of_contract),
            own_header=None,
            functions=tuple(f for f in self.functions if f.op in names),
            bindings=tuple(b for b in self.bindings if b.op in names),
            compiled=tuple(b for b in self.compiled if b.op in names),
            vendor=None,
            plans=(),
            compositions=(),
            calls=(),
        )

    def own(self) -> tuple[Op, ...]:
        """The operators that only the vendor has."""
        return tuple(op for op in self.ops if op.header == self.own_header)

    def source(self, topic: str) -> str:
        """What the ops of `topic` are written in. e.g. schemas/ops/arithmetic.yaml"""
        own = any(op.topic == topic for op in self.own())
        return f"{topic.removeprefix(f'{self._owner}_')}.yaml of {self._owner}" if own else f"schemas/ops/{topic}.yaml"

    def bare(self) -> "Program":
        """Without what ops and functions say that no code follows from."""
        ops = tuple(op.bare() for op in self.ops)
        return replace(self, ops=ops, functions=tuple(replace(f, doc="", math=None) for f in self.functions))

    def frame(self) -> "Program":
        """`bare` without what kernels say."""
        ops = tuple(op.frame() for op in self.ops)
        functions = (replace(f, doc="", math=None, kernel=hidden(f.kernel)) for f in self.functions)
        return replace(self, ops=ops, functions=tuple(functions))

    @property
    def said(self) -> tuple[object, ...]:
        """What tells a part of one program, or of those that differ in their ops alone, from others; no cases."""
        ops = tuple(op.digest for op in self.ops)  # which functions follow from
        symbols = tuple(f.symbol for f in self.functions)
        bound = (self.bindings, self.compiled, self.one_device, self.drifted, self.derivations, self.rewritten)
        return (ops, symbols, self.patterns, bound, self.calls, self.plans, self.compositions)

    @property
    def _owner(self) -> str:
        return (self.own_header or "").removeprefix("functions_")

    @cached_property
    def _bindings(self) -> dict[str, list[Binding]]:
        found: dict[str, list[Binding]] = {}
        for binding in self.bindings:
            found.setdefault(binding.op, []).append(binding)
        return found

    @cached_property
    def _ops(self) -> dict[str, Op]:
        return {op.name: op for op in reversed(self.ops)}

    @cached_property
    def _functions(self) -> dict[str, Function]:
        return {function.symbol: function for function in reversed(self.functions)}

    @cached_property
    def _forms(self) -> dict[str, tuple[Function, ...]]:
        found: dict[str, tuple[Function, ...]] = {}
        for function in self.functions:
            found[function.op] = (*found.get(function.op, ()), function)
        return found

    @cached_property
    def _plans(self) -> dict[str, FunctionPlan]:
        return {plan.symbol: plan for plan in reversed(self.plans)}
