"""Vendor cuda's attention of float32, its threads by turns on a host; against torch in float64 and portable kernels."""

import ctypes
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import FLAGS, ROOT, Portable, build

PARTS = Path(__file__).parent / "kernels"
CUDA = ROOT / "vendors" / "cuda"
EMULATED = (
    *(*FLAGS, "-O1", "-Wno-unknown-pragmas", "-I", str(PARTS), "-I", str(PARTS / "emulated_cuda"), "-I", str(CUDA)),
    '-DDIOPI_LAUNCHER_HEADER="emulated_attention.h"',
)
# What is written for GPUs alone, and what the host does for it.
SPELLINGS = {
    r'asm\("mma\..*?\);(?=\n)': "emulated::multiply(sums, a, b);",
    r'asm\("cvt\.rna.*?\);(?=\n)': "high[i] = emulated::rounded(value);",
    r'asm volatile\("cp\.async\.cg.*?\);(?=\n)': "emulated::load_four(to, from, exists);",
    r'asm volatile\("cp\.async\.commit_group;"\);': "",
    r'asm volatile\("cp\.async\.wait_group.*?"memory"\);': "",
    r"const auto shared = static_cast<uint32_t>\(__cvta_generic_to_shared\(to\)\);": "",
    r"kernel<<<.*?>>>\(problem\);": "emulated::launch(kernel, grid, kThreads, stream, problem);",
    r"(?<=\n)\}  // namespace\n(?=\nbool has_float)": "alignas(16) float shared[1 << 16];\n\n}  // namespace\n",
}
PERMISSION = """
static bool rounds = false;
extern "C" bool diopiMayRoundFloat32(diopiFloat32Use_t) { return rounds; }
extern "C" void float_attention_rounds(bool value) { rounds = value; }
"""
SCALE = 0.2


class Library(Portable):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls = ctypes.CDLL(str(path)).float_attention_calls
        self.may_round = ctypes.CDLL(str(path)).float_attention_rounds


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    text = (CUDA / "float_attention.cu").read_text(encoding="utf-8").replace("#if __CUDA_ARCH__ >= 800", "#if 1")
    for spelling, meant in SPELLINGS.items():
        text, count = re.subn(spelling, lambda _, meant=meant: meant, text, flags=re.DOTALL)
        assert count == 1, spelling
    source = tmp_path_factory.mktemp("emulated") / "float_attention.cpp"
    source.write_text(text + PERMISSION, encoding="utf-8")
    return Library(build(["flash_attention"], EMULATED, [source]))


@pytest.fixture(scope="module")
def loops() -> Portable:
    return Portable(build(["flash_attention"]))


def drawn(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed + sum(sizes)))


def attended(library: Portable, tensors: list[torch.Tensor], causal: bool, dropout: float = 0) -> list[torch.Tensor]:
    """The result, the logarithms of sums, and the gradients, by the form that can tell what was dropped."""
    q, k, v, grad = tensors
    generator = library.generator(5)
    out, lse = torch.full_like(q, torch.nan), torch.full((q.shape[0], q.shape[2], q.shape[1]), torch.nan)
    library("diopiMultiHeadAttention", q, k, v, dropout, causal, False, SCALE, out, lse, generator, None)
    grads = [torch.full_like(x, torch.nan) for x in (q, k, v)]
    rest = (dropout, causal, generator, SCALE, *grads)
    library("diopiMultiHeadAttentionBackward", grad, q, k, v, out, lse, *rest)
    return [out, lse, *grads]


def exact(tensors: list[torch.Tensor], causal: bool) -> list[torch.Tensor]:
    q, k, v = (tensor.double().requires_grad_() for tensor in tensors[:3])
    wide_k, wide_v = (tensor.repeat_interleave(q.shape[2] // k.shape[2], 2) for tensor in (k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, wide_k) * SCALE
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
        scores = scores.masked_fill(~seen, -torch.inf)
    out = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), wide_v)
    grads = torch.autograd.grad(out, (q, k, v), tensors[3].double())
    return [out.detach(), scores.logsumexp(-1).detach(), *grads]


def inputs(queries: int, keys: int, heads: int, shared: int, channels: int, spread: float = 1) -> list[torch.Tensor]:
    sizes = ((queries, heads), (keys, shared), (keys, shared), (queries, heads))
    tensors = [drawn(1, *size, channels, seed=seed) for seed, size in enumerate(sizes)]
    return [tensors[0] * spread, *tensors[1:]]


SHAPES = {
    "one tile": (64, 64, 1, 1, 64),
    "tiles": (70, 150, 1, 1, 32),
    "few channels": (40, 40, 2, 2, 12),
    "many channels": (20, 37, 1, 1, 100),
    "shared heads": (33, 66, 4, 2, 32),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_against_torch(library: Library, shape: tuple[int, ...], causal: bool) -> None:
    tensors = inputs(*shape)
    calls = library.calls()
    found = attended(library, tensors, causal)
    assert library.calls() == calls + 2
    for each, wanted in zip(found, exact(tensors, causal), strict=True):
        torch.testing.assert_close(each.double(), wanted, rtol=2e-6, atol=2e-6)


def test_rounded_factors(library: Library) -> None:
    tensors = inputs(70, 64, 1, 1, 64)
    library.may_round(True)
    try:
        found = attended(library, tensors, False)
    finally:
        library.may_round(False)
    for each, wanted in zip(found, exact(tensors, False), strict=True):
        error = (each - wanted).abs().max().item()
        assert 1e-5 < error < 4e-3


def test_one_weight_that_is_all(library: Library) -> None:
    """Scores far apart: what the others would give is less than a float32 has beside the greatest."""
    tensors = inputs(32, 48, 1, 1, 32, spread=200)
    found, wanted = attended(library, tensors, False), exact(tensors, False)
    assert wanted[2].abs().max() < 1
    for each, value in zip(found[:1] + found[2:], wanted[:1] + wanted[2:], strict=True):
        torch.testing.assert_close(each.double(), value, rtol=1e-4, atol=2e-5)
    alone = inputs(8, 8, 1, 1, 32)
    alone[0][:] = 1
    alone[1][:, 3] += 1000  # no other weight is left
    gradient = attended(library, alone, False)[2:4]
    assert gradient[0].eq(0).all() and gradient[1].eq(0).all()


@pytest.mark.parametrize(("queries", "keys"), [(30, 68), (30, 67)])
@pytest.mark.parametrize("causal", [False, True])
def test_it_drops_what_the_portable_kernels_drop(
    library: Library, loops: Portable, queries: int, keys: int, causal: bool
) -> None:
    tensors = inputs(queries, keys, 2, 1, 32)
    found, wanted = (attended(each, tensors, causal, 0.3) for each in (library, loops))
    for each, value in zip(found, wanted, strict=True):
        torch.testing.assert_close(each, value, rtol=2e-5, atol=2e-5)
    assert not torch.allclose(found[0], attended(library, tensors, causal)[0], atol=0.05)


def test_nan_stays(library: Library) -> None:
    tensors: list[Any] = inputs(8, 8, 1, 1, 32)
    tensors[2][0, 2, 0, 5] = torch.tensor(-1, dtype=torch.int32).view(torch.float32)  # with all bits, as GPUs make them
    assert attended(library, tensors, False)[0][..., 5].isnan().all()
