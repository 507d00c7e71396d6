"""Runs of the generator beside each other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from diopigen.commands.generate import Request, alone
from diopigen.project import Project


def test_a_run_waits_for_another_that_writes_below_the_same_folder(
    checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(tmp_path / "cache"))

    def started(name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "diopigen", "header", "--out", str(tmp_path / name)]
        return subprocess.Popen(command, cwd=checkout.root, env=os.environ, stdout=subprocess.DEVNULL)

    with alone(checkout, Request(contract=True, targets=(), vendor=None, out=tmp_path / "same")):
        waiting = started("same")
        assert started("other").wait() == 0
        assert waiting.poll() is None and not (tmp_path / "same").exists()
    assert waiting.wait() == 0
    assert (tmp_path / "same" / "include").is_dir()
