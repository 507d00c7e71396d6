"""A type prints as the line that gives it."""

from hypothesis import given
from hypothesis import strategies as st

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.op import Role
from diopigen.model.type import (
    Accumulate,
    ComplexOf,
    Fixed,
    FloatOf,
    Length,
    Promote,
    RealOf,
    ShapeArithmetic,
    ShapeCall,
    ShapeName,
    TensorType,
    Type,
    Value,
    ValueType,
    Var,
)
from diopigen.source.schema.types import TypeLine, parse_arg, parse_keep, parse_out
from diopigen.source.yaml.nodes import Leaf
from diopigen.vocabulary.dtype import DType, DTypes, Kind

I64 = DType(name="i64", word="int64", value=6, size=8, kind=Kind.INTEGER, torch="int64")
DTYPES = DTypes(types=(I64,), sets=())


def leaf(text: str) -> Leaf:
    return Leaf(text=text, quoted=False, span=Span(path="a.yaml", line=3, column=10, length=len(text)))


def arg(text: str) -> TypeLine:
    diagnostics = Diagnostics()
    line = parse_arg(leaf(text), DTYPES, diagnostics)
    assert line is not None, diagnostics.found
    return line


def message(text: str) -> str:
    diagnostics = Diagnostics()
    assert parse_arg(leaf(text), DTYPES, diagnostics) is None
    (finding,) = diagnostics.found
    return f"{finding.span}: {finding.message}; {finding.hint}"


variables = st.sampled_from("TUV").map(lambda n: Var(name=n)) | st.just(Fixed(dtype=I64))
elements = st.recursive(
    variables,
    lambda inner: st.lists(inner, min_size=2, max_size=3).map(lambda e: Promote(elements=tuple(e)))
    | inner.map(lambda e: FloatOf(element=e))
    | inner.map(lambda e: Accumulate(element=e))
    | inner.map(lambda e: ComplexOf(element=e))
    | inner.map(lambda e: RealOf(element=e)),
    max_leaves=4,
)
tensors = st.builds(
    TensorType, element=elements, optional=st.booleans(), count=st.none() | st.sampled_from(["n", "num_inputs"])
)
values = st.one_of(
    st.builds(ValueType, value=st.sampled_from(Value), optional=st.booleans()),
    st.builds(
        ValueType,
        value=st.sampled_from([Value.INT, Value.DIM]),
        optional=st.booleans(),
        many=st.just(True),
        length=st.none() | st.integers(1, 9),
    ),
    st.builds(ValueType, value=st.just(Value.STR), words=st.sampled_from([(), ("none", "tanh"), ("", "add")])),
)


@given(tensors | values)
def test_every_type_prints_as_the_line_that_gives_it(type_: Type) -> None:
    diagnostics = Diagnostics()
    assert parse_keep(leaf(str(type_)), DTYPES, diagnostics) == type_
    assert not diagnostics.found


lengths = st.recursive(
    st.integers(-3, 99) | st.sampled_from(["n", "any"]).map(lambda n: ShapeName(name=n)),
    lambda inner: st.builds(ShapeArithmetic, operator=st.sampled_from("+-*/"), left=inner, right=inner)
    | st.builds(ShapeCall, rule=st.just("size"), args=st.tuples(inner, inner)),
    max_leaves=8,
)


@given(st.lists(lengths, max_size=3))
def test_every_shape_prints_as_the_line_that_gives_it(args: list[Length]) -> None:
    shape = ShapeCall(rule="shape", args=tuple(args))
    line = parse_out(leaf(f"Tensor<T> like {shape}"), DTYPES, Diagnostics())
    assert line is not None
    assert line.shape == shape


def test_an_argument_line_says_all() -> None:
    line = arg("inout Tensor<T>? = null")
    assert (str(line.type), line.role, line.default, line.has_default) == ("Tensor<T>?", Role.INOUT, None, True)
    line = arg("Tensor<U> | Scalar")
    assert line.scalar and not line.has_default
    assert arg("int[2] = [1, -2]").default == (1, -2)
    assert arg("float = -1e-3").default == -1e-3
    assert arg("bool = true").default is True
    assert arg('str = "none"').default == "none"
    assert arg("Reduction = mean").default == "mean"
    assert arg("Scalar = inf").default == float("inf")


def test_an_output_line_has_a_shape() -> None:
    line = parse_out(leaf("new Tensor<i64> like rows(input, shape_of(other), -1)"), DTYPES, Diagnostics())
    assert line is not None
    assert line.role is Role.CALLEE_OUT
    assert line.shape == ShapeCall(
        rule="rows",
        args=(ShapeName(name="input"), ShapeCall(rule="shape_of", args=(ShapeName(name="other"),)), -1),
    )


def test_a_bad_line_is_reported_at_its_column() -> None:
    assert message("Tensor<T") == "a.yaml:3:18: 'Tensor<T' is not a type; expected '(', '>'"
    assert message("Tensor") == "a.yaml:3:10: a tensor needs its element type; write 'Tensor<T>'"
    assert message("flaot = 1") == "a.yaml:3:10: there is no type 'flaot'; did you mean 'float'?"
    assert message("Tensor<i63>") == "a.yaml:3:17: there is no dtype 'i63'; did you mean 'i64'?"
    assert message("new Tensor<T>") == "a.yaml:3:10: an argument cannot be 'new'; list it under out"
    assert (
        message("Tensor<promot(T, T)>")
        == "a.yaml:3:17: 'promot' with 2 elements is not an element type; did you mean 'promote'?"
    )


def test_complex_and_real_types_belong_together() -> None:
    single = DType(name="f32", word="float32", value=9, size=4, kind=Kind.FLOAT, torch="float32")
    double = DType(name="f64", word="float64", value=10, size=8, kind=Kind.FLOAT, torch="float64")
    pair = DType(name="c64", word="complex64", value=15, size=8, kind=Kind.COMPLEX, torch="complex64")
    known = DTypes(types=(I64, single, double, pair), sets=())
    assert (known.complex_of(single), known.real_of(pair)) == (pair, single)
    assert (known.complex_of(I64), known.real_of(I64), known.real_of(double)) == (I64, I64, double)
