"""Tensors on the device in messages to other processes: queues, pipes, pools, arguments."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

# `doubled` runs in the other process; each way gives what came back from it.
PROGRAM = """
import sys, warnings
import torch, torch_dipu, torch.multiprocessing as mp


def doubled(tensor):
    assert tensor.device.type == "dipu", tensor.device
    return tensor.detach() * 2


def serve(inbox, outbox):
    outbox.put(doubled(inbox.get(timeout=60)))
    inbox.get(timeout=60)  # what is sent lives as long as its sender


def answer(pipe):
    pipe.send(doubled(pipe.recv()))
    pipe.recv()


def store(tensor, outbox, done):
    outbox.put(doubled(tensor))
    done.wait(60)


def by_queue(context, tensor):
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=serve, args=(inbox, outbox))
    process.start()
    inbox.put(tensor)
    found = outbox.get(timeout=60).clone()
    inbox.put(None)
    process.join(60)
    return found


def by_pipe(context, tensor):
    here, there = context.Pipe()
    process = context.Process(target=answer, args=(there,))
    process.start()
    here.send(tensor)
    found = here.recv().clone()
    here.send(None)
    process.join(60)
    return found


def by_pool(context, tensor):
    with context.Pool(1) as pool:
        return pool.map(doubled, [tensor])[0].clone()


def by_argument(context, tensor):
    outbox, done = context.Queue(), context.Event()
    process = context.Process(target=store, args=(tensor, outbox, done))
    process.start()
    found = outbox.get(timeout=60).clone()
    done.set()
    process.join(60)
    return found


if __name__ == "__main__":
    way = globals()[sys.argv[1]]
    x = torch.arange(12.0).reshape(3, 4)
    tensors = [x, x.t()[1:], torch.nn.Parameter(x), x.bfloat16()[:, 1], torch.zeros(0), torch.tensor(True)]
    for tensor in tensors if sys.argv[2] == "all" else tensors[:1]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            moved = tensor.detach().to("dipu")
            sent = torch.nn.Parameter(moved) if isinstance(tensor, torch.nn.Parameter) else moved
            found = way(mp.get_context("spawn"), sent)
        assert found.device.type == "dipu" and torch.equal(found.cpu(), tensor.detach() * 2), found
        assert any("as a copy" in str(warning.message) for warning in told) or way is by_queue, told
    print("as sent")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


@pytest.mark.parametrize("way", ["by_queue", "by_pipe", "by_pool", "by_argument"])
def test_a_tensor_comes_back_from_another_process(program: Path, way: str, libraries: Path) -> None:
    from tests.processes import run_python

    done = run_python(str(program), way, "all" if way == "by_pipe" else "one", timeout=300)
    assert done.stdout.strip() == "as sent", done.stderr


def test_views_of_one_storage_stay_views_of_one(torch: Any) -> None:
    from multiprocessing.reduction import ForkingPickler

    x = torch.arange(4.0, device="dipu")
    with pytest.warns(UserWarning, match="goes to another process as a copy: what one of the two writes"):
        message = ForkingPickler.dumps((x, x[2:]))
    whole, half = ForkingPickler.loads(message)
    half.fill_(7)
    assert whole.tolist() == [0, 1, 7, 7] and x.tolist() == [0, 1, 2, 3]


def test_tensors_on_the_cpu_are_shared_as_before(torch: Any) -> None:
    from multiprocessing.reduction import ForkingPickler

    x = torch.zeros(3)
    ForkingPickler.loads(ForkingPickler.dumps(x)).fill_(1)
    assert x.tolist() == [1, 1, 1]
