"""Every rule, role, mismatch and failure: the adaptor under the sanitizers against the model of its document."""

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.cpp.adaptor.lab import matrix
from tests.cpp.adaptor.lab.bench import Vendor, difference, differences, transcripts, vendor
from tests.cpp.adaptor.lab.calls import text
from tests.cpp.adaptor.lab.oracle import Model
from tests.cpp.adaptor.lab.program import Adaptor, Parts, fixed_lab

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture(scope="module")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> list[Vendor]:
    folder = tmp_path_factory.mktemp("vendors")
    return [vendor(config, folder, Adaptor()) for config in matrix.CONFIGS]


ALL = pytest.param(1, marks=pytest.mark.deep("matrix", "each fifth of the same calls"))
EACH = pytest.mark.parametrize("each", [ALL, 5])


def agree(lab: Path, pairs: Iterator[matrix.Pair], at_least: int, each: int = 1) -> None:
    """Of `pairs` one of so many as `each` says is called."""
    calls = list(itertools.islice(pairs, 0, None, each))
    wrong = differences(lab, calls)
    print(f"{len(calls)} behaviours")
    assert wrong == [], f"{len(wrong)} of {len(calls)} behaviours differ, the first:\n{wrong[0]}"
    assert len(calls) >= at_least


@EACH
def test_single_tensors(lab: Path, vendors: list[Vendor], each: int) -> None:
    agree(lab, matrix.single(vendors), 100_000 // each, each)


def test_lists(lab: Path, vendors: list[Vendor]) -> None:
    agree(lab, matrix.lists(vendors), 1_000)


@EACH
def test_shared_memory(lab: Path, vendors: list[Vendor], each: int) -> None:
    agree(lab, matrix.aliased(vendors[1::2]), 8_000 // each, each)


def test_numbers_that_do_not_fit(lab: Path, vendors: list[Vendor]) -> None:
    agree(lab, matrix.wide(vendors), 200)


def test_allocated_tensors(lab: Path, vendors: list[Vendor]) -> None:
    agree(lab, matrix.allocations(vendors), 1_000)


def test_failures(lab: Path, vendors: list[Vendor]) -> None:
    drawn = list(matrix.mixed(vendors[1:], 2_500, Random(1)))
    agree(lab, matrix.failing([(v, replace(call, fault=None)) for v, call in drawn]), 5_000)


def test_drawn_calls(lab: Path, vendors: list[Vendor]) -> None:
    agree(lab, matrix.mixed(vendors, 6_000, Random(2)), 6_000)


def test_tensors_that_cannot_be_asked(lab: Path, vendors: list[Vendor]) -> None:
    """How often a tensor is asked is the adaptor's business: it goes as the document says, or stops and says why."""
    drawn = [(v, replace(call, fault=None)) for v, call in matrix.mixed(vendors[1:], 500, Random(3))]
    calls = list(matrix.silent(drawn))
    found, complaint = transcripts(lab, [text(call, v.rules) for v, call in calls])
    assert complaint == "" and len(found) == len(calls)
    stopped = 0
    for (vendor_, call), answer in zip(calls, found, strict=True):
        whole = Model(call, vendor_.reading).transcript()
        taken, _, after = answer.partition("status 1\n")
        steps = taken.splitlines()
        stopped += after != ""
        assert answer == whole or (after and whole.splitlines()[: len(steps)] == steps), difference(
            call, vendor_, whole, answer
        )
        if after and "call " not in taken:
            memories = "".join(f"storage {memory.hex()}\n" for memory in call.storages)
            assert memories in after, difference(call, vendor_, whole, answer)
    print(f"{len(calls)} behaviours, {stopped} of them stopped")
    assert stopped > 1_000


@pytest.mark.parametrize("config", (7, 12, 13, 17, -8, -2, -1))
def test_as_it_is_generated(parts: Parts, vendors: list[Vendor], config: int, tmp_path: Path) -> None:
    """The rules as constants, whose types carry the orders."""
    vendor_ = vendors[config]
    drawn = matrix.mixed([vendor_], 500, Random(4))
    agree(fixed_lab(parts, Adaptor(), vendor_.texts, tmp_path), itertools.chain(matrix.single([vendor_]), drawn), 2_000)
