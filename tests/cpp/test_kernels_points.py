"""Point clouds, voxels, sparse matrices and tokens, where the rows of the schemas do not reach: distributions,
compressed rows, NaN, nothing at all, and arguments that do not fit."""

import ctypes
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from families import Families, close, layouts, numbers

from portable import ERROR, NOT_IMPLEMENTED, SUCCESS, build

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NAMES = (
    "assign_score",
    "chamfer_distance",
    "decoding",
    "penalties",
    "point_grouping",
    "point_neighbors",
    "sparse",
    "sparse_convolution",
    "token_sampling",
    "voxels",
)


@pytest.fixture(scope="module")
def kernels() -> Families:
    return Families(build(NAMES))


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_compressed_rows(kernels: Families, dtype: torch.dtype) -> None:
    a, b = numbers((5, 7), dtype), numbers((7, 3), dtype, 1)
    a[numbers((5, 7), seed=2) < 0.5] = 0
    a[2] = 0  # a row without elements
    b[6, 0] = torch.nan  # met by none of the elements that are stored
    a[:, 6] = 0
    expected = (a.double() @ b.double().nan_to_num(0)).to(dtype)
    for right in layouts(b):
        out = torch.full((5, 3), torch.nan, dtype=dtype)
        kernels("diopiSpMM", out, a.to_sparse_csr(), right)
        close(out, expected, 3)


def test_products_with_a_sparse_second_matrix_are_not_implemented(kernels: Families) -> None:
    a, out = numbers((5, 5), torch.float32), torch.full((5, 5), 7.0)
    for left in (a, a.to_sparse_csr()):
        assert kernels.status("diopiSpMM", out, left, a.to_sparse_csr()) == NOT_IMPLEMENTED
    assert torch.equal(out, torch.full((5, 5), 7.0))


def _draws(kernels: Families, logits: torch.Tensor, count: int, k: int | None, p: float) -> torch.Tensor:
    """How often each token is drawn, as a share."""
    rows = logits.expand(count, -1)
    ids, ends = torch.full((2, count), 99), torch.full((count,), -1)
    generators = [kernels.generator(seed).value for seed in range(count)]
    share = torch.full((count,), p)
    tail = (0, ends, None, None, 1, count, logits.numel())
    size = (ctypes.c_int64 * 1)(0)
    if k is None:
        kernels("diopiTopPSampling", ids, rows, None, size, None, size, *tail, share, None, None, None, generators)
    else:
        ks = torch.full((count,), k)
        kernels("diopiTopKSampling", ids, rows, None, size, *tail, ks, share, None, None, None, generators)
    assert (ids[0] == 99).all()
    return torch.bincount(ids[1], minlength=logits.numel()) / count


@pytest.mark.parametrize("k", [5, 50])
def test_top_k_draws_by_probability_among_the_likeliest(kernels: Families, k: int) -> None:
    logits = torch.randn(60, generator=torch.Generator().manual_seed(0)) * 2
    logits[7] = -torch.inf
    kept = logits.topk(k).indices
    expected = torch.zeros(60)
    expected[kept] = logits[kept].softmax(0)
    assert (_draws(kernels, logits, 4000, k, 1.0) - expected).abs().max() < 0.03
    assert (_draws(kernels, logits, 500, k, 1.0)[expected == 0] == 0).all()


def test_top_p_draws_from_the_fewest_tokens_that_make_up_the_share(kernels: Families) -> None:
    chances = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])
    found = _draws(kernels, chances.log(), 4000, None, 0.65)
    assert (found[[0, 2, 4]] == 0).all()
    assert abs(found[1] - 0.4 / 0.65) < 0.03
    assert (_draws(kernels, chances.log(), 4000, None, 1.0) - chances).abs().max() < 0.03


def test_a_negative_size_only_asks_for_a_workspace(kernels: Families) -> None:
    size = (ctypes.c_int64 * 1)(-1)
    ids = torch.full((1, 1), 99)
    ones = torch.ones(1)
    tail = (0, torch.zeros(1, dtype=torch.int64), None, None, 0, 1, 4)
    kernels("diopiTopKSampling", ids, torch.zeros(1, 4), None, size, *tail, ones.long(), ones, None, None, None, None)
    assert size[0] == 0 and ids.item() == 99


@pytest.mark.parametrize("kind", [1, 2])
def test_a_token_is_penalized_once(kernels: Families, kind: int) -> None:
    logits = torch.tensor([[2.0, -2.0, 4.0]])
    ids = torch.tensor([[0], [0], [1], [0], [1], [7]])  # and one that is no token
    kernels("diopiBatchApplyRepetitionPenaltyInp", logits, torch.tensor([4.0]), ids, 1, 3, None, 0, 6, kind)
    assert logits.tolist() == [[[-2.0, -6.0, 4.0], [0.5, -8.0, 4.0]][kind - 1]]


def test_words_without_tokens_ban_and_stop_nothing(kernels: Families) -> None:
    words = torch.tensor([[[3, 5, 0], [0, 1, -1]]])  # the first one is empty
    logits, finished = torch.zeros(1, 6), torch.zeros(1, dtype=torch.bool)
    texts = torch.tensor([[5], [5]])
    kernels("diopiBanBadWordsInp", logits, texts, words, 0, 3, False, 1, 6, 1)
    kernels("diopiStopWordsCriterion", texts, words, finished, 0, 3, 1, 0)
    assert logits.isinf().nonzero().tolist() == [[0, 3]]
    assert not finished.item()


def test_nan_is_the_nearest_and_the_greatest(kernels: Families) -> None:
    a, b = torch.zeros(1, 1, 2), torch.tensor([[[1.0, 0.0], [torch.nan, 0.0], [0.5, 0.0]]])
    dist1, dist2 = torch.zeros(1, 1), torch.zeros(1, 3)
    idx1, idx2 = torch.zeros(1, 1, dtype=torch.int32), torch.zeros(1, 3, dtype=torch.int32)
    kernels("diopiChamferDistanceMmcv", dist1, dist2, idx1, idx2, a, b)
    assert dist1.isnan().item() and idx1.item() == 1
    pairs, counts = torch.zeros(1, 2, 1, dtype=torch.int32), torch.ones(1, dtype=torch.int32)
    out = kernels.allocated("diopiIndiceMaxpoolMmcv", torch.full((1, 2), torch.nan), pairs, counts, 2)
    assert out[0].isnan().all() and (out[1] == 0).all()


def test_nothing_of_everything(kernels: Families) -> None:
    none = torch.empty(2, 0, 3)
    kernels("diopiKnnMmcv", torch.empty(2, 0, 2, dtype=torch.int32), torch.empty(2, 0, 2), numbers((2, 4, 3)), none,
            2, 4, 0, 2)  # fmt: skip
    grads = torch.full((2, 3, 4), torch.nan)
    kernels(
        "diopiGatherPointsBackwardMmcv", grads, torch.empty(2, 3, 0), torch.empty(2, 0, dtype=torch.int32), 2, 3, 4, 0
    )
    assert (grads == 0).all()
    dists = (
        torch.empty(2, 0),
        torch.empty(2, 0),
        torch.empty(2, 0, dtype=torch.int32),
        torch.empty(2, 0, dtype=torch.int32),
    )
    kernels("diopiChamferDistanceMmcv", *dists, none, none)
    size, span = torch.ones(3), torch.tensor([0.0, 0, 0, 2, 2, 2])
    held, coors = torch.full((2, 3, 3), torch.nan), torch.full((2, 3), 9, dtype=torch.int32)
    counts, found = torch.full((2,), 9, dtype=torch.int32), torch.tensor(9)
    kernels("diopiHardVoxelizeMmcv", held, coors, counts, found, torch.empty(0, 3), size, span, 3, 2, 3, True)
    assert (held == 0).all() and (coors == 0).all() and (counts == 0).all() and found.item() == 0


def test_arguments_that_do_not_fit_are_refused(kernels: Families) -> None:
    idx = torch.zeros(2, 5, dtype=torch.int32)
    assert kernels.status("diopiGatherPointsMmcv", torch.empty(2, 3, 5), numbers((2, 3, 4)), idx, 2, 3, 5, 5) == ERROR
    assert "'points'" in kernels.last_error()
    idx[1, 2] = 4
    assert kernels.status("diopiGatherPointsMmcv", torch.empty(2, 3, 5), numbers((2, 3, 4)), idx, 2, 3, 4, 5) == ERROR
    assert "index 4 is out of bounds" in kernels.last_error()
    few = numbers((1, 2, 3))
    outs = torch.empty(1, 2, 3), torch.empty(1, 2, 3, dtype=torch.int32)
    assert kernels.status("diopiThreeNnMmcv", *outs, few, few, 1, 2, 2) == ERROR
    assert "2 points do not have 3 nearest ones" in kernels.last_error()


def test_many_voxels_find_their_places(kernels: Families) -> None:
    """So many that hashes meet; numbers follow the first points."""
    points = torch.rand(3000, 3, generator=torch.Generator().manual_seed(0)) * 12
    size, span = torch.ones(3), torch.tensor([0.0, 0, 0, 10, 12, 12])
    held, coors = torch.empty(1500, 2, 3), torch.empty(1500, 3, dtype=torch.int32)
    counts, found = torch.empty(1500, dtype=torch.int32), torch.tensor(0)
    kernels("diopiHardVoxelizeMmcv", held, coors, counts, found, points, size, span, 2, 1500, 3, True)
    members: dict[tuple[int, ...], list[int]] = {}
    for i, place in enumerate(points.floor().int().tolist()):
        if place[0] < 10:
            members.setdefault(tuple(place[::-1]), []).append(i)
    assert found.item() == len(members) < 1500
    for v, (place, inside) in enumerate(members.items()):
        assert coors[v].tolist() == list(place)
        assert counts[v] == min(2, len(inside))
        assert torch.equal(held[v, : counts[v]], points[inside[:2]])


def test_only_sums_of_scores(kernels: Families) -> None:
    features, scores, idx = numbers((1, 2, 1, 3)), numbers((1, 1, 2, 1)), torch.tensor([[[0, 1]]])
    arguments = (torch.empty(1, 3, 1, 2), features, features, scores, idx, 1, 2, 1, 1, 2, 3)
    assert kernels.status("diopiAssignScoreWithkMmcv", *arguments, 0) == SUCCESS
    assert kernels.status("diopiAssignScoreWithkMmcv", *arguments, 2) == ERROR
    assert "'aggregate' must be 0" in kernels.last_error()
