"""torch.accelerator.Graph on dipu: what is captured is done again by each replay, in memory of its own."""

import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def graphs(torch: Any) -> None:
    if not hasattr(torch.accelerator, "Graph"):
        pytest.skip("torch: this release has no torch.accelerator.Graph")


def captured(torch: Any, function: Callable[..., Any], *inputs: Any, **options: Any) -> tuple[Any, Any]:
    """The graph of one call, on a stream of its own, and what the call returned."""
    function(*inputs)  # what is made on first use is no part of it
    graph = torch.accelerator.Graph(**options)
    with torch.Stream(device="dipu"), graph:
        result = function(*inputs)
    return graph, result


def test_a_replay_reads_and_writes_what_the_capture_did(torch: Any) -> None:
    x = torch.arange(6.0, device="dipu")
    graph, y = captured(torch, lambda x: torch.softmax(x * 2 + 1, 0), x)
    for value in ([3.0, 1, 4, 1, 5, 9], [2.0, 7, 1, 8, 2, 8]):
        x.copy_(torch.tensor(value))
        graph.replay()
        torch.accelerator.synchronize()
        torch.testing.assert_close(y.cpu(), torch.softmax(torch.tensor(value) * 2 + 1, 0))


def test_a_training_step_is_captured_whole(torch: Any) -> None:
    def model() -> Any:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))

    def trained(net: Any, x: Any, steps: int) -> list[Any]:
        for _ in range(steps):
            loss = net(x).square().mean()
            grads = torch.autograd.grad(loss, list(net.parameters()))
            with torch.no_grad():
                for parameter, grad in zip(net.parameters(), grads, strict=True):
                    parameter.sub_(grad, alpha=0.1)
        return [parameter.detach().cpu() for parameter in net.parameters()]

    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
    net, on_device = model().to("dipu"), x.to("dipu")

    def step() -> None:
        loss = net(on_device).square().mean()
        grads = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for parameter, grad in zip(net.parameters(), grads, strict=True):
                parameter.sub_(grad, alpha=0.1)

    graph, _ = captured(torch, step)  # one step is done before the capture
    for _ in range(3):
        graph.replay()
    torch.accelerator.synchronize()
    for found, expected in zip(net.parameters(), trained(model(), x, 4), strict=True):
        torch.testing.assert_close(found.detach().cpu(), expected)


def test_nothing_else_gets_the_memory_of_a_graph_until_it_is_reset(torch: Any) -> None:
    x = torch.ones(1000, device="dipu")
    graph, y = captured(torch, lambda x: (x + 1) * 3, x)
    place = y.data_ptr()
    del y
    torch.accelerator.empty_cache()
    others = [torch.full((1000,), 7.0, device="dipu") for _ in range(50)]
    assert place not in {other.data_ptr() for other in others}
    graph.replay()
    torch.accelerator.synchronize()
    assert all(bool((other == 7).all()) for other in others)
    reserved = torch.accelerator.memory_reserved()
    graph.reset()
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() < reserved


def test_graphs_may_share_a_pool(torch: Any) -> None:
    x = torch.ones(8, device="dipu")
    first, y = captured(torch, lambda x: x + 1, x)
    second, z = captured(torch, lambda x: x * 5, y, pool=first.pool())
    assert second.pool() == first.pool() != (0, 0)
    first.replay()
    second.replay()
    torch.accelerator.synchronize()
    assert z.tolist() == [10.0] * 8
    first.reset()
    second.replay()
    torch.accelerator.synchronize()
    assert z.tolist() == [10.0] * 8


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            lambda torch, x: x.sum().item(),
            "a graph is captured on dipu:0, which cannot wait for results: leave out .item()",
        ),
        (lambda torch, x: x.cpu(), "a graph is captured on dipu:0, which cannot wait for results"),
        (lambda torch, x: torch.geqrf(x), "a graph is captured on dipu:0, which cannot wait for results"),
        (
            lambda torch, x: torch.poisson(x),
            "cannot draw random numbers by this function: each replay would have the same ones",
        ),
        (
            lambda torch, x: torch.accelerator.synchronize(),
            "a graph is captured on dipu:0, which cannot wait for results",
        ),
        (lambda torch, x: torch.accelerator.Graph().capture_begin(), "another graph is recorded on dipu:0"),
    ],
)
def test_what_would_not_be_done_again_is_refused(torch: Any, program: Callable[..., Any], message: str) -> None:
    x = torch.ones(4, 4, device="dipu")
    program_error: list[str] = []
    graph = torch.accelerator.Graph()
    with torch.Stream(device="dipu"):
        graph.capture_begin()
        with pytest.raises(RuntimeError) as error:
            program(torch, x)
        program_error.append(str(error.value))
        graph.reset()
    assert message in program_error[0]
    # Nothing is left of it.
    assert not torch.dipu.is_current_stream_capturing()
    assert (x + 1).sum().item() == 32
    captured(torch, lambda x: x + 1, x)


def attention_with_dropout(torch: Any, x: Any) -> Any:
    """The result, and the gradient, which drops the same."""
    value = (x[:, None] * torch.eye(6, device="dipu"))[None, None].requires_grad_()
    attend = torch.nn.functional.scaled_dot_product_attention
    out = attend(torch.zeros_like(value), torch.zeros_like(value), value, dropout_p=0.5)
    return torch.stack([out, torch.autograd.grad(out, value, torch.ones_like(out))[0]])


DRAWS: dict[str, Callable[..., Any]] = {
    "rand": lambda torch, x: torch.rand(5, device="dipu"),
    "normal_": lambda torch, x: torch.empty(7, device="dipu").normal_(2, 3),
    "dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.5),
    "attention": lambda torch, x: attention_with_dropout(torch, x),
    "randperm": lambda torch, x: torch.randperm(9, device="dipu"),
    "two": lambda torch, x: torch.rand(5, device="dipu") + torch.rand(5, device="dipu"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_each_replay_draws_what_eager_mode_would(torch: Any, name: str) -> None:
    x = torch.ones(6, device="dipu")
    graph, y = captured(torch, lambda x: DRAWS[name](torch, x), x)
    torch.manual_seed(11)
    eager = [DRAWS[name](torch, x).cpu() for _ in range(4)]
    torch.manual_seed(11)
    replayed = []
    for step in range(4):
        if step == 2:  # a draw of eager mode between replays has its turn
            replayed.append(DRAWS[name](torch, x).cpu())
            continue
        graph.replay()
        torch.accelerator.synchronize()
        replayed.append(y.cpu())
    torch.testing.assert_close(replayed, eager, rtol=0, atol=0)
    assert not torch.equal(eager[0], eager[1])


def test_a_generator_of_the_caller_moves_on_with_replays(torch: Any) -> None:
    generator = torch.Generator("dipu").manual_seed(4)
    graph, y = captured(torch, lambda: torch.rand(5, device="dipu", generator=generator))
    generator.manual_seed(4)
    eager = [torch.rand(5, device="dipu", generator=generator).cpu() for _ in range(3)]
    generator.manual_seed(4)
    for expected in eager:
        graph.replay()
        torch.accelerator.synchronize()
        torch.testing.assert_close(y.cpu(), expected, rtol=0, atol=0)


def test_a_graph_that_cannot_be_reset_stays_as_it_is(torch: Any) -> None:
    x = torch.ones(8, device="dipu")
    graph, y = captured(torch, lambda x: x * 3, x)
    other = torch.accelerator.Graph()
    with torch.Stream(device="dipu"):
        other.capture_begin()
        with pytest.raises(RuntimeError, match="a graph is captured on dipu:0, which cannot wait for results"):
            graph.reset()
        other.reset()
    assert graph.pool() != (0, 0)
    x.fill_(2)
    graph.replay()
    torch.accelerator.synchronize()
    assert y.tolist() == [6.0] * 8
    graph.reset()


def test_the_states_of_a_graph(torch: Any) -> None:
    graph = torch.accelerator.Graph()
    for ask in (graph.replay, graph.instantiate):
        with pytest.raises(RuntimeError, match="nothing was captured"):
            ask()
    with pytest.raises(RuntimeError, match=r"capture_end\(\) without capture_begin\(\)"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match="a graph has a pool once its capture began"):
        graph.pool()
    graph.reset()
    with torch.Stream(device="dipu"), graph:
        assert torch.dipu.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match=r"this graph was captured already; call reset\(\) first"):
        graph.capture_begin()
    with pytest.raises(NotImplementedError, match="shows nothing of a recorded graph"):
        graph.debug_dump("x.dot")


@pytest.mark.parametrize(("mode", "may_wait"), [("default", False), ("global", False), ("thread_local", True)])
def test_what_other_threads_may_do_meanwhile(torch: Any, mode: str, may_wait: bool) -> None:
    x = torch.ones(4, device="dipu")
    found: list[Any] = []

    def waiting() -> None:
        try:
            found.append(x.sum().item())
        except RuntimeError as error:
            found.append(str(error))

    graph = torch.accelerator.Graph(capture_error_mode=mode)
    with torch.Stream(device="dipu"), graph:
        y = x * 3
        other = threading.Thread(target=waiting)
        other.start()
        other.join()
    if may_wait:
        assert found == [4.0]
    else:
        assert found[0].startswith("a graph is captured on dipu:0, which cannot wait for results")
    graph.replay()
    torch.accelerator.synchronize()
    assert y.tolist() == [3.0] * 4


def test_compiled_programs_are_captured_instruction_by_instruction(torch: Any) -> None:
    run = torch.compile(lambda x: (x * 2).sin(), backend="diopi", fullgraph=True, mode="reduce-overhead")
    x = torch.randn(8).to("dipu")
    for _ in range(3):
        run(x)
    graph, y = captured(torch, run, x)
    x.copy_(torch.ones(8))
    graph.replay()
    torch.accelerator.synchronize()
    torch.testing.assert_close(y.cpu(), (torch.ones(8) * 2).sin())


def test_a_mode_that_dipu_does_not_know_is_told(run_python: Run) -> None:
    done = run_python(
        """
import torch, torch_dipu
torch_dipu.start()
graph = torch.accelerator.Graph(capture_error_mode="relaxed")
with torch.Stream(device="dipu"), graph:
    pass
""",
        TORCH_CPP_LOG_LEVEL="WARNING",
    )
    assert done.returncode == 0, done.stderr
    assert "dipu refuses more than capture_error_mode='relaxed' asks for: what 'thread_local' does" in done.stderr
