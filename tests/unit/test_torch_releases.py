"""What only some releases of torch have is found in those that are said to have it, and in no other."""

import pytest
import torch

from diopigen.vocabulary import torch_releases
from diopigen.vocabulary.torch_releases import random_of_compiled_code

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


def test_each_is_there_since_the_release_that_is_named() -> None:
    pytest.importorskip("expecttest")  # torch's test classes import it
    assert (random_of_compiled_code() is not None) == (RELEASE >= (2, 13))
    assert ("ACCELERATOR" in torch_releases.hardware()) == (RELEASE >= (2, 14))
    assert (torch_releases.capabilities() is not None) == (RELEASE >= (2, 15))


def test_shapes_of_an_operator() -> None:
    backward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default
    assert torch_releases.has_meta_kernel(torch.ops.aten.add.Tensor)
    assert torch_releases.has_meta_kernel(backward) == (RELEASE >= (2, 12))


def test_an_output_without_an_answer_of_its_own_for_the_backward_has_that_of_the_forward() -> None:
    class Output:
        requires_grad = True

    output = Output()
    assert torch_releases.asks_for_gradient(output)
    output.requires_grad_for_backward = False  # type: ignore[attr-defined]
    assert not torch_releases.asks_for_gradient(output)
