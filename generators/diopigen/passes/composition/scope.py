"""What a name means inside of a composition: an argument, an output, a temporary or a word."""

from dataclasses import dataclass, field

from diopigen.model.compose import OF_TENSORS, Operand, Temporary
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Function, Param, Role
from diopigen.model.type import ENUMERATORS, NUMBERS, TensorType, Value, ValueType

NULL = "null"
TRUTHS = ("true", "false")

# Functions of numbers, with the number of their arguments; runtime_cpp/composite/steps.h has them.
HOST = {"numel": 1, "size": 2, "rank": 1, "length": 1, "abs": 1, "sqrt": 1, "pow": 2, "min": 2, "max": 2}
# Functions that give dimensions, and how many arguments they take.
LISTS = {"last": (1, 1), "dims_from": (2, 2), "others": (2, 8)}


@dataclass(slots=True)
class Scope:
    """The names of one function and the temporaries that were declared so far."""

    function: Function
    temporaries: dict[str, Temporary] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return (*(p.name for p in self.function.params), *self.temporaries)

    def param(self, name: str) -> Param | None:
        return self.function.param(name)

    def knows(self, name: str) -> bool:
        return name in self.temporaries or self.param(name) is not None

    def tensor(self, operand: Operand) -> TensorType | None:
        """The type of the tensor, or list of tensors, that `operand` names."""
        if not isinstance(operand, Name):
            return None
        if operand.name in self.temporaries:
            return self.temporaries[operand.name].type
        param = self.param(operand.name)
        return None if param is None else param.tensor

    def value(self, operand: Operand) -> ValueType | None:
        """The type of the non-tensor argument that `operand` names."""
        param = self.param(operand.name) if isinstance(operand, Name) else None
        return param.type if param is not None and isinstance(param.type, ValueType) else None

    def optional(self, name: str) -> bool:
        """Whether the caller may leave it out."""
        param = self.param(name)
        return param is not None and param.type.optional

    def writable(self, name: str) -> bool:
        param = self.param(name)
        return name in self.temporaries or (param is not None and param.role is not Role.IN)

    def number(self, expr: Operand) -> bool:
        """Whether `expr` is a number that the host can compute."""
        match expr:
            case Number():
                return True
            case Name():
                type_ = self.value(expr)
                return type_ is not None and type_.value in NUMBERS and not type_.many
            case Unary():
                return expr.op == "-" and self.number(expr.operand)
            case Binary():
                return expr.op in "+-*/" and self.number(expr.left) and self.number(expr.right)
            case Call():
                return self._host_call(expr)
            case Text() | tuple():
                return False

    def _host_call(self, call: Call) -> bool:
        if HOST.get(call.function) != len(call.args):
            return False
        first, *others = call.args
        if call.function == "length":
            type_ = self.value(first)
            return type_ is not None and type_.many
        if call.function in OF_TENSORS:
            tensor = self.tensor(first)
            return tensor is not None and tensor.count is None and all(self.number(arg) for arg in others)
        return all(self.number(arg) for arg in call.args)

    def lengths(self, operand: Operand) -> bool:
        """Whether `operand` is a list of whole numbers; lists inside of brackets are joined."""
        if isinstance(operand, tuple):
            return all(self.number(item) or self.lengths(item) for item in operand)
        if isinstance(operand, Call):
            return self._list_call(operand)
        type_ = self.value(operand)
        return type_ is not None and type_.many and type_.value in (Value.INT, Value.DIM)

    def _list_call(self, call: Call) -> bool:
        low, high = LISTS.get(call.function, (1, 0))
        if not low <= len(call.args) <= high:
            return False
        first, *others = call.args
        if call.function == "last":
            return self.lengths(first)
        return self.tensor(first) is not None and all(self.number(arg) for arg in others)

    def condition(self, expr: Expr) -> bool:
        """Whether the host can decide `expr` before any element is computed."""
        match expr:
            case Name():
                type_ = self.value(expr)
                truth = expr.name in TRUTHS or (type_ is not None and type_.value is Value.BOOL)
                return truth or self.optional(expr.name)
            case Unary(op="not"):
                return self.condition(expr.operand)
            case Binary(op="and" | "or"):
                return self.condition(expr.left) and self.condition(expr.right)
            case Binary(op="==" | "!=" | "<" | "<=" | ">" | ">="):
                return self._comparison(expr)
            case Call(function="given"):
                return len(expr.args) == 1 and isinstance(expr.args[0], Name) and self.optional(expr.args[0].name)
            case _:
                return False

    def _comparison(self, expr: Binary) -> bool:
        if self.number(expr.left) and self.number(expr.right):
            return True
        type_ = self.value(expr.left)
        if type_ is None or expr.op not in ("==", "!="):
            return False
        if isinstance(expr.right, Text):
            return type_.value is Value.STR and (not type_.words or expr.right.text in type_.words)
        return isinstance(expr.right, Name) and self.word(expr.right, type_)

    def word(self, name: Name, type_: ValueType) -> bool:
        """Whether `name` is an enumerator of `type_`."""
        return name.name in ENUMERATORS.get(type_.value, {})
