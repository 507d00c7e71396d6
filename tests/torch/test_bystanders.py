"""Programs that never use dipu see no difference when torch_dipu is installed: torch's state, what its modules do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.processes import run_python

MODULES = Path(__file__).with_name("module_outcomes.py")

# Prints, as JSON, what a program can see of the process after `import torch`.
STATE = """
import atexit, copyreg, ctypes, gc, hashlib, json, multiprocessing.reduction, os, random, signal, sys, threading
import warnings

forks = []
register = os.register_at_fork
os.register_at_fork = lambda **hooks: (forks.append(sorted(hooks)), register(**hooks))
names = set(sys.modules)
import torch

def digest(value): return hashlib.sha256(repr(value).encode()).hexdigest()
def plain(value): return getattr(value, "__qualname__", repr(value))
def process(field):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(field))

classes = [torch.Tensor, torch.nn.Parameter, torch.nn.Module, torch.nn.modules.lazy.LazyModuleMixin, torch.Generator,
               torch.nn.parameter.UninitializedParameter, torch.optim.Optimizer, torch.autocast,
               torch.autograd.Function,
               torch.UntypedStorage, torch.TypedStorage, torch.nn.utils.rnn.PackedSequence, torch.utils.data.DataLoader]
flags = [torch.__future__, torch.backends.cpu, torch.backends.mkldnn, torch.backends.openmp, torch.backends.opt_einsum,
         torch.backends.nnpack, torch.backends.cuda.matmul, torch.backends.cudnn]
getters = ["get_default_device", "get_default_dtype", "get_deterministic_debug_mode", "get_float32_matmul_precision",
           "get_num_interop_threads", "get_num_threads", "is_anomaly_enabled", "is_autocast_cache_enabled",
           "is_deterministic_algorithms_warn_only_enabled", "is_grad_enabled",
           "is_inference_mode_enabled", "is_warn_always_enabled", "are_deterministic_algorithms_enabled"]
settings = {f"{owner.__name__}.{name}": repr(getattr(owner, name)) for owner in flags for name in sorted(vars(owner))
            if isinstance(getattr(owner, name), (bool, int, str, type(None)))}
future = {name: getattr(torch.__future__, name)() for name in vars(torch.__future__) if name.startswith("get_")}
keys = ["CPU", "Meta", "AutogradCPU", "AutogradOther", "Autograd", "AutogradFunctionality", "AutocastCPU",
        "BackendSelect",
        "ADInplaceOrView", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "Functionalize", "Python",
        "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "MkldnnCPU", "NestedTensorCPU", "FuncTorchBatched", "ZeroTensor",
        "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutogradNestedTensor"]
state = {
    "threads": len(os.listdir("/proc/self/task")),
    "Python's threads": [thread.name for thread in threading.enumerate()],
    "environment": sorted(pair for pair in os.environ.items() if pair[0] != "TORCH_DEVICE_BACKEND_AUTOLOAD"),
    "environment in C": [process("SigBlk"), *(ctypes.CDLL(None).getenv(name.encode()) is None for name in os.environ)],
    "signals": [str(signal.getsignal(number)) for number in signal.valid_signals() if number not in (9, 19)],
    "signals in C": [process(field) for field in ("SigIgn", "SigCgt")],
    "fork hooks": forks, "exit handlers": atexit._ncallbacks(),
    "warning filters": [repr(row) for row in warnings.filters],
    "collection": [gc.get_threshold(), gc.isenabled(), gc.callbacks],
    "interpreter": [sys.getrecursionlimit(), sys.getswitchinterval(), *map(plain, [sys.excepthook, sys.displayhook,
                    sys.unraisablehook, threading.excepthook, sys.gettrace(), sys.getprofile()]),
                    repr(sys.path_hooks)],
    "working folder": os.getcwd(), "locale": __import__("locale").setlocale(0), "mask": os.umask(0o22),
    "modules": sorted(name for name in set(sys.modules) - names if "dipu" not in name),
    "settings": settings, "future": future, "getters": {name: str(getattr(torch, name)()) for name in getters},
    "random": [torch.manual_seed(3).initial_seed(), digest(torch.get_rng_state().tolist()),
               digest(random.getstate()[0])],
    "classes": {kind.__name__: {name: plain(value) for name, value in vars(kind).items() if "dipu" not in name}
                for kind in classes},
    "finders": [kind for kind in map(plain, map(type, sys.meta_path)) if "Watch" not in kind],
    "global hooks": {name: len(value) for name, value in vars(torch.nn.modules.module).items()
                     if name.startswith("_global") and hasattr(value, "__len__")},
    "multithreaded backward": torch.autograd.is_multithreading_enabled(),
    "saved tensors": torch._C._autograd._saved_tensors_hooks_is_enabled(),
    "pickling": [sorted(map(repr, copyreg.dispatch_table)),
                 sorted(map(repr, multiprocessing.reduction.ForkingPickler._extra_reducers))],
    "serialization": [row[0] for row in torch.serialization._package_registry],
    "start method": torch.multiprocessing.get_all_start_methods(),
    "sharing": torch.multiprocessing.get_sharing_strategy(),
    "modes": [torch._C._len_torch_dispatch_stack(), torch._C._len_torch_function_stack()],
    "kernels": {key: digest(sorted(torch._C._dispatch_get_registrations_for_dispatch_key(key))) for key in keys},
    "operators": digest(sorted(name for name in torch._C._dispatch_get_all_op_names() if "dipu" not in name)),
    "CUDA": [torch.cuda.is_available(), torch.cuda.is_initialized(), torch.cuda.device_count()],
}
import re
print(re.sub(r" at 0x[0-9a-f]+", "", json.dumps(state, default=repr)))
"""


# Prints what each of some programs does, by name: its result, or the error that it ends in.
PROGRAMS = """
import copy, gc, io, json, os, pickle, sys, warnings, weakref
import torch
from torch import nn

warnings.simplefilter("ignore")
results = {}
def program(function):
    torch.manual_seed(0)
    try:
        results[function.__name__] = repr(function())
    except Exception as error:
        results[function.__name__] = f"{type(error).__name__}: {error}"

def linear(): return nn.Linear(3, 3)
def run(module): return module(torch.ones(2, 3, dtype=next(module.parameters()).dtype)).sum()

@program
def a_weak_reference_to_a_weight():
    module = linear(); kept = weakref.ref(module.weight); module.double()
    return kept() is module.weight
@program
def a_live_graph():
    module = linear(); loss = run(module); module.double()
    return loss.item()
@program
def a_state_loaded_with_a_live_graph():
    module = linear(); loss = run(module); module.load_state_dict(linear().state_dict())
    return loss.item(), module.weight.sum().item()
@program
def older_spectral_norm():
    module = nn.utils.spectral_norm(linear()); run(module).backward(); module.double(); run(module).backward()
    return module.weight_orig.grad.dtype
@program
def older_weight_norm():
    module = nn.utils.weight_norm(linear()); run(module).backward(); module.double(); run(module).backward()
    return module.weight_g.grad.dtype
@program
def exported_then_moved():
    module = linear(); torch.export.export(module, (torch.ones(2, 3),)); module.double()
    return module.weight.dtype
@program
def attributes_of_a_weight():
    module = linear(); module.weight.tag = 1; module.half()
    return module.weight.tag
@program
def attributes_of_a_buffer():
    module = nn.BatchNorm1d(3); module.running_mean.tag = 1; module.load_state_dict(nn.BatchNorm1d(3).state_dict())
    return module.running_mean.tag
@program
def hooks_of_a_parameter():
    module, calls = linear(), []
    module.weight.register_hook(lambda grad: calls.append("hook"))
    module.bias.register_post_accumulate_grad_hook(lambda parameter: calls.append("after"))
    module.double(); module.load_state_dict(module.state_dict()); run(module).backward()
    return calls
@program
def a_subclass_of_parameters():
    class Named(nn.Parameter): pass
    module = linear(); module.weight = Named(module.weight.data)
    module.double(); module.load_state_dict(module.state_dict())
    return type(module.weight).__name__
@program
def tied_weights():
    module = nn.Sequential(linear(), linear()); module[1].weight = module[0].weight; module.double()
    return module[1].weight is module[0].weight, len(list(module.parameters()))
@program
def empty_memory_with_a_live_graph():
    module = linear(); loss = run(module); module.to_empty(device="cpu")
    return loss.item()
@program
def channels_last_with_a_live_graph():
    module = nn.Conv2d(3, 3, 1); loss = module(torch.ones(1, 3, 2, 2)).sum()
    module.to(memory_format=torch.channels_last)
    return loss.item(), module.weight.is_contiguous(memory_format=torch.channels_last)
@program
def a_scripted_module_with_a_live_graph():
    module = torch.jit.script(linear()); loss = run(module); module.double()
    return loss.item(), run(module).item()
@program
def a_lazy_module():
    module = nn.LazyLinear(2).double(); optimizer = torch.optim.SGD(module.parameters(), 0.1)
    module(torch.ones(1, 3, dtype=torch.double)).sum().backward(); optimizer.step()
    return module.weight.shape, module.weight.dtype
@program
def meta_then_empty():
    module = nn.Linear(3, 3, device="meta"); module.to_empty(device="cpu")
    return module.weight.device, type(module.weight).__name__
@program
def assigned_state():
    module = nn.Linear(3, 3, device="meta"); module.load_state_dict(linear().state_dict(), assign=True)
    return run(module).item()
@program
def an_lstm():
    module = nn.LSTM(3, 3).double(); module(torch.ones(2, 1, 3, dtype=torch.double))[0].sum().backward()
    return module.weight_ih_l0.grad.sum().item()
@program
def a_shared_module():
    module = linear(); loss = run(module); module.share_memory()
    return loss.item(), module.weight.is_shared()
@program
def a_copied_and_pickled_module():
    module = linear().double(); again = pickle.loads(pickle.dumps(copy.deepcopy(module)))
    return run(again).item() == run(module).item()
@program
def saved_and_loaded():
    file = io.BytesIO(); torch.save(linear().state_dict(), file); file.seek(0)
    return torch.load(file)["weight"].sum().item()
@program
def random_numbers():
    with torch.random.fork_rng():
        torch.rand(3)
    return torch.rand(3).tolist(), torch.initial_seed(), torch.nn.functional.dropout(torch.ones(8)).tolist()
@program
def a_checkpoint():
    from torch.utils.checkpoint import checkpoint
    source = torch.ones(8, requires_grad=True)
    checkpoint(lambda x: torch.nn.functional.dropout(x) * x, source, use_reentrant=True).sum().backward()
    return source.grad.tolist()
@program
def mixed_precision():
    with torch.autocast("cpu"):
        return run(linear()).dtype, torch.get_autocast_dtype("cpu")
@program
def pinned_memory_of_a_loader():
    return [batch.sum().item() for batch in torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)]
@program
def workers_of_a_loader():
    class Rows(torch.utils.data.Dataset):
        def __len__(self): return 4
        def __getitem__(self, index):
            x = torch.full((2,), float(index), requires_grad=True); (x * x).sum().backward()
            return x.grad
    run(linear()).backward()
    return [batch.tolist() for batch in torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=2)]
@program
def a_forked_backward():
    run(linear()).backward()
    child = os.fork()
    if child == 0:
        try:
            run(linear()).backward(); os._exit(0)
        except BaseException: os._exit(1)
    return os.waitpid(child, 0)[1]
@program
def a_forked_child_of_a_forked_child():
    run(linear()).backward()
    def descend(depth):
        child = os.fork()
        if child == 0:
            try:
                run(linear()).backward(); os._exit(descend(depth - 1) if depth else 0)
            except BaseException: os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return descend(2)
def train(module):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad(); run(module).backward(); optimizer.step()
@program
def hogwild():
    module = linear(); run(module).backward(); module.share_memory(); before = module.bias.detach().clone()
    context = torch.multiprocessing.get_context("fork")
    workers = [context.Process(target=train, args=(module,)) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    return [worker.exitcode for worker in workers], torch.equal(before, module.bias)
@program
def deep_reentrant_backwards():  # for which torch starts threads, so that nothing may be forked after it
    class Deep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): ctx.x = x.detach(); return x.detach() - 1
        @staticmethod
        def backward(ctx, grad):
            if ctx.x.item() < 0: return grad
            with torch.enable_grad():
                Deep.apply((ctx.x - 1).requires_grad_()).sum().backward()
            return grad
    x = torch.tensor([80.0], requires_grad=True); Deep.apply(x).sum().backward()
    return x.grad.item()
@program
def threads():
    return len(os.listdir("/proc/self/task"))
print(json.dumps(results))
"""

# What the programs above do with torch alone, where it says more than that both are alike.
RIGHT = {
    "a_forked_backward": "0",
    "a_forked_child_of_a_forked_child": "0",
    "hogwild": "([0, 0], False)",
    "hooks_of_a_parameter": "['after', 'hook']",
}


@pytest.fixture
def alone_and_installed(libraries: Path) -> Callable[..., tuple[dict[str, Any], dict[str, Any]]]:
    """What `python WORDS...` prints as JSON without the backend, and with it."""

    def run(*words: str) -> tuple[dict[str, Any], dict[str, Any]]:
        done = [run_python(*words, timeout=1200, TORCH_DEVICE_BACKEND_AUTOLOAD=load) for load in ("0", "1")]
        assert all(each.returncode == 0 for each in done), [each.stderr for each in done]
        alone, installed = (json.loads(each.stdout.splitlines()[-1]) for each in done)
        return alone, installed

    return run


def different(alone: dict[str, Any], installed: dict[str, Any]) -> dict[str, Any]:
    """Both values, where they differ."""
    names = alone.keys() | installed.keys()
    return {name: (alone.get(name), installed.get(name)) for name in names if alone.get(name) != installed.get(name)}


def test_the_import_leaves_the_state_of_the_process(alone_and_installed: Any) -> None:
    assert different(*alone_and_installed("-c", STATE)) == {}


def test_the_import_makes_the_device_known(libraries: Path) -> None:
    """The comparisons are of a process that has the device."""
    program = "import torch; print(torch.dipu.device_count() > 0, torch.dipu.is_initialized())"
    done = run_python("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_programs_without_the_device_do_what_they_did(alone_and_installed: Any) -> None:
    alone, installed = alone_and_installed("-c", PROGRAMS)
    assert different(alone, installed) == {}
    assert {name: alone[name] for name in RIGHT} == RIGHT


def test_some_of_torchs_modules_do_what_they_did(alone_and_installed: Any) -> None:
    alone, installed = alone_and_installed(str(MODULES), "0", "12")
    assert len(alone) > 100 and different(alone, installed) == {}


@pytest.mark.deep("frameworks", "each twelfth of torch's modules")
@pytest.mark.parametrize("first", range(1, 12))
def test_torchs_modules_do_what_they_did(alone_and_installed: Any, first: int) -> None:
    alone, installed = alone_and_installed(str(MODULES), str(first), "12")
    assert len(alone) > 100 and different(alone, installed) == {}
