"""mode="reduce-overhead": from its third run on a program is one launch, with memory of its own."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def recorded(torch: Any, compiler: Any) -> Callable[..., Callable[..., Any]]:
    """torch.compile that records."""

    def make(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return torch.compile(function, backend=compiler, fullgraph=True, mode="reduce-overhead", **options)

    return make


def counts(reports: Any) -> list[tuple[int, int, int]]:
    """Of each program: recordings, runs by one launch, other runs."""
    found = [report.executable.replays() for report in reports()]
    assert not any(f["refusal"] for f in found), found
    return [(f["recorded"], f["launched"], f["issued"]) for f in found]


def test_a_training_step_is_two_launches_from_the_third_on(torch: Any, recorded: Any, reports: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 32))
    weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
    exact = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 32)).double()
    exact.load_state_dict(weights)
    model = model.to("dipu")
    run = recorded(lambda x: model(x).square().mean(), dynamic=False)
    rates = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, exact)]
    kept, before = [], []
    for step in range(8):
        x = torch.randn(8, 32, generator=torch.Generator().manual_seed(step))
        kept.append(torch.empty(4096 * (step + 1), device="dipu"))  # so that no address comes back by chance
        for optimizer, loss in zip(rates, (run(x.to("dipu")), exact(x.double()).square().mean()), strict=True):
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if step == 3:
            before = counts(reports)
    for mine, other in zip(model.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(mine.detach().cpu().double(), other.detach(), rtol=1e-4, atol=1e-5)
    for (_, launched, issued), (recordings, later, as_they_are) in zip(before, counts(reports), strict=True):
        assert recordings <= 2 and later == launched + 4 and as_they_are == issued


def test_an_argument_that_moves_is_copied(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: (x * 2).exp(), dynamic=False)
    given = [torch.randn(64).to("dipu") for _ in range(6)]
    for _ in range(3):
        for x in given:
            torch.testing.assert_close(run(x).cpu(), (x.cpu() * 2).exp())
    assert counts(reports) == [(1, 17, 1)]


def test_a_slice_is_copied_as_it_lies(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: x.sin() + 1, dynamic=False)
    for step in range(5):
        x = torch.randn(40, 30).to("dipu")[step : step + 8, 3:19:2]
        torch.testing.assert_close(run(x).cpu(), x.cpu().sin() + 1)
    assert counts(reports)[0][2] == 1


def test_results_that_are_kept_keep_their_values(torch: Any, recorded: Any, reports: Any) -> None:
    """A recording whose results are held waits until they are let go; others are made, up to three."""
    large = 64 * 1024  # elements; smaller results are copies
    run = recorded(lambda x: x + 1, dynamic=False)
    xs = [torch.full((large,), float(i), device="dipu") for i in range(8)]
    kept = [run(x) for x in xs]
    views = [y[3:5] for y in kept]
    del kept
    for i, view in enumerate(views):
        assert view.tolist() == [i + 1.0, i + 1.0]
    ((recordings, launched, issued),) = counts(reports)
    assert (recordings, launched, issued) == (3, 3, 5)
    del views, view
    for i, x in enumerate(xs):
        assert run(x)[0].item() == i + 1
    assert counts(reports) == [(3, 11, 5)]


def test_a_loss_that_is_kept_takes_no_second_recording(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: x.square().sum(), dynamic=False)
    kept = [run(torch.full((9,), float(i), device="dipu")) for i in range(7)]
    assert [loss.item() for loss in kept] == [9.0 * i * i for i in range(7)]
    assert counts(reports) == [(1, 6, 1)]


def test_two_forward_passes_before_their_backward_passes(torch: Any, recorded: Any, reports: Any) -> None:
    weight = torch.randn(16, 16).to("dipu").requires_grad_()
    run = recorded(lambda x: (x @ weight).tanh().sum(), dynamic=False)
    for step in range(6):
        one, other = (torch.randn(4, 16, generator=torch.Generator().manual_seed(step + s)) for s in (0, 50))
        losses = [run(one.to("dipu")), run(other.to("dipu"))]
        for loss in losses:
            loss.backward()
        exact = weight.detach().cpu().double().requires_grad_()
        sum((x.double() @ exact).tanh().sum() for x in (one, other)).backward()
        torch.testing.assert_close(weight.grad.cpu().double(), exact.grad, rtol=1e-4, atol=1e-5)
        weight.grad = None
    assert all(issued <= 2 for _, _, issued in counts(reports))


def test_what_a_program_writes_stays_where_it_is(torch: Any, recorded: Any, reports: Any) -> None:
    def step(sums: Any, x: Any) -> Any:
        sums[1:3].add_(x)
        return sums.sum(0)

    all_sums, run = [torch.zeros(8, 4, device="dipu") for _ in range(2)], recorded(step, dynamic=False)
    for i in range(8):
        found = run(all_sums[i % 2], torch.full((4,), float(i), device="dipu"))
        torch.testing.assert_close(found.cpu(), torch.full((4,), 2.0 * sum(range(i % 2, i + 1, 2))))
    assert [sums[2, 0].item() for sums in all_sums] == [12.0, 16.0]
    ((recordings, _, issued),) = counts(reports)
    assert recordings <= 3 and issued == 1


def test_what_functions_ask_for_stays_with_the_record(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: torch.sort(x, dim=-1)[0].cumsum(-1), dynamic=False)
    x = torch.randn(16, 512)
    there = x.to("dipu")
    for _ in range(5):
        noise = [torch.full((16, 512), 7.0, device="dipu") for _ in range(8)]  # what would be overwritten, or overwrite
        torch.testing.assert_close(run(there).cpu(), x.sort(-1)[0].cumsum(-1), rtol=1e-4, atol=1e-4)
        assert all(bool((each == 7).all()) for each in noise)
        del noise
    assert counts(reports)[0][1] >= 3


def test_sizes_have_recordings_of_their_own(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: x.sin() + x.size(0), dynamic=True)
    for length in (3, 5, 3, 5, 3, 5, 3, 5):
        x = torch.randn(length, 4)
        torch.testing.assert_close(run(x.to("dipu")).cpu(), x.sin() + length)
    assert counts(reports) == [(2, 6, 2)]


def test_sizes_that_never_come_back_end_it(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: x.sin() + 1, dynamic=True)
    with pytest.warns(UserWarning, match="its sizes or its numbers are others in every run"):
        for length in range(2, 20):
            for _ in range(2):
                x = torch.randn(length, 4)
                torch.testing.assert_close(run(x.to("dipu")).cpu(), x.sin() + 1)
    (report,) = reports()
    assert report.executable.replays()["recorded"] == 16


def test_islands_on_the_device_are_recorded(torch: Any, recorded: Any, reports: Any) -> None:
    x = torch.randn(8, 4)
    run = recorded(lambda x: torch.nn.functional.rms_norm(x.relu(), (4,)) * 2, dynamic=False)
    for _ in range(4):
        torch.testing.assert_close(run(x.to("dipu")).cpu(), torch.nn.functional.rms_norm(x.relu(), (4,)) * 2)
    assert counts(reports)[0][2] == 1


def test_what_runs_on_the_host_says_once_why_it_is_not_recorded(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: torch.linalg.eig(x.reshape(4, 4))[0].abs().sum() + x.sum(), dynamic=False)
    x = torch.randn(16)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(4):
            expected = torch.linalg.eig(x.reshape(4, 4))[0].abs().sum() + x.sum()
            torch.testing.assert_close(run(x.to("dipu")).cpu(), expected)
    texts = [str(each.message) for each in told if "reduce-overhead" in str(each.message)]
    assert len(texts) == 1
    assert texts[0].startswith(
        "mode='reduce-overhead': a compiled program is not recorded: aten::linalg_eig (linalg_eig): "
    )
    assert "wait for results" in texts[0]
    (report,) = reports()
    assert report.islands and "; nothing more is recorded: aten::linalg_eig" in report.text()


def test_the_explanation_counts(torch: Any, recorded: Any, reports: Any) -> None:
    run = recorded(lambda x: x.cos() * 3, dynamic=False)
    x = torch.randn(7).to("dipu")
    for _ in range(4):
        run(x)
    assert "  recordings: 1; runs by one launch: 3, others: 1" in reports()[0].text()
