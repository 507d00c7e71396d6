"""PyTorch's own samples of its operators, on the device against the CPU, natively or by the fallback."""

from typing import Any

import pytest

pytest.importorskip("expecttest")  # torch's sample inputs import it

SHARDS = 8
SAMPLES = 4  # of each operator

# Random numbers and uninitialized memory differ between devices by design.
RANDOM = (
    "dropout",
    "empty",
    "rand",
    "normal",
    "bernoulli",
    "multinomial",
    "uniform",
    "exponential",
    "geometric",
    "cauchy",
)
RANDOM += ("rrelu", "fractional_max_pool", "attention", "multi_head_attention")
# Their samples do not survive the way to a device: an argument must stay on the CPU, or views share a storage.
NOT_MOVABLE = ("tensor_split", "as_strided", "sparse", "nested", "to_sparse")
# Equal elements may come in any order, and samples of integers and bools are full of them.
UNSTABLE = ("sort", "argsort", "topk", "kthvalue", "mode", "median")
# The CPU gives no statistics in evaluation, the device those of the running averages.
DIFFERENT = ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")


def operators(shard: int) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    left_out = (*RANDOM, *NOT_MOVABLE, "jiterator")
    kept = [op for op in op_db if op.name not in DIFFERENT and not any(word in op.name for word in left_out)]
    return kept[shard::SHARDS]


def moved(value: Any, device: str) -> Any:
    import torch
    from torch.utils._pytree import tree_map

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to(device)
        return device if leaf == "cpu" else leaf

    return tree_map(move, value)


def differences(torch: Any, op: Any, dtype: Any) -> list[str]:
    found = []
    for sample in list(op.sample_inputs("cpu", dtype))[:SAMPLES]:
        try:
            expected = op(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, NotImplementedError):
            continue  # the CPU itself does not serve this dtype
        try:
            arguments = moved((sample.input, sample.args, sample.kwargs), "dipu")
            got = moved(op(arguments[0], *arguments[1], **arguments[2]), "cpu")
            torch.testing.assert_close(got, moved(expected, "cpu"), equal_nan=True, rtol=5e-4, atol=5e-5)
        except Exception as error:
            found.append(f"{op.formatted_name}: {str(error).strip().splitlines()[0]}")
    return found


MORE = pytest.mark.deep("matrix", "a quarter of the operators in this element type, and all of them in float32")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("shard", "dtype"),
    [
        *((shard, "float32") for shard in range(SHARDS)),
        *(
            pytest.param(shard, dtype, marks=() if shard < 2 else MORE)
            for dtype in ("int64", "bool")
            for shard in range(SHARDS)
        ),
    ],
)
def test_samples_agree_with_the_cpu(torch: Any, shard: int, dtype: str) -> None:
    kind = getattr(torch, dtype)
    ran, found = 0, []
    for op in operators(shard):
        stable = dtype == "float32" or not any(word in op.name for word in UNSTABLE)
        if stable and kind in op.supported_dtypes("cpu"):
            ran += 1
            found += differences(torch, op, kind)
    assert found == [] and ran > 10
