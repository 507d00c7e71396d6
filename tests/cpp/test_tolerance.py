"""The interposer's bound on an error is that of the conformance suite, to the last bit but one of float64."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from diopi_conformance.judgement.closeness import Output, compared
from diopi_conformance.judgement.fault import Closeness
from diopi_conformance.judgement.tolerance import PRECISION, Terms, Tolerance, tolerance_of
from diopi_conformance.values.elements import Array
from diopigen.vocabulary.loaded import DTYPE

ROOT = Path(__file__).resolve().parents[2]
FLOATS = [name for name in PRECISION if DTYPE[name].numpy is not None]


@pytest.fixture(scope="module")
def interposer(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("tolerance") / "libtolerance.so"
    includes = [f"-I{ROOT / 'generated/include'}", f"-I{ROOT / 'runtime_cpp/torch/interposer'}"]
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    source = Path(__file__).parent / "tolerance" / "bounds.cpp"
    subprocess.run(["g++", *flags, *includes, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.largest.restype = ctypes.c_double
    loaded.overflows.restype = ctypes.c_bool
    return loaded


def tolerance(dtype: str, elementwise: bool) -> Tolerance:
    return tolerance_of((dtype,), exact=False, pairs={}, elementwise=elementwise)


def numbers(dtype: str) -> Array:
    """Of all sizes that the type has and beyond; with zero, infinity, NaN, powers of 2 and both ends of the type."""
    precision = PRECISION[dtype]
    random = np.random.default_rng(7)
    least, most = precision.smallest - 3, min(np.frexp(precision.largest)[1] + 3, 1023)
    drawn = np.ldexp(random.uniform(-1, 1, 5000), random.integers(least, most, 5000))
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, precision.largest, -precision.largest, 2.0**precision.smallest]
    return np.array([*drawn, *ends, *np.exp2(np.arange(max(least, -1000), most))])


def bounds(interposer: ctypes.CDLL, dtype: str, exact: Array, terms: float, scale: float) -> Array:
    found = np.empty_like(exact)
    pointers = [values.ctypes.data_as(ctypes.c_void_p) for values in (exact, found)]
    sizes = ctypes.c_int64(exact.size), ctypes.c_double(terms), ctypes.c_double(scale)
    interposer.bounds(DTYPE[dtype].value, sizes[0], pointers[0], *sizes[1:], pointers[1])
    return found


@pytest.mark.parametrize("dtype", FLOATS)
def test_elementwise_bounds_agree(interposer: ctypes.CDLL, dtype: str) -> None:
    exact = numbers(dtype)
    wanted = tolerance(dtype, elementwise=True).near(exact)
    np.testing.assert_array_max_ulp(bounds(interposer, dtype, exact, 1, 0), wanted, maxulp=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("terms", "scale"), [(1, 0.5), (7, 3.0), (4096, 1e-3), (1_000_003, 65504.0)])
def test_bounds_of_sums_agree(interposer: ctypes.CDLL, dtype: str, terms: int, scale: float) -> None:
    exact = numbers(dtype)
    wanted = tolerance(dtype, elementwise=True).wide(exact, Terms(magnitude=np.full(exact.shape, scale), length=terms))
    np.testing.assert_array_max_ulp(bounds(interposer, dtype, exact, terms, scale), wanted, maxulp=2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_same_infinities_stand_for_numbers_that_do_not_fit(interposer: ctypes.CDLL, dtype: str) -> None:
    largest = PRECISION[dtype].largest
    assert interposer.largest(DTYPE[dtype].value) == largest
    own = tolerance(dtype, elementwise=True)
    with np.errstate(over="ignore"):
        for found in (np.inf, -np.inf):
            for exact in np.array([0.5, 1 - 2.0**-20, 1 - 2.0**-60, 1, 1.5, -1.5, -0.5]) * largest:
                wanted = compared(
                    Output(label="out", dtype=dtype, actual=np.array([found]), exact=np.array([exact])), own
                )
                bound = float(own.near(np.array([exact]))[0])
                values = [ctypes.c_double(value) for value in (found, exact, bound)]
                agreed = found == exact or interposer.overflows(DTYPE[dtype].value, *values)
                assert agreed == isinstance(wanted, Closeness), (dtype, found, exact)
