"""Random numbers: one generator for each device, with a seed and an offset."""

import functools
from collections.abc import Iterable

import torch

from torch_dipu import _native
from torch_dipu.dipu.devices import Device, device_count, device_index, refuse_bad_fork

_C = _native.load()


@functools.cache
def all_generators() -> tuple[torch.Generator, ...]:
    """The default generators, torch.dipu.default_generators; making them asks for the devices."""
    return tuple(_C.default_generator(index) for index in range(device_count()))


def _get_generator(device: Device) -> torch.Generator:
    """The default generator of a device, which lies on the host: to ask for it is no use of the device."""
    refuse_bad_fork()
    return all_generators()[device_index(device)]


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
    _get_generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed every device, also before the first use of any; torch.manual_seed calls it."""
    refuse_bad_fork()
    _C.seed_all(int(seed))


def seed() -> None:
    """Seed the current device with a number that differs each time."""
    _get_generator(None).seed()


def seed_all() -> None:
    """Seed every device with one number that differs each time."""
    manual_seed_all(_get_generator(None).seed())


def initial_seed() -> int:
    return _get_generator(None).initial_seed()
