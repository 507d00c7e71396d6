"""Random numbers: one generator for each device, with a seed and an offset."""

from collections.abc import Iterable

import torch

from torch_dipu import _native
from torch_dipu.dipu.devices import Device, _lazy_init, current_device, device_count, device_index

_C = _native.load()

default_generators: tuple[torch.Generator, ...] = tuple(_C.default_generator(index) for index in range(device_count()))


def _get_generator(device: Device) -> torch.Generator:
    """The default generator of a device."""
    _lazy_init()
    return default_generators[device_index(device)]


def get_rng_state(device: Device = "dipu") -> torch.Tensor:
    """The state as a CPU tensor of 16 bytes."""
    return _get_generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = "dipu") -> None:
    _get_generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the current device."""
    _lazy_init()
    default_generators[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed every device."""
    _lazy_init()
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the current device with a number that differs each time."""
    _lazy_init()
    default_generators[current_device()].seed()


def seed_all() -> None:
    """Seed every device with one number that differs each time."""
    _lazy_init()
    manual_seed_all(default_generators[current_device()].seed())


def initial_seed() -> int:
    _lazy_init()
    return default_generators[current_device()].initial_seed()
