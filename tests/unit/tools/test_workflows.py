"""The workflows of CI call what is there: releases, parts of a run, options."""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from op_tools.commands.torch_tests import command
from op_tools.torch_tests.shard import shard_of
from tools.constraints import RELEASES

ROOT = Path(__file__).resolve().parents[3]
FIRST_CLASSIFIED = "2.14"  # tests of earlier releases name no hardware


def job() -> dict[str, Any]:
    text = (ROOT / ".github" / "workflows" / "torch-tests.yml").read_text()
    found: dict[str, Any] = yaml.safe_load(text)["jobs"]["torch-tests"]
    return found


def test_each_release_that_classifies_its_tests_runs_each_part_once() -> None:
    matrix = job()["strategy"]["matrix"]
    assert matrix["release"] == list(RELEASES[RELEASES.index(FIRST_CLASSIFIED) :])
    shards = [shard_of(text) for text in matrix["shard"]]
    assert [shard.number for shard in shards] == list(range(1, len(shards) + 1))
    assert {shard.count for shard in shards} == {len(shards)}


def test_the_version_is_that_of_the_constraints() -> None:
    (step,) = (step for step in job()["steps"] if step.get("id") == "torch")
    pattern = re.search(r"s/(.*)/version=", step["run"])
    assert pattern is not None
    for release in job()["strategy"]["matrix"]["release"]:
        lines = (ROOT / "constraints" / f"torch-{release}.txt").read_text().splitlines()
        found = [match[1] for line in lines if (match := re.match(pattern[1], line)) is not None]
        assert len(found) == 1 and found[0].startswith(f"{release}.")


def test_the_command_has_the_options_that_it_is_given(tmp_path: Path) -> None:
    (step,) = (step for step in job()["steps"] if step.get("name") == "Test")
    line = re.sub(r"\$\{\{.*?\}\}", "1/4", step["run"]).partition("torch-tests")[2].partition("|")[0]
    words = [str(tmp_path) if word == "pytorch/test" else word for word in shlex.split(line)]
    given = command.make_context("torch-tests", words).params
    assert (given["device"], given["hardware"], str(given["shard"])) == ("dipu", ("ACCELERATOR",), "1/4")
    uploaded = [step["with"]["path"] for step in job()["steps"] if "upload" in step.get("uses", "")]
    assert [str(given["out"])] == uploaded
