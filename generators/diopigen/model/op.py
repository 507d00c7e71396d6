"""Operators and the C functions that follow from them."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from diopigen.diagnostics import Span
from diopigen.model.compose import Statement
from diopigen.model.expr import Call, Expr, Name
from diopigen.model.type import NUMBERS, Shape, TensorType, Type, Value
from diopigen.vocabulary.dtype import DTypeSet

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # where one word of a symbol ends

_ARITHMETIC = re.compile(
    r"(const )?(bool|float|double|u?int(8|16|32|64)_t|((un)?signed|short|int|long|char)( (int|long|short|char))*)"
)

Literal = None | bool | int | float | str | tuple["Literal", ...]


def word(value: Literal) -> str:
    """A value as a schema writes it. e.g. "false"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Role(Enum):
    """What happens to a parameter; C types cannot say it."""

    IN = "in"
    OUT = "out"  # the caller allocates, the function writes all of it
    INOUT = "inout"
    CALLEE_OUT = "new"  # the function allocates and gives the handle
    HOST_OUT = "host"  # a plain value in host memory, by pointer


class Form(Enum):
    """Which of an op's functions this is."""

    OUT = "out"
    INPLACE = "inplace"
    SCALAR = "scalar"
    INPLACE_SCALAR = "inplace_scalar"
    BACKWARD = "backward"

    @property
    def inplace(self) -> bool:
        return self in (Form.INPLACE, Form.INPLACE_SCALAR)

    @property
    def scalar(self) -> bool:
        return self in (Form.SCALAR, Form.INPLACE_SCALAR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arg:
    """One line under `args:` or `out:`, as written."""

    name: str  # e.g. "other"
    type: Type  # e.g. Tensor<U>
    scalar: bool  # e.g. True for "Tensor<U> | Scalar": the op has a scalar form
    role: Role  # e.g. Role.IN
    default: Literal  # e.g. 1
    has_default: bool  # e.g. True; tells "= null" from no default
    shape: Shape | None  # e.g. broadcast(input, other); outputs only
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A value in the YAML, as written: what findings about it point at."""

    text: str  # e.g. "input + alpha * other"; empty for a list or a mapping
    span: Span

    def word(self, word: str) -> Span:
        """Where `word` stands inside; the whole value if it is folded or does not have it."""
        match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text)
        if match is None or self.span.length < len(self.text):
            return self.span
        quotes = (self.span.length - len(self.text)) // 2
        return replace(self.span, column=self.span.column + quotes + match.start(), length=len(word))


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Every value of an entry by its path; those of a list share one. As JSON, since findings alone ask for any."""

    file: str  # e.g. "schemas/ops/arithmetic.yaml"
    rows: str  # e.g. '{"backward.kernel": ["grad_output", 9, 13, 11]}': text, line, column, length

    @staticmethod
    def of(file: str, places: Iterable[tuple[str, Place]]) -> "Places":
        rows = {path: (p.text, p.span.line, p.span.column, p.span.length) for path, p in places}
        return Places(file=file, rows=json.dumps(rows))

    def at(self, path: str) -> Place | None:
        row = _rows(self.rows).get(path)
        if row is None:
            return None
        text, line, column, length = row
        return Place(text=text, span=Span(path=self.file, line=line, column=column, length=length))


NOWHERE = Places(file="", rows="{}")


@lru_cache(maxsize=64)  # of the ops that a pass is at
def _rows(text: str) -> dict[str, tuple[str, int, int, int]]:
    rows: dict[str, tuple[str, int, int, int]] = json.loads(text)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of a C function, the context and the counts of lists left out."""

    name: str  # e.g. "grad_input", the C name
    arg: str  # e.g. "grad_input": the op's arg, out, or "grad_<arg>" that it carries
    type: Type  # e.g. Tensor<T>; Scalar in a scalar form
    role: Role
    default: Literal
    has_default: bool
    shape: Shape | None  # of an output
    c: str | None  # e.g. "diopiSize_t*": where the contract's spelling breaks the rule
    span: Span  # the YAML that gave it

    @property
    def tensor(self) -> TensorType | None:
        return self.type if isinstance(self.type, TensorType) else None

    @property
    def usual_in_c(self) -> bool:
        """Whether generated code can read and pass it as its type says, though the contract may spell it otherwise."""
        if self.c is None:
            return True
        if isinstance(self.type, TensorType) or self.type.value is Value.SCALAR:
            return re.fullmatch(r"(const )?diopi(Const)?(TensorHandle_t|Scalar_t ?\*)", self.c) is not None
        if self.type.many:
            return re.fullmatch(r"(const )?diopiSize_t", self.c) is not None and not self.type.optional
        number = self.type.value in NUMBERS and not self.type.optional
        return number and _ARITHMETIC.fullmatch(self.c) is not None


def hidden(kernel: Expr | None) -> Expr | None:
    """That there is a kernel."""
    return None if kernel is None else Name(name="kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One C symbol."""

    symbol: str  # e.g. "diopiAddInpScalar"
    op: str  # e.g. "add"
    form: Form
    header: str  # e.g. "functions", the file without .h
    doc: str  # e.g. "Adds `other`, scaled by `alpha`, to `input`."
    math: str | None
    params: tuple[Param, ...]  # in C order, without ctx; a list's count follows the last list that names it
    kernel: Expr | None  # the elementwise expression, in the names of the params' args
    elements: tuple[tuple[str, DTypeSet], ...]  # e.g. (("T", any),): what each variable may be
    span: Span  # of the op, or of what declared this form
    deprecated: str | None = None  # e.g. "diopiAdd": what to use instead
    compose: tuple[Statement, ...] = ()  # how it is composed of other functions; empty where the schema does not say

    @property
    def word(self) -> str:
        """The symbol in snake case, without the prefix. e.g. "add_inp_scalar", "nll_loss_v2"."""
        return _HUMPS.sub("_", self.symbol.removeprefix("diopi")).lower()

    @property
    def outs(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.role in (Role.OUT, Role.CALLEE_OUT, Role.HOST_OUT))

    @property
    def ins(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.role in (Role.IN, Role.INOUT))

    @property
    def counts(self) -> tuple[str, ...]:
        """The C parameters with the lengths of lists, each once."""
        tensors = (p.tensor for p in self.params)
        return tuple(dict.fromkeys(t.count for t in tensors if t is not None and t.count is not None))

    @property
    def converted(self) -> tuple[Param, ...]:
        """The tensors in the order of conversion: that of C, but allocated ones last, whose dtype is an input's."""
        tensors = (p for p in self.params if p.tensor is not None)
        return tuple(sorted(tensors, key=lambda p: p.role is Role.CALLEE_OUT))

    def param(self, name: str) -> Param | None:
        return next((p for p in self.params if p.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledClause:
    """The operators that graphs of a compiler have in place of those that a backend registers."""

    forward: tuple[tuple[str, Span], ...] = ()  # e.g. (("convolution", span),): exact overloads
    backward: tuple[tuple[str, Span], ...] = ()
    ranks: tuple[tuple[str, int], ...] = ()  # e.g. (("input", 4),): ATen argument, its only number of dimensions
    derive: tuple[tuple[str, Expr], ...] = ()  # e.g. (("scale", Call("given", ...)),): C parameter, of ATen arguments
    when: tuple[Expr, ...] = ()  # e.g. (Binary("==", ...),): what must hold of the ATen arguments
    permute: tuple[int, ...] = ()  # e.g. (0, 2, 1, 3): of tensors with so many dimensions, where ATen has each
    results: tuple[tuple[str, int], ...] = ()  # e.g. (("out", 0),): C output, the result that it is
    # e.g. (("gen", ("dropout_p", "philox_seed", "philox_offset")),): a generator, what it draws nothing for where that
    # is zero, and the seed and the offset that it is left with
    draws: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenClause:
    """One entry under `aten:`, as written; `bind_aten` turns it into bindings."""

    overloads: tuple[tuple[str, Span], ...]  # e.g. (("add", span),): packets or exact overloads
    backward: tuple[tuple[str, Span], ...]
    rename: tuple[tuple[str, str], ...]  # e.g. (("mat1", "self"),): C parameter, ATen argument
    require: tuple[tuple[str, Literal], ...]  # e.g. (("transposed", False),)
    ignore: tuple[str, ...]  # ATen arguments that the C function does not take
    derive: tuple[tuple[str, Expr], ...]  # e.g. (("bias_sizes", Call(...)),)
    function: str | None  # e.g. "diopiFill": only this function, where the form does not tell
    raises: (
        Expr | None
    )  # e.g. Name("IndexError"): what torch raises where the function fails on arguments that it takes
    wrapper: str | None  # e.g. "optimizer": hand-written in runtime_cpp/torch/ops/optimizer.cpp
    span: Span
    ranks: tuple[tuple[str, int], ...] = ()  # e.g. (("weight", 2),): ATen argument, its only number of dimensions
    promote: tuple[str, ...] = ()  # e.g. ("self",): the ATen arguments that give the result its dtype; all unless said
    rounds: tuple[str, ...] = ()  # e.g. ("other",): the numbers that are of the dtype of the tensors that they meet
    contiguous: bool = False  # the results are row-major, where an input that gives their shape need not be
    channels_of: tuple[str, ...] = ()  # e.g. ("input", "weight"): where one has its channels innermost, results have
    checks: tuple[tuple[Call, Span], ...] = ()  # e.g. ((Call("gelu", ...), span),): what throws where torch refuses
    compiled: CompiledClause = CompiledClause()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One row under `cases:`: an argument's shape, shapes or value by name."""

    values: tuple[tuple[str, Literal], ...]  # e.g. (("input", (2, 3)), ("alpha", 2))
    span: Span
    data: tuple[tuple[str, Expr], ...] = ()  # e.g. (("input", values(-1, 1)),): drawn so in this row


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What a backward function is given besides the incoming gradient."""

    name: str  # e.g. "mean", the parameter
    source: str | None  # e.g. "save_mean": an arg or out of the forward; None for a value of its own type
    type: Type
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Backward:
    """The `backward:` block, as written."""

    name: str | None  # e.g. "diopiConvolution2dBackward" where the rule does not give it
    grads: tuple[tuple[str, bool], ...]  # e.g. (("input", False), ("weight", True)): arg, may be null
    grad_outputs: tuple[tuple[str, str], ...]  # e.g. (("grad_output", "out"),): parameter, forward out
    keeps: tuple[Keep, ...]
    attrs: tuple[str, ...] | None  # which non-tensor args follow; None: all but generators
    order: tuple[str, ...] | None
    c: tuple[tuple[str, str], ...]
    kernel: Expr | None
    math: str | None
    span: Span
    compose: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operator, as the YAML describes it."""

    name: str  # e.g. "add"
    words: str  # e.g. "Add": the symbol's stem after "diopi"
    topic: str  # e.g. "arithmetic", the YAML file's name
    header: str  # e.g. "functions"
    doc: str
    math: str | None
    args: tuple[Arg, ...]
    outs: tuple[Arg, ...]
    where: tuple[tuple[str, DTypeSet], ...]
    forms: tuple[Form, ...]  # e.g. (OUT, INPLACE); the scalar forms follow from the args
    symbols: tuple[tuple[Form, str], ...]  # names that break the rule
    order: tuple[str, ...] | None
    c: tuple[tuple[str, str], ...]  # e.g. (("grad", "diopiTensorHandle_t"),)
    layouts: tuple[str, ...]  # e.g. ("NCHW", "NHWC")
    kernel: Expr | None
    backward: Backward | None
    aten: tuple[AtenClause, ...]
    tolerance: tuple[tuple[str, float, float], ...]  # e.g. (("f16", 1e-2, 1e-2),): dtype, rtol, atol
    check: str  # e.g. "close"
    data: tuple[tuple[str, Expr], ...]  # e.g. (("index", index(weight, 0)),): how an argument's values are drawn
    cases: tuple[CaseRow, ...]
    span: Span
    deprecated: str | None = None  # e.g. "diopiAdd": what to use instead
    reduce: str | None = None  # e.g. "sum": what the elements of the first argument along `dim` become one by
    digest: str = ""  # of all that the entry says, wherever it stands
    bare_digest: str = ""  # of what `bare` leaves
    places: Places = NOWHERE
    compose: tuple[Statement, ...] = ()  # of the first form, which the others follow from

    def bare(self) -> "Op":
        """Without docs, formulas and cases, which no code follows from."""
        backward = None if self.backward is None else replace(self.backward, math=None)
        return replace(self, doc="", math=None, cases=(), backward=backward, digest=self.bare_digest)

    def frame(self) -> "Op":
        """`bare` without what kernels say: all that other entries and files may follow from."""
        bare, backward = self.bare(), self.backward
        if backward is not None:
            backward = replace(backward, math=None, kernel=hidden(backward.kernel))
        return replace(bare, kernel=hidden(self.kernel), backward=backward)

    def place(self, path: str) -> Place:
        """The value at `path`, or the op's name where nothing stands there."""
        return self.places.at(path) or Place(text=self.name, span=self.span)
