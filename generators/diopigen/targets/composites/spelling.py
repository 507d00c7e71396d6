"""How C++ spells the arguments, numbers, conditions and shapes of a composition."""

from dataclasses import dataclass, replace
from typing import assert_never

from diopigen.c_spelling import c_args, c_number, c_text, c_type
from diopigen.model.compose import OF_TENSORS, Operand, Temporary
from diopigen.model.composition import Absent, Fill, Passed, StepCall
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Function, Param, Role
from diopigen.model.reserved import free_name
from diopigen.model.type import (
    ENUMERATORS,
    Accumulate,
    ComplexOf,
    Element,
    Fixed,
    FloatOf,
    Length,
    Promote,
    RealOf,
    Shape,
    ShapeArithmetic,
    ShapeCall,
    ShapeName,
    TensorType,
    Value,
    ValueType,
    Var,
)

_OPERATORS = {"and": "&&", "or": "||"}


@dataclass(frozen=True, slots=True)
class Speller:
    """Spells what stands in one function."""

    function: Function
    temporaries: tuple[str, ...] = ()  # e.g. ("product",)

    @property
    def taken(self) -> frozenset[str]:
        """The names of variables."""
        return frozenset((*(arg.name for arg in c_args(self.function)), *self.temporaries))

    @property
    def steps(self) -> str:
        """The variable that keeps what was done."""
        return free_name("steps", self.taken)

    def ours(self, name: str) -> str:
        """A function or class of runtime_cpp/composite, in full where a variable has its name."""
        return f"diopi::composite::{name}" if name in self.taken else name

    # -- element types and shapes ---------------------------------------------------------------------------

    def dtype(self, element: Element) -> str:
        """e.g. "steps.dtype(input)"."""
        told = next((p.name for p in self.function.params if _tells(p, element)), None)
        if told is not None:
            return f"{self.steps}.dtype({told})"
        match element:
            case Fixed():
                return f"diopi_dtype_{element.dtype.word}"
            case Promote():
                first, *others = (self.dtype(part) for part in element.elements)
                for other in others:
                    first = f"{self.ours('promote')}({first}, {other})"
                return first
            case FloatOf():
                return f"{self.ours('floating')}({self.dtype(element.element)})"
            case Accumulate():
                return f"{self.ours('accumulated')}({self.dtype(element.element)})"
            case ComplexOf():
                return f"{self.ours('complex_of')}({self.dtype(element.element)})"
            case RealOf():
                return f"{self.ours('real_of')}({self.dtype(element.element)})"
            case Var():
                raise AssertionError("a variable of a temporary is that of a tensor")
            case _:
                assert_never(element)

    def shape(self, shape: Shape) -> str:
        """e.g. "steps.broadcast({tensor1, tensor2})"."""
        if isinstance(shape, ShapeName):
            return f"{self.steps}.shape({shape.name})"
        args = [self._length(arg) for arg in shape.args]
        match shape.rule:
            case "scalar":
                return f"{self.ours('Sizes')}()"
            case "shape":
                return f"{self.steps}.joined({{{', '.join(args)}}})"
            case "broadcast":
                return f"{self.steps}.broadcast({{{', '.join(args)}}})"
            case rule:
                return f"{self.steps}.{rule}({', '.join(args)})"

    def _length(self, length: Length) -> str:
        match length:
            case int():
                return str(length)
            case ShapeName(name=name):
                value = self._type(Name(name=name))
                return name if value is None or value.many or value.optional else self._read(name, pointer=False)
            case ShapeCall(rule="others", args=(tensor, *dims)):
                return (
                    f"{self.steps}.others({self._length(tensor)}, {{{', '.join(self._length(dim) for dim in dims)}}})"
                )
            case ShapeCall(rule=rule, args=args):
                return f"{self.steps}.{rule}({', '.join(self._length(arg) for arg in args)})"
            case ShapeArithmetic():
                return f"({self._length(length.left)} {length.operator} {self._length(length.right)})"
            case _:
                assert_never(length)

    # -- numbers and conditions -----------------------------------------------------------------------------

    def number(self, expr: Expr) -> str:
        """A value of the C++ class Number. e.g. "Number(1) - Number(weight)"."""
        match expr:
            case Number(text=text):
                return f"{self.ours('Number')}({_literal(text)})"
            case Name(name=name):
                pointer = self._optional(name) and self._value(name) is not Value.SCALAR
                return f"{self.ours('Number')}({self._read(name, pointer)})"
            case Unary(operand=Number(text=text)):
                return f"{self.ours('Number')}(-{_literal(text)})"
            case Unary():
                return f"-{self._operand(expr.operand)}"
            case Binary():
                return f"{self._operand(expr.left)} {expr.op} {self._operand(expr.right)}"
            case Call(function=function, args=args):
                return self._host_call(function, args)
            case Text():
                raise AssertionError("a text is not a number")
            case _:
                assert_never(expr)

    def _read(self, name: str, pointer: bool) -> str:
        """The value of an argument; where C spells it otherwise, as its meaning is spelled."""
        param = self.function.param(name)
        if param is None or param.c is None or self._value(name) is Value.SCALAR:
            return f"*{name}" if pointer else name
        return f"static_cast<{c_type(replace(param, c=None))}>({name})"

    def _operand(self, expr: Expr) -> str:
        text = self.number(expr)
        return f"({text})" if isinstance(expr, Binary) or (isinstance(expr, Unary) and text[0] == "-") else text

    def _host_call(self, function: str, args: tuple[Expr, ...]) -> str:
        if function in OF_TENSORS or function == "length":
            first, *others = args
            return f"{self.steps}.{function}({', '.join([str(first), *(self.number(arg) for arg in others)])})"
        return f"{self.ours(function)}({', '.join(self.number(arg) for arg in args)})"

    def condition(self, expr: Expr) -> str:
        """e.g. "bias != nullptr"."""
        match expr:
            case Name(name=name) if self._optional(name):
                return f"{name} != nullptr"
            case Name(name=name):
                return name
            case Call(args=(Name(name=name),)):
                return f"{name} != nullptr"
            case Unary():
                inner = expr.operand
                absent = isinstance(inner, Name) and self._optional(inner.name)
                return f"{inner} == nullptr" if absent else f"!{self._side(inner)}"
            case Binary(op="and" | "or"):
                return f"{self._side(expr.left)} {_OPERATORS[expr.op]} {self._side(expr.right)}"
            case Binary():
                return self._comparison(expr)
            case _:
                raise AssertionError("no condition")

    def _side(self, expr: Expr) -> str:
        text = self.condition(expr)
        return text if isinstance(expr, Name) and not self._optional(expr.name) else f"({text})"

    def _comparison(self, expr: Binary) -> str:
        if isinstance(expr.right, Text):
            return f"std::string_view({expr.left}) {expr.op} {c_text(expr.right.text)}"
        word = _enumerator(expr.right, self._type(expr.left))
        if word is not None:
            return f"{expr.left} {expr.op} {word}"
        return f"{self.number(expr.left)} {expr.op} {self.number(expr.right)}"

    # -- arguments of a call --------------------------------------------------------------------------------

    def args(self, call: StepCall, callee: Function, fills: dict[str, str]) -> list[str]:
        """The C arguments; `fills` names the tensors that hold numbers."""
        passed = {param.name: value for param, value in call.args}
        texts = []
        for arg in c_args(callee):
            if arg.name == "ctx":
                texts.append("ctx")
            elif arg.param is None:
                texts.append(self._count(callee, arg.name, passed))
            else:
                texts.append(fills.get(arg.name) or self._passed(arg.param, passed[arg.name]))
        return texts

    def _count(self, callee: Function, count: str, passed: dict[str, Passed]) -> str:
        """The length of the list that `count` counts."""
        listed = next(p for p in callee.params if p.tensor is not None and p.tensor.count == count)
        given = passed[listed.name]
        if isinstance(given, tuple):
            return str(len(given))
        assert isinstance(given, Name)
        own = self.function.param(given.name)
        assert own is not None and own.tensor is not None and own.tensor.count is not None
        return own.tensor.count

    def _passed(self, param: Param, passed: Passed) -> str:
        if isinstance(passed, Absent):
            return "nullptr"
        assert not isinstance(passed, Fill)
        if isinstance(param.type, TensorType):
            return self._tensor(param, passed)
        text = self._plain(param, param.type, passed)
        mutable = param.type.value is Value.SCALAR and not c_type(param).startswith("const")
        return f"const_cast<{c_type(param)}>({text})" if mutable and not self._mutable(passed) else text

    def _mutable(self, passed: Operand) -> bool:
        own = self.function.param(passed.name) if isinstance(passed, Name) else None
        return own is not None and c_type(own) == "diopiScalar_t*"

    def _tensor(self, param: Param, passed: Operand) -> str:
        if isinstance(passed, tuple):
            handle = c_type(param).removesuffix("*")
            return f"{self.ours('List')}<{handle}, {len(passed)}>{{{{{', '.join(map(str, passed))}}}}}.get()"
        assert isinstance(passed, Name)
        own = self.function.param(passed.name)
        constant = own is not None and "Const" in c_type(own)
        # Some inputs are mutable handles in the contract; they are inputs all the same.
        if constant and param.role is Role.IN and "Const" not in c_type(param):
            return f"const_cast<{c_type(param)}>({passed.name})"
        return passed.name

    def _plain(self, param: Param, type_: ValueType, passed: Operand) -> str:
        if isinstance(passed, Name) and self._passes_through(param, type_, passed.name):
            return passed.name
        if type_.many:
            return f"{self._list(passed)}.view()"
        assert not isinstance(passed, tuple)
        match type_.value:
            case Value.SCALAR:
                return f"{self._grouped(passed)}.scalar()"
            case Value.INT | Value.DIM | Value.INT32:
                return self._cast(type_, passed, "integer", "int32_t" if type_.value is Value.INT32 else "int64_t")
            case Value.FLOAT | Value.FLOAT32:
                return self._cast(type_, passed, "real", "float" if type_.value is Value.FLOAT32 else "double")
            case Value.BOOL:
                return self._boolean(type_, passed)
            case Value.STR:
                return c_text(passed.text) if isinstance(passed, Text) else str(passed)
            case _:
                return _enumerator(passed, type_) or str(passed)

    def _cast(self, type_: ValueType, expr: Expr, part: str, name: str) -> str:
        constant = _constant(expr)
        if constant is not None and constant[-1].isdigit():
            text = constant if part == "integer" or "." in constant or "e" in constant else f"{constant}.0"
        else:
            text = f"{self._grouped(expr)}.{part}()"
        if type_.value in (Value.INT32, Value.FLOAT32):
            text = f"static_cast<{name}>({text})"
        return f"{self.ours('At')}<{name}>{{{text}}}.get()" if type_.optional else text

    def _boolean(self, type_: ValueType, expr: Expr) -> str:
        text = self.condition(expr)
        return f"{self.ours('At')}<bool>{{{text}}}.get()" if type_.optional else text

    def _passes_through(self, param: Param, type_: ValueType, name: str) -> bool:
        own = self.function.param(name)
        if own is None or not isinstance(own.type, ValueType):
            return False
        kind = {Value.DIM: Value.INT}
        same = kind.get(own.type.value, own.type.value) is kind.get(type_.value, type_.value)
        alike = own.type.many == type_.many and (own.type.optional == type_.optional or type_.value is Value.SCALAR)
        return same and alike

    def _list(self, operand: Operand) -> str:
        if isinstance(operand, tuple):
            return f"{self.steps}.joined({{{', '.join(self._item(item) for item in operand)}}})"
        if isinstance(operand, Call):
            return self._item(operand)
        return f"{self.ours('Sizes')}({operand})"

    def _item(self, expr: Expr) -> str:
        match expr:
            case Call(function="last", args=(list_,)):
                return f"{self.steps}.last({list_})"
            case Call(function="dims_from", args=(tensor, first)):
                return f"{self.steps}.dims_from({tensor}, {self._item(first)})"
            case Call(function="others", args=(tensor, *dims)):
                return f"{self.steps}.others({tensor}, {{{', '.join(self._item(dim) for dim in dims)}}})"
            case Name(name=name) if self._many(name):
                return name
            case _:
                return _constant(expr) or self.number(expr)

    # -- what names are -------------------------------------------------------------------------------------

    def _type(self, expr: Expr) -> ValueType | None:
        param = self.function.param(expr.name) if isinstance(expr, Name) else None
        return param.type if param is not None and isinstance(param.type, ValueType) else None

    def _value(self, name: str) -> Value | None:
        type_ = self._type(Name(name=name))
        return None if type_ is None else type_.value

    def _many(self, name: str) -> bool:
        type_ = self._type(Name(name=name))
        return type_ is not None and type_.many

    def _optional(self, name: str) -> bool:
        param = self.function.param(name)
        return param is not None and param.type.optional

    def _grouped(self, expr: Expr) -> str:
        return self._operand(expr)


def temporary(speller: Speller, action: Temporary) -> str:
    """The statement that makes a temporary."""
    made = f"{speller.steps}.temporary({speller.dtype(action.type.element)}, {speller.shape(action.shape)})"
    return f"const diopiTensorHandle_t {action.name} = {made};"


def _tells(param: Param, element: Element) -> bool:
    tensor = param.tensor
    fits = tensor is not None and tensor.element == element and not tensor.optional and tensor.count is None
    return fits and not isinstance(element, Fixed) and param.role is not Role.CALLEE_OUT


def _enumerator(expr: Operand, type_: ValueType | None) -> str | None:
    """e.g. "ReductionMean" for `mean`."""
    if type_ is None or not isinstance(expr, Name):
        return None
    return ENUMERATORS.get(type_.value, {}).get(expr.name)


def _constant(expr: Expr) -> str | None:
    """e.g. "-2"."""
    match expr:
        case Number(text=text):
            return _literal(text)
        case Unary(op="-", operand=Number(text=text)):
            return f"-{_literal(text)}"
        case _:
            return None


def _literal(text: str) -> str:
    return {"inf": "INFINITY", "nan": "NAN"}.get(text) or c_number(text)
