"""A slice of the random programs of tools/random_programs, of which the deep tests run 2,000."""

from typing import Any

import pytest


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
def test_random_programs_give_what_the_cpu_gives(torch: Any, compiler: Any, dtype: str) -> None:
    from tools.random_programs.comparison import comparable, differences
    from tools.random_programs.programs import drawn

    pairs = comparable([drawn(seed, getattr(torch, dtype)) for seed in range(12)])
    assert len(pairs) > 8 and [str(difference) for difference in differences(pairs)] == []


def test_a_wrong_operator_is_found_and_the_program_is_named(torch: Any, compiler: Any) -> None:
    from tools.random_programs import comparison
    from tools.random_programs.programs import Program

    x = torch.ones(2, 2)
    lines = ("$v1 = $v0.t()", "$v1.mul_(2)", "$v2 = $v0.to('cpu') * (3 if $v0.is_cpu else 4)")
    program = Program(seed=5, dtype=x.dtype, inputs=(x,), lines=lines, results=("$v0", "$v1", "$v2"))
    found = comparison.differences(comparison.comparable([program]))
    assert [difference.mode for difference in found] == ["eager", "compiled"]
    assert str(found[0]).startswith("seed 5, torch.float32, eager: v2 is [8.0, 8.0, 8.0, 8.0], not [6.0")
    assert "\n    v1 = v0.t()\n    v1.mul_(2)\n" in str(found[0])
