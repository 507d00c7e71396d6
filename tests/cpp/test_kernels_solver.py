"""Cholesky factors, triangular systems and QR by the loops for chips without a solver library, against torch."""

import itertools
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from families import Families, blank, close, layouts, numbers

from portable import DEEP_TEAMS, FLAGS, build

KERNELS = ("linear_algebra", "qr")


@pytest.fixture(scope="module", params=[FLAGS, DEEP_TEAMS], ids=["host", "teams"])
def kernels(request: pytest.FixtureRequest) -> Families:
    return Families(build(KERNELS, request.param))


def positive_definite(shape: tuple[int, ...]) -> torch.Tensor:
    root = numbers(shape, torch.float64)
    return root @ root.mT + torch.eye(shape[-1], dtype=torch.float64)


@pytest.mark.parametrize("shape", [(2, 7, 7), (1, 1), (0, 0), (0, 3, 3), (2, 2, 33, 33)])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_and_its_gradient(kernels: Families, shape: tuple[int, ...], upper: bool) -> None:
    mat = positive_definite(shape).requires_grad_()
    expected = torch.linalg.cholesky(mat, upper=upper)
    grad = numbers(shape, torch.float64, 1)
    expected.backward(grad)
    assert mat.grad is not None
    for source, layout in itertools.product(layouts(mat.detach()), range(3)):
        out, info = blank(expected.detach(), layout), torch.full(shape[:-2], 7, dtype=torch.int32)
        kernels("diopiCholesky", out, info, source, upper, True)
        close(out, expected.detach())
        assert not info.any()
        result = blank(mat.grad, layout)
        kernels("diopiCholeskyBackward", result, grad, out, upper)
        close(result, mat.grad)


def test_a_minor_that_is_not_positive_is_told(kernels: Families) -> None:
    mat = positive_definite((4, 5, 5))
    mat[1, 3, 3] = -1
    mat[2, 2, 2] = 0
    mat[2, 4, 4] = float("nan")
    mat[3, 2, 0] = float("nan")
    out, info = torch.empty_like(mat), torch.empty(4, dtype=torch.int32)
    kernels("diopiCholesky", out, info, mat, False, False)
    assert info.tolist() == [0, 4, 3, 3]
    assert kernels.status("diopiCholesky", out, info, mat, False, True) != 0
    assert "matrix 1 is not positive definite: its leading minor of order 4" in kernels.last_error()


@pytest.mark.parametrize(("b", "mat"), [((3, 5, 2), (3, 5, 5)), ((2, 5, 4), (5, 5)), ((5, 1), (2, 5, 5))])
@pytest.mark.parametrize(("upper", "transpose", "unit"), list(itertools.product([False, True], repeat=3)))
def test_triangular_systems_and_their_gradients(
    kernels: Families, b: tuple[int, ...], mat: tuple[int, ...], upper: bool, transpose: bool, unit: bool
) -> None:
    right, source = numbers(b, torch.float64).requires_grad_(), positive_definite(mat).requires_grad_()
    x, clone = torch.triangular_solve(right, source, upper, transpose, unit)
    grads = numbers(tuple(x.shape), torch.float64, 1), numbers(tuple(clone.shape), torch.float64, 2)
    torch.autograd.backward((x, clone), grads)
    assert right.grad is not None
    assert source.grad is not None
    for layout in range(3):
        out, copy = blank(x.detach(), layout), blank(clone.detach(), layout)
        given = list(layouts(right.detach()))[layout], list(layouts(source.detach()))[layout]
        kernels("diopiTriangularSolve", out, copy, *given, upper, transpose, unit)
        close(out, x.detach())
        close(copy, clone.detach())
        results = blank(right.grad, layout), blank(source.grad, layout)
        kernels("diopiTriangularSolveBackward", *results, *grads, out, *given, upper, transpose, unit)
        close(results[0], right.grad)
        close(results[1], source.grad)


@pytest.mark.parametrize("shape", [(3, 7, 5), (2, 4, 6), (6, 6), (5, 0), (0, 5), (0, 3, 2), (1, 1), (2, 40, 9)])
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_has_the_signs_of_lapack(kernels: Families, shape: tuple[int, ...], mode: str) -> None:
    source = numbers(shape, torch.float64)
    if source.numel() > 1:
        source[..., 1:, 0] = 0  # a column that needs no reflection
    q, r = torch.linalg.qr(source, mode)
    for a, layout in itertools.product(layouts(source), range(3)):
        results = blank(q, layout if mode != "r" else 0), blank(r, layout)
        kernels("diopiLinalgQR", a, mode.encode(), *results)
        close(results[1], r)
        if mode != "r":
            close(results[0], q)
