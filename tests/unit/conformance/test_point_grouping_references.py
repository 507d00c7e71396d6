"""The written references of grouped points and of mmcv's norm over devices against loops and PyTorch's own."""

import itertools

import pytest
import torch
import torch.nn.functional as nnf

from tests.unit.conformance.written import numbers, reference

Tensor = torch.Tensor


def places(high: int, *sizes: int, seed: int = 0) -> Tensor:
    return torch.randint(high, sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.int32)


def test_points_are_gathered_and_grouped_in_their_own_cloud() -> None:
    points, single, grouped = numbers(2, 3, 5), places(5, 2, 4), places(5, 2, 4, 6)
    found = reference("diopiGatherPointsMmcv", points=points, idx=single)["out"]
    for b, c, i in itertools.product(*map(range, (2, 3, 4))):
        assert found[b, c, i] == points[b, c, single[b, i]]
    found = reference("diopiGroupPointsMmcv", points=points, idx=grouped)["out"]
    for b, c, i, j in itertools.product(*map(range, (2, 3, 4, 6))):
        assert found[b, c, i, j] == points[b, c, grouped[b, i, j]]


def test_stacked_clouds_count_from_their_first_point() -> None:
    found = reference(
        "diopiStackGroupPointsMmcv",
        features_tensor=torch.tensor([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0], [4.0, -4.0], [5.0, -5.0]]),
        features_batch_cnt_tensor=torch.tensor([2, 3]),
        idx_tensor=torch.tensor([[1, 0], [0, 2], [2, 1]]),
        idx_batch_cnt_tensor=torch.tensor([1, 2]),
    )
    assert found["out_tensor"].tolist() == [[[2, 1], [-2, -1]], [[3, 5], [-3, -5]], [[5, 4], [-5, -4]]]


def test_three_features_are_weighted() -> None:
    points, idx, weight = numbers(2, 3, 6), places(6, 2, 4, 3), numbers(2, 4, 3, seed=1)
    found = reference("diopiThreeInterpolateMmcv", points=points, idx=idx, weight=weight)["out"]
    for b, c, i in itertools.product(*map(range, (2, 3, 4))):
        expected = sum(float(weight[b, i, j] * points[b, c, idx[b, i, j]]) for j in range(3))
        assert found[b, c, i] == pytest.approx(expected)


def test_scores_weigh_the_way_from_the_first_neighbour() -> None:
    points, centers, scores = numbers(2, 5, 3, 4), numbers(2, 5, 3, 4, seed=1), numbers(2, 6, 2, 3, seed=2)
    idx = places(5, 2, 6, 2).long()
    found = reference("diopiAssignScoreWithkMmcv", points=points, centers=centers, scores=scores, knn_idx=idx)["output"]
    assert found.shape == (2, 4, 6, 2)
    for b, o, n, k in itertools.product(*map(range, found.shape)):
        expected = 0.0
        for m in range(3):
            relative = points[b, idx[b, n, k], m, o] - centers[b, idx[b, n, 0], m, o]
            expected += float(scores[b, n, k, m] * relative)
        assert found[b, o, n, k] == pytest.approx(expected)


EPS, MOMENTUM = 1e-3, 0.2


@pytest.mark.parametrize("group", [1, 2])
def test_the_steps_of_all_devices_are_one_batch_norm(group: int) -> None:
    whole = numbers(6, 3, 5).requires_grad_(True)
    weight, bias = numbers(3, seed=1).requires_grad_(True), numbers(3, seed=2).requires_grad_(True)
    grad = numbers(6, 3, 5, seed=3)
    running = {"running_mean": numbers(3, seed=4), "running_var": numbers(3, seed=5).square()}
    kept = [value.clone() for value in running.values()]
    expected = nnf.batch_norm(whole, *kept, weight, bias, True, MOMENTUM, EPS)
    expected.backward(grad)

    shares, grads = (t.detach().chunk(group) for t in (whole, grad))

    def shared(found: list[dict[str, Tensor]], name: str) -> Tensor:
        return torch.stack([f[name] for f in found]).mean(0)

    mean = shared([reference("diopiSyncBnMeanMmcv", input=x) for x in shares], "mean")
    var = shared([reference("diopiSyncBnVarMmcv", input=x, mean=mean) for x in shares], "var")
    given = {**running, "mean": mean, "var": var, "weight": weight.detach(), "bias": bias.detach()}
    given |= {"eps": EPS, "momentum": MOMENTUM, "group_size": group}
    outs = [reference("diopiSyncBnOutputMmcv", input=x, **given) for x in shares]
    torch.testing.assert_close(torch.cat([out["output"] for out in outs]), expected.detach())
    for value, name in zip(kept, running, strict=True):
        torch.testing.assert_close(outs[0][name], value)

    pairs = list(zip(grads, outs, strict=True))
    sums = [reference("diopiSyncBnBackwardParamMmcv", grad_output=g, norm=out["norm"]) for g, out in pairs]
    torch.testing.assert_close(group * shared(sums, "grad_weight"), weight.grad)
    torch.testing.assert_close(group * shared(sums, "grad_bias"), bias.grad)
    joined = {name: shared(sums, name) for name in ("grad_weight", "grad_bias")}
    kept_of = {"weight": weight.detach(), "std": outs[0]["std"]}
    inputs = [
        reference("diopiSyncBnBackwardDataMmcv", grad_output=g, norm=out["norm"], **kept_of, **joined)["grad_input"]
        for g, out in pairs
    ]
    torch.testing.assert_close(torch.cat(inputs), whole.grad)


def test_a_single_element_keeps_its_variance() -> None:
    given = {"mean": torch.zeros(1), "var": torch.ones(1), "weight": torch.ones(1), "bias": torch.zeros(1)}
    given |= {"running_mean": torch.zeros(1), "running_var": torch.zeros(1)}
    found = reference("diopiSyncBnOutputMmcv", input=torch.ones(1, 1, 1), eps=0.0, momentum=0.5, group_size=1, **given)
    assert found["running_var"].tolist() == [0.5]
