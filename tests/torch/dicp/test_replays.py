"""mode="reduce-overhead": a run whose memory was met before is recorded, and from then on one launch does it again."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def recorded(torch: Any, compiler: Any) -> Callable[..., Callable[..., Any]]:
    """torch.compile that records."""

    def make(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return torch.compile(function, backend=compiler, fullgraph=True, mode="reduce-overhead", **options)

    return make


def counts(reports: Any) -> list[tuple[int, int]]:
    return [(f["recorded"], f["replayed"]) for f in (report.executable.replays() for report in reports())]


def test_a_training_step_is_recorded_once(torch: Any, recorded: Any, reports: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 32))
    weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
    exact = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 32)).double()
    exact.load_state_dict(weights)
    model = model.to("dipu")
    run = recorded(lambda x: model(x).square().mean(), dynamic=False)
    rates = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, exact)]
    for step in range(6):
        x = torch.randn(8, 32, generator=torch.Generator().manual_seed(step))
        for optimizer, loss in zip(rates, (run(x.to("dipu")), exact(x.double()).square().mean()), strict=True):
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    for mine, other in zip(model.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(mine.detach().cpu().double(), other.detach(), rtol=1e-4, atol=1e-5)
    assert all(recorded >= 1 and replayed >= 1 for recorded, replayed in counts(reports))


def test_other_memory_is_another_record(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: (x * 2).exp(), dynamic=False)
    given = [torch.randn(64).to("dipu") for _ in range(2)]
    for _ in range(5):
        for x in given:
            result = run(x)
            torch.testing.assert_close(result.cpu(), (x.cpu() * 2).exp())
            del result
    ((records, replayed),) = counts(reports)
    assert records == 2 and replayed == 8  # the first run of each was not recorded


def test_what_functions_ask_for_stays_with_the_record(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: torch.sort(x, dim=-1)[0].cumsum(-1), dynamic=False)
    x = torch.randn(16, 512)
    there = x.to("dipu")
    for _ in range(5):
        noise = [torch.full((16, 512), 7.0, device="dipu") for _ in range(8)]  # what would be overwritten, or overwrite
        torch.testing.assert_close(run(there).cpu(), x.sort(-1)[0].cumsum(-1), rtol=1e-4, atol=1e-4)
        assert all(bool((each == 7).all()) for each in noise)
        del noise
    ((_, replayed),) = counts(reports)
    assert replayed >= 1


def test_symbols_are_part_of_what_is_met(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: x.sin() + x.size(0), dynamic=True)
    for length in (3, 5, 3, 5, 3, 5):
        x = torch.randn(length, 4)
        torch.testing.assert_close(run(x.to("dipu")).cpu(), x.sin() + length)
    assert len(reports()) == 1


def test_programs_with_islands_say_why_nothing_is_recorded(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: torch.linalg.det(x.reshape(4, 4)) + x.sum(), dynamic=False)
    x = torch.randn(16)
    for _ in range(3):
        torch.testing.assert_close(run(x.to("dipu")).cpu(), torch.linalg.det(x.reshape(4, 4)) + x.sum())
    (report,) = reports()
    assert report.islands and "  runs are not recorded: islands" in report.text()


def test_the_explanation_counts(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: x.cos() * 3, dynamic=False)
    x = torch.randn(7).to("dipu")
    for _ in range(4):
        run(x)
    assert "  runs recorded: 1, done again: 3" in reports()[0].text()
