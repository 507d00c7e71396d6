"""torch.use_deterministic_algorithms(): memory that nobody wrote, and operators that torch refuses then."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def deterministic(torch: Any) -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int32", "uint8", "uint64", "bool"])
def test_new_memory_is_filled(torch: Any, dtype: str) -> None:
    made = {"dtype": getattr(torch, dtype), "device": "dipu"}
    grown = torch.zeros(3, **made)
    grown.resize_(7)
    filled = [torch.empty(5, **made), torch.empty_strided((2, 3), (1, 2), **made), grown[3:], torch.empty_like(grown)]
    for ours in filled:
        wanted = torch.empty(ours.shape, dtype=made["dtype"])
        torch.testing.assert_close(ours.cpu(), wanted, rtol=0, atol=0, equal_nan=True)
    assert not grown[:3].any()


def test_unpooling_is_refused(torch: Any) -> None:
    for name, sizes in {"max_unpool1d": (1, 4), "max_unpool2d": (1, 4, 4), "max_unpool3d": (1, 4, 4, 4)}.items():
        values = torch.ones(sizes, device="dipu")
        places = torch.arange(values.numel(), device="dipu").reshape(sizes)
        with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
            getattr(torch.nn.functional, name)(values, places, 1)
