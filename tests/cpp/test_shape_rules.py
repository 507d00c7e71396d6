"""The shape rules of convolutions, poolings, columns, grids and factors against the shapes that torch gives."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
BACKEND = ROOT / "runtime_cpp" / "torch"
RULES = BACKEND / "shapes"
TORCH = Path(torch.__file__).parent

Sizes = list[int]
Rule = Callable[..., Sizes | None]


class List(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_int64)), ("size", ctypes.c_int64)]


@pytest.fixture(scope="module")
def rule(tmp_path_factory: pytest.TempPathFactory) -> Rule:
    """Calls a rule by its name; None where it refuses."""
    library = tmp_path_factory.mktemp("shapes") / "libshapes.so"
    sources = [
        Path(__file__).parent / "shapes" / "rules.cpp",
        RULES / "shapes.cpp",
        RULES / "view_shapes.cpp",
        RULES / "window_shapes.cpp",
    ]
    includes = [f"-isystem{TORCH / 'include'}", f"-I{BACKEND}", f"-I{RULES}"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    links = [f"-L{TORCH / 'lib'}", f"-Wl,-rpath,{TORCH / 'lib'}", "-ltorch_cpu", "-lc10"]
    flags = ["-std=c++20", "-O0", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", abi]
    subprocess.run(["g++", *flags, *includes, *map(str, sources), *links, "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).shape_by_rule
    function.restype = ctypes.c_int64

    def call(name: str, *given: Sizes | int) -> Sizes | None:
        values = [[v] if isinstance(v, int) else list(v) for v in given]
        lists = (List * len(values))(*(List((ctypes.c_int64 * len(v))(*v), len(v)) for v in values))
        out = (ctypes.c_int64 * 8)()
        count = function(name.encode(), lists, ctypes.c_int64(len(values)), out)
        return None if count < 0 else list(out[:count])

    return call


def meta(*sizes: int) -> torch.Tensor:
    return torch.empty(sizes, device="meta")


CONVOLUTIONS = [
    ([2, 4, 9, 11], [6, 2, 3, 2], [1, 1], [0, 0], [1, 1], 2),
    ([2, 4, 9, 11], [6, 4, 3, 2], [2, 3], [1, 2], [2, 1], 1),
    ([1, 3, 5, 6, 7], [4, 3, 2, 3, 1], [2, 1, 3], [1, 0, 2], [1, 2, 1], 1),
]


@pytest.mark.parametrize(("source", "weight", "stride", "padding", "dilation", "groups"), CONVOLUTIONS)
def test_a_convolution_has_torchs_shape(
    rule: Rule, source: Sizes, weight: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> None:
    compute = F.conv2d if len(source) == 4 else F.conv3d
    expected = compute(meta(*source), meta(*weight), None, stride, padding, dilation, groups).shape
    assert rule("conv_output", source, weight, stride, padding, dilation) == list(expected)


@pytest.mark.parametrize(
    ("source", "weight", "stride", "padding", "more", "groups", "dilation"),
    [
        ([2, 4, 5, 6], [4, 3, 3, 2], [1, 1], [0, 0], [0, 0], 1, [1, 1]),
        ([2, 4, 5, 6], [4, 3, 3, 2], [2, 3], [1, 2], [1, 2], 2, [2, 1]),
        ([1, 4, 3, 4, 5], [4, 2, 2, 3, 1], [2, 1, 3], [1, 0, 0], [1, 0, 2], 4, [1, 2, 1]),
    ],
)
def test_a_transposed_convolution_has_torchs_shape(
    rule: Rule, source: Sizes, weight: Sizes, stride: Sizes, padding: Sizes, more: Sizes, groups: int, dilation: Sizes
) -> None:
    compute = F.conv_transpose2d if len(source) == 4 else F.conv_transpose3d
    expected = compute(meta(*source), meta(*weight), None, stride, padding, more, groups, dilation).shape
    found = rule("conv_transpose_output", source, weight, stride, padding, more, groups, dilation)
    assert found == list(expected)


def test_a_transposed_convolution_takes_one_number_for_all_dimensions(rule: Rule) -> None:
    expected = F.conv_transpose2d(meta(2, 4, 5, 6), meta(4, 3, 3, 2), None, 2, 1, 1).shape
    assert rule("conv_transpose_output", [2, 4, 5, 6], [4, 3, 3, 2], 2, 1, 1, 1, 1) == list(expected)


def test_a_convolution_of_other_ranks_is_refused(rule: Rule) -> None:
    assert rule("conv_transpose_output", [2, 4, 5], [4, 3, 3, 2], 1, 0, 0, 1, 1) is None
    assert rule("conv_output", [2, 4, 5], [4, 3, 3, 2], 1, 0, 1) is None


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [([3, 2], [], [0, 0], [1, 1]), ([3, 3], [2, 2], [1, 1], [1, 1]), ([2, 3], [3, 2], [1, 0], [2, 1])],
)
@pytest.mark.parametrize("source", [[2, 5, 11, 10], [5, 12, 9]])
def test_a_pooling_has_torchs_shape(
    rule: Rule, source: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> None:
    expected = F.max_pool2d(meta(*source), kernel, stride or None, padding, dilation, ceil_mode).shape
    assert rule("pool_output", source, kernel, stride, padding, dilation, ceil_mode) == list(expected)
    assert rule("pooled", source, kernel, stride, padding, dilation, ceil_mode, 0, [], 1) == list(expected)


@pytest.mark.parametrize("source", [[2, 5, 11], [5, 11]])
def test_a_pooling_of_sequences_has_torchs_shape(rule: Rule, source: Sizes) -> None:
    expected = F.max_pool1d(meta(*source), 3, 2, 1).shape
    assert rule("pool_output", source, [3], [2], [1], [1], 0) == list(expected)


def test_an_adaptive_pooling_has_the_size_that_it_is_given(rule: Rule) -> None:
    assert rule("pooled", [2, 5, 11, 10], [], [], 0, 1, 0, 1, [3, 4], 1) == [2, 5, 3, 4]


@pytest.mark.parametrize("dilation", [[0, 0], [2, 3]])
def test_an_average_has_no_dilation(rule: Rule, dilation: Sizes) -> None:
    expected = F.avg_pool2d(meta(2, 5, 11, 10), [3, 2], 2, 1).shape
    assert rule("pooled", [2, 5, 11, 10], [3, 2], [2], [1], dilation, 0, 0, [], 0) == list(expected)


@pytest.mark.parametrize("source", [[2, 3, 8, 9], [3, 8, 9]])
@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"),
    [([3, 2], [1, 1], [0, 0], [1, 1]), ([2, 3], [2, 1], [1, 2], [3, 2])],
)
def test_columns_are_those_of_torch_and_lead_back(
    rule: Rule, source: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> None:
    expected = F.unfold(meta(*source), kernel, dilation, padding, stride).shape
    found = rule("columns", source, kernel, dilation, padding, stride)
    assert found == list(expected)
    assert rule("from_columns", found, source[-2:], kernel) == source


def test_columns_that_are_no_windows_are_refused(rule: Rule) -> None:
    assert rule("from_columns", [2, 17, 30], [7, 7], [3, 2]) is None
    assert rule("columns", [8, 9], 2, 1, 0, 1) is None


@pytest.mark.parametrize(("source", "grid"), [([2, 3, 5, 6], [2, 4, 7, 2]), ([1, 2, 3, 4, 5], [1, 6, 5, 4, 3])])
def test_samples_lie_as_the_grid_does(rule: Rule, source: Sizes, grid: Sizes) -> None:
    expected = F.grid_sample(meta(*source), meta(*grid), align_corners=False).shape
    assert rule("sampled", source, grid) == list(expected)
    assert rule("sampled", source, grid[1:]) is None


@pytest.mark.parametrize(("axis", "expected"), [(1, [4, 1, 1]), (-1, [4, 5, 1]), (0, [1, 1, 1])])
def test_statistics_begin_at_an_axis(rule: Rule, axis: int, expected: Sizes) -> None:
    assert rule("statistics_from", [4, 5, 6], axis) == expected


@pytest.mark.parametrize("source", [[7, 5], [2, 4, 6], [3, 0, 2]])
@pytest.mark.parametrize(("number", "mode"), [(0, "reduced"), (1, "complete"), (2, "r")])
def test_factors_have_torchs_shapes(rule: Rule, source: Sizes, number: int, mode: str) -> None:
    q, r = torch.linalg.qr(meta(*source), mode)
    assert (rule("qr_q", source, number), rule("qr_r", source, number)) == (list(q.shape), list(r.shape))


def test_factors_are_of_matrices(rule: Rule) -> None:
    assert rule("qr_q", [5], 0) is None and rule("qr_r", [5], 1) is None


@pytest.mark.parametrize("dim", [None, 0, -1])
def test_repeats_are_found_in_every_place(rule: Rule, dim: int | None) -> None:
    _, inverse = torch.unique(torch.zeros(4, 5, 6), return_inverse=True, dim=dim)
    assert rule("inverse", [4, 5, 6], [] if dim is None else dim) == list(inverse.shape)


def test_a_grid_has_a_dimension_for_each_sequence(rule: Rule) -> None:
    expected = torch.meshgrid(meta(5), meta(1), meta(), indexing="ij")[0].shape
    assert rule("meshgrid", [5], [1], []) == list(expected)
