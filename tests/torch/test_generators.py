"""Random generators: seed, offset, state, copies, and what torch does with them: forks, checkpoints, other devices."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest


def draw(torch: Any, generator: Any) -> list[float]:
    return list(torch.rand(4, device=generator.device, generator=generator).tolist())


def test_seed_and_offset(torch: Any) -> None:
    generator = torch.Generator("dipu:0")
    assert generator.device == torch.device("dipu", 0) and torch.Generator("dipu").device.index == 0
    assert generator.manual_seed(5) is generator and generator.initial_seed() == 5 and generator.get_offset() == 0
    first = draw(torch, generator)
    moved = generator.get_offset()
    second = draw(torch, generator)
    assert moved > 0 and first != second
    generator.set_offset(moved)
    assert draw(torch, generator) == second
    generator.manual_seed(5)
    assert draw(torch, generator) == first
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.seed() == generator.initial_seed() != generator.seed()


def test_state_round_trip(torch: Any) -> None:
    generator = torch.Generator("dipu").manual_seed(3)
    draw(torch, generator)
    state = generator.get_state()
    expected = draw(torch, generator)
    assert generator.set_state(state) is generator and draw(torch, generator) == expected
    other = torch.Generator("dipu")
    other.set_state(state)
    assert draw(torch, other) == expected
    assert draw(torch, pickle.loads(pickle.dumps(other.set_state(state)))) == expected
    assert draw(torch, copy.deepcopy(other.set_state(state))) == expected


def test_a_clone_is_independent_and_a_graph_safe_state_is_shared(torch: Any) -> None:
    generator = torch.Generator("dipu").manual_seed(3)
    clone = generator.clone_state()
    assert draw(torch, clone) == draw(torch, generator.manual_seed(3))
    generator.manual_seed(3)
    own = generator.graphsafe_get_state()
    generator.graphsafe_set_state(clone)
    draw(torch, generator)
    assert clone.get_offset() == generator.get_offset() and own.get_offset() == 0
    generator.graphsafe_set_state(own)
    assert generator.get_offset() == 0
    with pytest.raises(RuntimeError, match="comes from another dipu generator, not from one of cpu"):
        generator.graphsafe_set_state(torch.Generator())


def test_generators_of_other_devices_are_refused(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'dipu'"):
        torch.rand(3, generator=torch.Generator("dipu"))
    with pytest.raises(RuntimeError, match="Expected a 'dipu:0' device type for generator but found 'cpu'"):
        torch.rand(3, device="dipu", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="there is no device dipu:7"):
        torch.Generator("dipu:7")


def test_every_random_operator_follows_the_seed(torch: Any) -> None:
    def numbers(seed: int) -> list[list[float]]:
        generator = torch.Generator("dipu").manual_seed(seed)
        new: Callable[[], Any] = lambda: torch.empty(16, device="dipu")  # noqa: E731
        results = [
            torch.rand(16, device="dipu", generator=generator),
            torch.randn(16, device="dipu", generator=generator),
            torch.randint(0, 1000, (16,), device="dipu", generator=generator),
            torch.randperm(100, device="dipu", generator=generator),
            new().uniform_(2, 3, generator=generator),
            new().normal_(generator=generator),
            new().bernoulli_(0.5, generator=generator),
            new().exponential_(generator=generator),
            new().random_(0, 1000, generator=generator),
            torch.multinomial(torch.ones(64, device="dipu"), 16, generator=generator),
            torch.normal(0.0, 1.0, (16,), device="dipu", generator=generator),
        ]
        return [result.tolist() for result in results]

    first, again, other = numbers(1), numbers(1), numbers(2)
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_a_fork_of_the_random_state(torch: Any) -> None:
    torch.manual_seed(7)
    before = [torch.dipu.get_rng_state(index) for index in range(torch.dipu.device_count())]
    with torch.random.fork_rng(devices=range(torch.dipu.device_count()), device_type="dipu"):
        torch.manual_seed(8)
        for index in range(torch.dipu.device_count()):
            torch.rand(3, device=f"dipu:{index}")
    after = [torch.dipu.get_rng_state(index) for index in range(torch.dipu.device_count())]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("device", ["dipu:0", "dipu:1"])
def test_a_checkpoint_repeats_its_random_numbers(torch: Any, reentrant: bool, device: str) -> None:
    from torch.utils.checkpoint import checkpoint

    if torch.dipu.device_count() < 2:
        device = "dipu:0"
    x = torch.ones(1000, device=device, requires_grad=True)
    y = checkpoint(lambda x: torch.nn.functional.dropout(x, 0.5) * x, x, use_reentrant=reentrant)
    y.sum().backward()
    kept = y.detach() != 0
    assert 300 < kept.sum().item() < 700 and torch.equal(x.grad != 0, kept)


def test_a_checkpoint_may_leave_the_random_state_alone(torch: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(1000, device="dipu", requires_grad=True)
    y = checkpoint(lambda x: torch.nn.functional.dropout(x, 0.5) * x, x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not torch.equal(x.grad != 0, y.detach() != 0)


FORKED = """
import os, torch, torch_dipu; torch_dipu.start()
torch.dipu.init()
uses = "torch.rand(1, device='dipu')", "torch.dipu.manual_seed(1)", "torch.dipu.get_rng_state()", "torch.dipu.seed()"
for use in uses:
    child = os.fork()
    if child == 0:
        try:
            eval(use)
        except RuntimeError as error:
            os._exit(0 if "dipu cannot be used in a forked process" in str(error) else 2)
        os._exit(1)
    print(os.waitpid(child, 0)[1])
child = os.fork()
if child == 0:
    torch.manual_seed(3)  # seeds the CPU, and leaves the device alone
    os._exit(0 if torch.initial_seed() == 3 else 1)
print(os.waitpid(child, 0)[1])
"""


def test_a_forked_process(run_python: Callable[..., Any], fake_vendor: Callable[..., Any]) -> None:
    result = run_python(FORKED, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1")))
    assert result.stdout.split() == ["0"] * 5, result.stdout + result.stderr


@pytest.fixture
def philox(torch: Any) -> Callable[..., list[int]]:
    """What `philox_state` gives, as numbers of 64 bits."""
    if not hasattr(torch.Generator, "philox_state"):
        pytest.skip("torch: this release has no torch.Generator.philox_state")
    return lambda generator, numbers: [int(word.item()) % 2**64 for word in generator.philox_state(numbers)]


def test_reserved_numbers_of_philox(torch: Any, philox: Callable[..., list[int]]) -> None:
    generator = torch.Generator("dipu").manual_seed(2**64 - 3)
    assert [(word.device.type, word.dtype, word.shape) for word in generator.philox_state(0)] == [
        ("cpu", torch.int64, (1,))
    ] * 3
    assert [philox(generator, numbers) for numbers in (1, 4, 5, 0)] == [
        [2**64 - 3, 0, 0],
        [2**64 - 3, 4, 0],
        [2**64 - 3, 8, 0],
        [2**64 - 3, 16, 0],
    ]
    # An operator draws beside them: as if it had been called at that offset.
    drawn = draw(torch, generator)
    again = torch.Generator("dipu").manual_seed(2**64 - 3)
    again.set_offset(16)
    assert draw(torch, again) == drawn and philox(generator, 1)[1] == again.get_offset() > 16
    generator.set_offset(2**64 - 4)
    assert philox(generator, 2**64 - 1)[1] == 2**64 - 4 and generator.get_offset() == 2**64 - 4
    assert philox(generator, 5)[1] == 2**64 - 4 and generator.get_offset() == 4


def test_reserved_numbers_of_philox_in_a_graph(torch: Any, philox: Callable[..., list[int]]) -> None:
    generator, other = torch.Generator("dipu").manual_seed(5), torch.Generator("dipu").manual_seed(6)
    same = torch.Generator("dipu")
    same.graphsafe_set_state(generator.graphsafe_get_state())
    generator.set_offset(8)
    graph = torch.accelerator.Graph()
    with torch.Stream(device="dipu"), graph:
        states = [each.philox_state(numbers) for each, numbers in ((generator, 4), (other, 1), (same, 6))]
        kept = torch.stack([torch.cat(state[:2]) for state in states])
        with pytest.raises(RuntimeError, match="a graph draws fewer than 2\\^64 random numbers in a replay"):
            generator.philox_state(2**64 - 8)
    assert [[word.device.type for word in state] for state in states] == [["dipu", "dipu", "cpu"]] * 3
    # The position in the graph, of each state by itself; the capture itself draws nothing.
    assert [state[2].item() for state in states] == [0, 0, 4]
    assert (generator.get_offset(), other.get_offset()) == (8, 0)
    for offset in (8, 20):
        graph.replay()
        torch.accelerator.synchronize()
        assert kept.tolist() == [[5, offset], [6, (offset - 8) // 3], [5, offset]]
    assert philox(generator, 1) == [5, 32, 0]
    generator.manual_seed(7)
    graph.replay()
    torch.accelerator.synchronize()
    assert kept.tolist() == [[7, 0], [6, 8], [7, 0]]
    graph.reset()
    assert philox(other, 0) == [6, 12, 0]
